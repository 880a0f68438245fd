//! Reading a unified patch, as git and diff write it and as people and models do.
//!
//! What a patch says must be understood whole: a line that belongs to nothing is an error and is not passed over, since it may be a
//! part of a change that was written down wrongly. Only the text before the first file, such as a mail, is.

use crate::{
    patch::{Hunk, Kind, Line, MOST_HUNKS, Name, Patch, Section},
    text::{Text, TooLarge, told},
};

/// Why a text is no patch that could be applied. Lines count from 1. Nothing was done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadPatch {
    /// It is too large.
    #[error("the patch is too large: {0}")]
    TooLarge(#[from] TooLarge),
    /// It has more hunks.
    #[error("the patch has more than {MOST_HUNKS} hunks")]
    Hunks,
    /// There is no change in it.
    #[error(
        "the patch changes nothing: a hunk begins with a line `@@ -12,3 +12,4 @@` or `@@`, and its lines with ` `, `-` or `+`"
    )]
    Empty,
    /// This hunk changes nothing.
    #[error("the hunk at line {0} of the patch changes nothing")]
    Idle(usize),
    /// A line that belongs to nothing.
    #[error("line {line} of the patch is part of no hunk: `{text}`; a line of a hunk begins with ` `, `-` or `+`")]
    Stray {
        /// Which.
        line: usize,
        /// It, for people.
        text: String,
    },
    /// The header of a hunk that cannot be read.
    #[error(
        "line {line} of the patch is no header of a hunk: `{text}`; it is `@@ -12,3 +12,4 @@`, or `@@` without numbers"
    )]
    Header {
        /// Which.
        line: usize,
        /// It, for people.
        text: String,
    },
    /// Something else than lines of text is changed.
    #[error("line {line} of the patch: {what} cannot be patched here")]
    Unsupported {
        /// Which.
        line: usize,
        /// What it is about.
        what: &'static str,
    },
}

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    /// [`BadPatch`] says which line cannot be understood.
    pub fn parse(text: Text<'_>) -> Result<Self, BadPatch> {
        let mut parser = Parser { lines: text.lines(), at: 0, sections: Vec::new(), within: Within::Preface, hunks: 0 };
        while let Some(line) = parser.line(parser.at) {
            parser.take(line)?;
        }
        let changes = |section: &Section| {
            let is_moved = matches!((&section.old, &section.new), (Name::Nothing, _) | (_, Name::Nothing));
            is_moved || !section.hunks.is_empty()
        };
        let sections = parser.sections;
        if sections.is_empty() || !sections.iter().all(changes) { Err(BadPatch::Empty) } else { Ok(Self(sections)) }
    }
}

struct Parser<'a> {
    lines: Vec<&'a str>,
    /// The line that comes next, from 0.
    at: usize,
    sections: Vec<Section>,
    within: Within,
    hunks: usize,
}

/// What the line before belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Text before a file.
    Preface,
    /// What git says of a file.
    Headers,
    /// The names of a file, or its hunks.
    Hunks,
    /// What stands behind the signature of a mail.
    Signature,
}

