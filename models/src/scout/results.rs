//! What the file tools return, taken apart.
//!
//! A result is the content as it is, then a line in brackets with the summary, then a line for each thing that is left
//! out. It is read from the end, so content that imitates those lines stays content.

/// The text of a tool, in its three parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ToolText<'a> {
    pub(super) content: &'a str,
    pub(super) summary: &'a str,
    pub(super) left_out: Vec<&'a str>,
}

impl<'a> ToolText<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let mut rest = text.trim_end_matches('\n');
        let mut left_out = Vec::new();
        loop {
            let (before, line) = rest.rsplit_once('\n').map_or(("", rest), |(before, line)| (before, line));
            let Some(inner) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) else {
                // Not in the form known: all of it is content.
                left_out.reverse();
                return Self { content: rest, summary: "", left_out };
            };
            if let Some(sentence) = inner.strip_prefix("left out: ") {
                left_out.push(sentence);
                rest = before;
            } else {
                left_out.reverse();
                return Self { content: before, summary: inner, left_out };
            }
        }
    }

    /// The number before `noun` in the summary, such as 12 in `12 matches in 3 files, 57 searched`.
    fn number(&self, nouns: [&str; 2]) -> Option<u64> {
        let mut words = self.summary.split([' ', ',']).filter(|word| !word.is_empty());
        let mut last = words.next()?;
        for word in words {
            if nouns.contains(&word) {
                return last.parse().ok();
            }
            last = word;
        }
        None
    }
}

/// A line that a search found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Match<'a> {
    pub(super) path: &'a str,
    pub(super) line: u64,
    pub(super) text: &'a str,
}

/// The result of `fs.search`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Found<'a> {
    pub(super) matches: Vec<Match<'a>>,
    /// How many there were, those that are left out too.
    pub(super) total: u64,
    /// How many files were searched, where the tool says so.
    pub(super) searched: Option<u64>,
    pub(super) left_out: Vec<&'a str>,
}

impl<'a> Found<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let parts = ToolText::parse(text);
        let matches: Vec<_> = parts.content.lines().filter_map(Match::parse).collect();
        let total = parts.number(["match", "matches"]).unwrap_or(0).max(matches.len() as u64);
        Self { searched: parts.number(["searched", "searched"]), matches, total, left_out: parts.left_out }
    }

    /// The paths, each once, in order.
    pub(super) fn paths(&self) -> Vec<&'a str> {
        let mut paths: Vec<&str> = Vec::new();
        for found in &self.matches {
            if paths.last() != Some(&found.path) {
                paths.push(found.path);
            }
        }
        paths
    }
}

impl<'a> Match<'a> {
    /// `path:line: text`. A path may hold colons, so the first place where a number stands between two of them counts.
    fn parse(line: &'a str) -> Option<Self> {
        line.match_indices(':').find_map(|(colon, _)| {
            let rest = line.get(colon + 1..)?;
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let number = rest.get(..digits)?.parse().ok()?;
            let after = rest.get(digits..)?.strip_prefix(':')?;
            let path = line.get(..colon).filter(|path| !path.is_empty())?;
            Some(Self { path, line: number, text: after.strip_prefix(' ').unwrap_or(after) })
        })
    }
}

/// The result of `fs.list`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Listing<'a> {
    pub(super) entries: Vec<&'a str>,
    pub(super) left_out: Vec<&'a str>,
}

impl<'a> Listing<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let ToolText { content, left_out, .. } = ToolText::parse(text);
        Self { entries: content.lines().filter(|line| !line.trim().is_empty()).collect(), left_out }
    }

    /// The names of the files, without what is said of them.
    pub(super) fn files(&self) -> impl Iterator<Item = &'a str> {
        self.entries.iter().filter_map(|entry| {
            let entry = *entry;
            let name = entry.split_once(" -> ").map_or(entry, |(name, _)| name);
            let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
            (!name.ends_with('/')).then_some(name)
        })
    }

    pub(super) fn folders(&self) -> usize {
        self.entries.iter().filter(|entry| entry.ends_with('/')).count()
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, Listing, Match, ToolText};

    #[test]
    fn a_search_is_taken_apart() {
        let text = "a.rs:3: // TODO: x\nb:c.rs:10: y: 4: z\n[7 matches in 2 files, 57 searched, 4 entries ignored by .gitignore]\n[left out: 5 matches in 1 file did not fit and are left out, from `c:1` to `d:2` in the order of paths.]\n";
        let found = Found::parse(text);
        assert_eq!(
            found.matches,
            [Match { path: "a.rs", line: 3, text: "// TODO: x" }, Match { path: "b:c.rs", line: 10, text: "y: 4: z" }]
        );
        assert_eq!((found.total, found.searched, found.left_out.len()), (7, Some(57), 1));
        assert_eq!(found.paths(), ["a.rs", "b:c.rs"]);
    }

    #[test]
    fn content_that_imitates_the_last_lines_stays_content() {
        let parts = ToolText::parse("[left out: nothing]\n[9 matches]\n[line 1 of `x`]\n");
        assert_eq!((parts.content, parts.summary), ("[left out: nothing]\n[9 matches]", "line 1 of `x`"));
    }

    #[test]
    fn text_in_no_known_form_is_content() {
        let parts = ToolText::parse("just text\nof two lines");
        assert_eq!((parts.content, parts.summary), ("just text\nof two lines", ""));
        assert_eq!(ToolText::parse("").content, "");
    }

    #[test]
    fn a_listing_knows_files_from_folders() {
        let listing = Listing::parse("src/\na (1).txt (12 bytes)\nlink -> src\n[3 entries in `.`]\n");
        assert_eq!(listing.entries.len(), 3);
        assert_eq!(listing.files().collect::<Vec<_>>(), ["a (1).txt", "link"]);
        assert_eq!(listing.folders(), 1);
    }
}
