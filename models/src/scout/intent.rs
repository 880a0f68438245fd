//! What a request may ask for.

/// One thing that scout can do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Intent {
    /// Lines that match.
    Search(Search),
    /// Where a name is defined.
    Define { name: String, scope: Scope },
    /// Files by their name, or how many there are.
    Files { filter: Filter, scope: Scope, count: bool },
    /// The entries of a folder.
    List(String),
    /// A word that may be a folder, a file, or neither.
    Look(String),
    /// The text of a file, or a part of it.
    Read { file: File, part: Part },
    /// How much is in a file.
    Measure { file: File, unit: Unit },
    /// What a file is about, as far as counting and copying can tell.
    Summarise(File),
    /// Two files side by side.
    Compare(File, File),
    /// A file to write.
    Write { path: String, content: Content },
    /// What was piped in.
    Piped(Piped),
    /// Scout itself.
    About,
    /// A greeting, or thanks.
    Greeting,
    /// It is clear what is wanted, and something is missing: the sentence asks for it.
    Missing(&'static str),
    /// Not understood; with the verb that scout knows it cannot do, if that is why.
    Unknown(Option<String>),
}

/// A search and what is shown of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Search {
    pub(super) needle: Needle,
    pub(super) scope: Scope,
    pub(super) view: View,
}

/// What is searched for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Needle {
    /// As a regular expression.
    pub(super) pattern: String,
    /// In words, for the report.
    pub(super) words: String,
}

/// Where.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Scope {
    /// A file or folder; nothing for the whole workspace.
    pub(super) path: Option<String>,
    /// Further files or folders, as in "in src and docs".
    pub(super) also: Vec<String>,
    /// Only files that fit.
    pub(super) only: Option<Filter>,
}

impl Scope {
    /// One scope for each place.
    pub(super) fn each(&self) -> Vec<Self> {
        let places = self.path.iter().chain(&self.also);
        let alone = |path: &String| Self { path: Some(path.clone()), also: Vec::new(), only: self.only.clone() };
        if self.also.is_empty() { vec![self.clone()] } else { places.map(alone).collect() }
    }
}

/// How much of a search is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum View {
    Lines,
    Files,
    Count,
}

/// Which files, by their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Filter {
    Any,
    /// One of these endings, without the dot; and what such files are called.
    Endings(Vec<String>, String),
    /// A name with `*` for anything.
    Glob(String),
    /// A name, or a part of one.
    Named(String),
}

/// A file that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum File {
    /// By its path.
    Path(String),
    /// By what it is called, such as "the licence": any file whose name begins with one of these.
    Called(&'static [&'static str]),
}

/// Which part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    All,
    First(u64),
    Last(u64),
    /// From the first line through the last, both counted from 1.
    Lines(u64, u64),
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Lines,
    Words,
    Characters,
}

/// What is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    Text(String),
    /// The lines that a search finds.
    Found(Search),
    /// The text of another file.
    Copy(String),
}

/// What to do with piped text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Piped {
    Summarise,
    Find(Needle, View),
    Show(Part),
    Measure(Unit),
}

impl Filter {
    /// Whether the file at `path` fits.
    pub(super) fn fits(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        match self {
            Self::Any => true,
            Self::Endings(endings, _) => {
                let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_lowercase());
                ending.is_some_and(|ending| endings.contains(&ending))
            }
            Self::Glob(glob) if glob.contains('/') => is_glob(glob, path),
            Self::Glob(glob) => is_glob(glob, name),
            Self::Named(part) if part.contains('/') => path.ends_with(part.as_str()),
            Self::Named(part) => name.to_lowercase().contains(&part.to_lowercase()),
        }
    }

    /// The files it means, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Any => "text files".to_owned(),
            Self::Endings(_, words) => format!("{words} files"),
            Self::Glob(glob) => format!("files named `{glob}`"),
            Self::Named(name) => format!("files with `{name}` in their name"),
        }
    }
}

/// Whether `text` is `glob`, where `*` is anything, `?` one character.
fn is_glob(glob: &str, text: &str) -> bool {
    let mut glob_rest = glob.chars();
    match glob_rest.next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = glob_rest.as_str().trim_start_matches('*');
            text.char_indices().any(|(at, _)| text.get(at..).is_some_and(|text| is_glob(rest, text)))
                || is_glob(rest, "")
        }
        Some(wanted) => {
            let mut characters = text.chars();
            let first = characters.next();
            first.is_some_and(|first| wanted == '?' || wanted == first)
                && is_glob(glob_rest.as_str(), characters.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Filter;

    #[test]
    fn filters_look_at_names() {
        let glob = |glob: &str| Filter::Glob(glob.to_owned());
        assert!(glob("*.md").fits("docs/a.md") && !glob("*.md").fits("a.mdx"));
        assert!(glob("src/*.rs").fits("src/a/b.rs") && glob("test_?").fits("x/test_1") && glob("*").fits("a"));
        assert!(!glob("a*b").fits("acd") && glob("a*b").fits("acb"));
        let rust = Filter::Endings(vec!["rs".to_owned()], "Rust".to_owned());
        assert!(rust.fits("a/b.RS") && !rust.fits("rs") && !rust.fits("a.rs/b"));
        assert!(Filter::Named("config".to_owned()).fits("a/Config.toml"));
    }
}