impl<'a> Parser<'a> {
    /// A line without its end.
    fn line(&self, at: usize) -> Option<&'a str> {
        self.lines.get(at).map(|line| line.trim_end_matches(['\n', '\r']))
    }

    fn take(&mut self, line: &str) -> Result<(), BadPatch> {
        let number = self.at.saturating_add(1);
        if line.starts_with("diff --git ") {
            self.begin(Name::Unsaid, Name::Unsaid);
            self.within = Within::Headers;
        } else if let Some((old, new)) = self.names() {
            self.named(old, new);
            self.at = self.at.saturating_add(1);
        } else if line.starts_with("@@") && self.within != Within::Signature {
            return self.hunk(line, number);
        } else {
            match self.within {
                Within::Headers => self.header(line, number)?,
                Within::Hunks
                    if line.trim().is_empty() || line.starts_with("diff ") || line.starts_with("Only in ") => {}
                Within::Hunks if line.starts_with("-- ") || line == "--" => self.within = Within::Signature,
                Within::Hunks if line.starts_with("Index: ") || line.starts_with("=====") => {}
                Within::Hunks => return Err(BadPatch::Stray { line: number, text: told(line) }),
                Within::Preface | Within::Signature => {}
            }
        }
        self.at = self.at.saturating_add(1);
        Ok(())
    }

    fn begin(&mut self, old: Name, new: Name) {
        self.sections.push(Section { old, new, hunks: Vec::new() });
    }

    /// The names of a file, where this line and the next are those.
    fn names(&self) -> Option<(Name, Name)> {
        let old = self.line(self.at)?.strip_prefix("--- ")?;
        let new = self.line(self.at.checked_add(1)?)?.strip_prefix("+++ ")?;
        Some((name(old, "a/"), name(new, "b/")))
    }

    fn named(&mut self, old: Name, new: Name) {
        // What git has said of the file before has to go with them, or they are of another one.
        let agrees = |section: &&mut Section| {
            (section.old != Name::Nothing || old == Name::Nothing)
                && (section.new != Name::Nothing || new == Name::Nothing)
        };
        match self.sections.last_mut().filter(|_| self.within == Within::Headers).filter(agrees) {
            Some(section) => (section.old, section.new) = (old, new),
            None => self.begin(old, new),
        }
        self.within = Within::Hunks;
    }

    /// A line of what git says of a file.
    fn header(&mut self, line: &str, number: usize) -> Result<(), BadPatch> {
        const KNOWN: [(&str, &str); 7] = [
            ("rename ", "a renamed file"),
            ("copy ", "a copied file"),
            ("old mode ", "a change of mode"),
            ("GIT binary patch", "a binary file"),
            ("Binary files ", "a binary file"),
            ("new file mode 12", "a symbolic link"),
            ("new file mode 16", "a submodule"),
        ];
        if let Some((_, what)) = KNOWN.iter().find(|(begins, _)| line.starts_with(begins)) {
            return Err(BadPatch::Unsupported { line: number, what });
        }
        if let Some(section) = self.sections.last_mut() {
            if line.starts_with("new file mode ") {
                section.old = Name::Nothing;
            } else if line.starts_with("deleted file mode ") {
                section.new = Name::Nothing;
            } else if !line.starts_with("index ") && !line.trim().is_empty() {
                return Err(BadPatch::Stray { line: number, text: told(line) });
            }
        }
        Ok(())
    }

    fn hunk(&mut self, header: &str, number: usize) -> Result<(), BadPatch> {
        self.hunks = self.hunks.saturating_add(1);
        if self.hunks > MOST_HUNKS {
            return Err(BadPatch::Hunks);
        }
        let says = Numbers::parse(header).ok_or_else(|| BadPatch::Header { line: number, text: told(header) })?;
        let from = self.at.saturating_add(1);
        let end = says.and_then(|says| self.counted(from, says)).unwrap_or_else(|| self.shaped(from));
        let hunk = Hunk { at: says.map(|says| says.at), lines: self.body(from, end) };
        if !hunk.changes() {
            let ends = |line: &&str| line.trim().is_empty() || line.starts_with("@@") || line.starts_with("diff ");
            let stray = self.line(end).filter(|line| !ends(line) && !self.begins_file(end));
            let line = end.saturating_add(1);
            return Err(stray.map_or(BadPatch::Idle(number), |text| BadPatch::Stray { line, text: told(text) }));
        }
        if self.sections.is_empty() {
            self.begin(Name::Unsaid, Name::Unsaid);
        }
        if let Some(section) = self.sections.last_mut() {
            section.hunks.push(hunk);
        }
        (self.within, self.at) = (Within::Hunks, end);
        Ok(())
    }

    /// Where a hunk ends that has as many lines as its header says; none if no hunk of that many ends there.
    fn counted(&self, from: usize, says: Numbers) -> Option<usize> {
        let (mut old, mut new, mut at) = (says.old, says.new, from);
        while old > 0 || new > 0 {
            match kind(self.lines.get(at)?)? {
                Kind::Context => (old, new) = (old.checked_sub(1)?, new.checked_sub(1)?),
                Kind::Removed => old = old.checked_sub(1)?,
                Kind::Added => new = new.checked_sub(1)?,
            }
            at = at.checked_add(1)?;
            if self.is_endless(at) {
                at = at.checked_add(1)?;
            }
        }
        // One more line of the kind would belong to it, if its header were wrong.
        let goes_on = self.lines.get(at).is_some_and(|line| line.starts_with([' ', '+', '-']));
        let is_other =
            || self.begins_file(at) || self.line(at).is_some_and(|line| line.starts_with("-- ") || line == "--");
        (!goes_on || is_other()).then_some(at)
    }

    /// Where a hunk ends of which nothing is known but its lines.
    fn shaped(&self, from: usize) -> usize {
        let mut end = from;
        for at in from..self.lines.len() {
            let is_line = self.lines.get(at).is_some_and(|line| kind(line).is_some()) || self.is_endless(at);
            if !is_line || self.begins_file(at) {
                break;
            }
            // Empty lines at its end are no part of it.
            if self.line(at).is_some_and(|line| !line.is_empty()) {
                end = at.saturating_add(1);
            }
        }
        end
    }

    fn begins_file(&self, at: usize) -> bool {
        let begins =
            |at: Option<usize>, with: &str| at.and_then(|at| self.line(at)).is_some_and(|line| line.starts_with(with));
        begins(Some(at), "--- ") && begins(at.checked_add(1), "+++ ")
    }

    /// Whether the line says that the one before has no end.
    fn is_endless(&self, at: usize) -> bool {
        self.line(at).is_some_and(|line| line.starts_with("\\ "))
    }

    fn body(&self, from: usize, end: usize) -> Vec<Line> {
        let numbered = (from..end).filter_map(|at| Some((at, *self.lines.get(at)?)));
        let line = |(at, line): (usize, &str)| {
            let kind = kind(line)?;
            // An empty line is one of context that has lost its space.
            let text = line.strip_prefix([' ', '-', '+']).unwrap_or(line);
            let text = if at.checked_add(1).is_some_and(|next| self.is_endless(next)) {
                text.strip_suffix('\n').unwrap_or(text).to_owned()
            } else if text.ends_with('\n') {
                text.to_owned()
            } else {
                // The last line of the patch, which itself has no end.
                format!("{text}\n")
            };
            Some(Line { kind, text })
        };
        numbered.filter_map(line).collect()
    }
}

fn kind(line: &str) -> Option<Kind> {
    match line.bytes().next() {
        Some(b' ' | b'\n') => Some(Kind::Context),
        Some(b'\r') if line == "\r\n" => Some(Kind::Context),
        Some(b'-') => Some(Kind::Removed),
        Some(b'+') => Some(Kind::Added),
        _ => None,
    }
}

/// What the header of a hunk says.
#[derive(Clone, Copy)]
struct Numbers {
    /// The line at which it begins.
    at: usize,
    /// How many lines it takes.
    old: usize,
    /// How many lines it leaves.
    new: usize,
}

impl Numbers {
    /// `@@ -12,3 +12,4 @@` with anything behind it; without numbers, nothing. None if it is neither.
    #[expect(clippy::option_option, reason = "no header, and one that says nothing, are not the same")]
    fn parse(header: &str) -> Option<Option<Self>> {
        let rest = header.strip_prefix("@@")?;
        let Some(ranges) = rest.trim_start().strip_prefix('-') else {
            return (rest.is_empty() || rest.starts_with(' ')).then_some(None);
        };
        let (ranges, _) = ranges.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        let ((at, old), (_, new)) = (range(old)?, range(new)?);
        Some(Some(Self { at, old, new }))
    }
}

/// `12,3`, or `12` for one line.
fn range(text: &str) -> Option<(usize, usize)> {
    let number = |text: &str| text.parse::<u32>().ok().and_then(|number| usize::try_from(number).ok());
    match text.split_once(',') {
        Some((at, count)) => Some((number(at)?, number(count)?)),
        None => Some((number(text)?, 1)),
    }
}

/// A file's name as it stands behind `---` or `+++`: what follows a tab is a date, and git quotes what is unusual.
fn name(text: &str, prefix: &str) -> Name {
    let unquoted = text.strip_prefix('"').and_then(|text| unquoted(text.trim_end().strip_suffix('"')?));
    let name = unquoted.unwrap_or_else(|| text.split('\t').next().unwrap_or(text).to_owned());
    if name.trim_end() == "/dev/null" {
        return Name::Nothing;
    }
    Name::File(name.strip_prefix(prefix).map(str::to_owned).unwrap_or(name))
}

/// A name without git's quoting; none if it is no such.
fn unquoted(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            first @ b'0'..=b'3' => {
                let mut digits = vec![first, rest.next()?, rest.next()?];
                digits.retain(|digit| matches!(digit, b'0'..=b'7'));
                u8::from_str_radix(str::from_utf8(digits.get(..3)?).ok()?, 8).ok()?
            }
            other @ (b'"' | b'\\') => other,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}
