//! Places: files and folders as people name them.

use super::{
    intent::{File, Filter, Scope},
    token::{Kind, Token},
};

const ENDINGS: &[&str] = &[
    "md",
    "txt",
    "rs",
    "toml",
    "json",
    "jsonl",
    "yaml",
    "yml",
    "lock",
    "py",
    "js",
    "mjs",
    "cjs",
    "ts",
    "tsx",
    "jsx",
    "c",
    "h",
    "cpp",
    "hpp",
    "cc",
    "cs",
    "go",
    "java",
    "kt",
    "rb",
    "php",
    "sh",
    "bash",
    "zsh",
    "fish",
    "html",
    "htm",
    "css",
    "scss",
    "xml",
    "csv",
    "tsv",
    "log",
    "cfg",
    "conf",
    "config",
    "ini",
    "sql",
    "proto",
    "wit",
    "wasm",
    "pdf",
    "png",
    "jpg",
    "jpeg",
    "svg",
    "gif",
    "gz",
    "zip",
    "tar",
    "env",
    "swift",
    "lua",
    "pl",
    "hs",
    "ml",
    "ex",
    "exs",
    "erl",
    "r",
    "tex",
    "rst",
    "adoc",
    "org",
    "mk",
    "cmake",
    "gradle",
    "properties",
    "diff",
    "patch",
    "bak",
    "orig",
    "old",
    "tmp",
    "ipynb",
    "vue",
    "svelte",
    "nix",
    "tf",
    "bat",
    "ps1",
    "out",
    "dat",
    "text",
    "markdown",
];

/// Files that are known by their name alone.
const NAMES: &[&str] = &[
    "makefile",
    "dockerfile",
    "justfile",
    "gemfile",
    "rakefile",
    "procfile",
    "vagrantfile",
    "jenkinsfile",
    "codeowners",
];

/// What people call files whose exact name they leave out.
const CALLED: &[(&str, &[&str])] = &[
    ("readme", &["readme"]),
    ("licence", &["licence", "license", "copying"]),
    ("license", &["license", "licence", "copying"]),
    ("licenses", &["license", "licence", "copying"]),
    ("licences", &["licence", "license", "copying"]),
    ("licensing", &["license", "licence", "copying"]),
    ("changelog", &["changelog", "changes", "history"]),
    ("contributing", &["contributing"]),
];

/// Kinds of files, as people call them.
const LANGUAGES: &[(&str, &str, &[&str])] = &[
    ("rust", "Rust", &["rs"]),
    ("python", "Python", &["py"]),
    ("javascript", "JavaScript", &["js", "mjs", "cjs", "jsx"]),
    ("js", "JavaScript", &["js", "mjs", "cjs", "jsx"]),
    ("typescript", "TypeScript", &["ts", "tsx"]),
    ("markdown", "Markdown", &["md", "markdown"]),
    ("md", "Markdown", &["md", "markdown"]),
    ("text", "text", &["txt"]),
    ("txt", "text", &["txt"]),
    ("toml", "TOML", &["toml"]),
    ("json", "JSON", &["json", "jsonl"]),
    ("yaml", "YAML", &["yaml", "yml"]),
    ("yml", "YAML", &["yaml", "yml"]),
    ("html", "HTML", &["html", "htm"]),
    ("css", "CSS", &["css", "scss"]),
    ("java", "Java", &["java"]),
    ("go", "Go", &["go"]),
    ("c", "C", &["c", "h"]),
    ("c++", "C++", &["cpp", "hpp", "cc", "h"]),
    ("cpp", "C++", &["cpp", "hpp", "cc", "h"]),
    ("shell", "shell", &["sh", "bash", "zsh"]),
    ("ruby", "Ruby", &["rb"]),
    ("csv", "CSV", &["csv"]),
    ("log", "log", &["log"]),
    ("xml", "XML", &["xml"]),
    ("sql", "SQL", &["sql"]),
];

pub(super) const FOLDER: [&str; 8] =
    ["folder", "directory", "dir", "subfolder", "subdirectory", "folders", "directories", "crate"];

const WORKSPACE: [&str; 15] = [
    "project",
    "repo",
    "repository",
    "workspace",
    "codebase",
    "code",
    "folder",
    "directory",
    "dir",
    "here",
    "everything",
    "tree",
    "sources",
    "source",
    "files",
];

const BEFORE: [&str; 14] = [
    "in",
    "under",
    "inside",
    "within",
    "from",
    "throughout",
    "across",
    "through",
    "of",
    "at",
    "among",
    "below",
    "beneath",
    "into",
];

const DETERMINERS: [&str; 15] = [
    "the", "my", "our", "this", "that", "these", "all", "any", "every", "each", "whole", "entire", "current", "a",
    "your",
];

/// Words after "in" that are no place.
const NOWHERE: [&str; 25] = [
    "general",
    "total",
    "detail",
    "details",
    "order",
    "case",
    "it",
    "them",
    "there",
    "brackets",
    "short",
    "brief",
    "use",
    "all",
    "english",
    "words",
    "which",
    "what",
    "one",
    "particular",
    "lowercase",
    "uppercase",
    "mind",
    "question",
    "parallel",
];

pub(super) fn is_word(token: &Token, words: &[&str]) -> bool {
    token.kind == Kind::Word && words.contains(&token.lower.as_str())
}

pub(super) fn is_determiner(token: &Token) -> bool {
    is_word(token, &DETERMINERS)
}

/// The path that `token` is, if it looks like one by itself.
pub(super) fn path(token: &Token) -> Option<String> {
    let text = token.text.as_str();
    let odd = |c: char| c.is_control() || "()<>{}|\"$*?[]=^\\".contains(c);
    if token.kind == Kind::Regex || text.is_empty() || text.contains(odd) || text.contains("::") || text.contains("//")
    {
        return None;
    }
    if token.kind == Kind::Word && text.contains(char::is_whitespace) {
        return None;
    }
    let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or(text);
    let is_path = text == "."
        || text == ".."
        || (text.contains('/') && text.chars().any(char::is_alphanumeric) && !text.contains(char::is_whitespace))
        || has_ending(name)
        || (name.starts_with('.') && name.len() > 2 && !name.contains(char::is_whitespace))
        || NAMES.contains(&token.lower.as_str())
        || is_shouted_name(text);
    is_path.then(|| clean(text))
}

fn has_ending(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    !stem.is_empty() && ENDINGS.contains(&ending.to_lowercase().as_str())
}

/// `README`, `LICENSE-MIT`: in capitals such a word names the file itself.
fn is_shouted_name(text: &str) -> bool {
    let stem = text.split('-').next().unwrap_or(text).to_lowercase();
    text.contains('-') && CALLED.iter().any(|(name, _)| *name == stem) && text.chars().any(char::is_uppercase)
}

/// A path in the form the tools take.
pub(super) fn clean(text: &str) -> String {
    let trimmed = text.trim_end_matches('/');
    let trimmed = trimmed.strip_prefix("./").unwrap_or(trimmed);
    if trimmed.is_empty() { if text.starts_with('/') { "/" } else { "." } } else { trimmed }.to_owned()
}

/// The file that these tokens name: a path, a quoted name, or what it is called.
pub(super) fn file(tokens: &[Token]) -> Option<File> {
    if let Some(path) = tokens.iter().find_map(path) {
        return Some(File::Path(path));
    }
    if let Some(quoted) = tokens.iter().find(|token| token.kind == Kind::Quoted && token.text.contains('.')) {
        return Some(File::Path(clean(&quoted.text)));
    }
    tokens.iter().filter(|token| token.kind == Kind::Word).find_map(|token| called(&token.lower)).map(File::Called)
}

/// Every path among `tokens`.
pub(super) fn paths(tokens: &[Token]) -> Vec<String> {
    tokens.iter().filter_map(path).collect()
}

fn called(word: &str) -> Option<&'static [&'static str]> {
    CALLED.iter().find(|(name, _)| *name == word).map(|(_, stems)| *stems)
}

/// The kind of files that `word` says, as in "rust files" or `*.rs`.
pub(super) fn filter(token: &Token) -> Option<Filter> {
    let word = token.lower.as_str();
    if token.kind == Kind::Regex {
        return None;
    }
    if let Some((_, words, endings)) = LANGUAGES.iter().find(|(name, ..)| *name == word) {
        return Some(Filter::Endings(endings.iter().map(|ending| (*ending).to_owned()).collect(), (*words).to_owned()));
    }
    if word.contains('*') && !word.contains(['(', '\\', '[']) {
        return Some(Filter::Glob(token.text.clone()));
    }
    let ending = word.strip_prefix('.').filter(|ending| ENDINGS.contains(ending))?;
    Some(Filter::Endings(vec![ending.to_owned()], format!("`.{ending}`")))
}

/// Takes the places out of `tokens`: "in src", "under the docs folder", "in all rust files", "in this project".
pub(super) fn take_scope(tokens: &[Token]) -> (Scope, Vec<Token>) {
    let mut scope = Scope::default();
    let mut rest: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let after = tokens.get(at + 1..).unwrap_or_default();
        let taken = if is_word(token, &BEFORE) { place(after, token.lower == "of", &mut scope) } else { 0 };
        if taken > 0 {
            at += 1 + taken;
            while let Some((path, length)) =
                another(tokens.get(at..).unwrap_or_default()).filter(|_| scope.path.is_some())
            {
                scope.also.push(path);
                at += length;
            }
        } else {
            rest.push(token.clone());
            at += 1;
        }
    }
    (scope, rest)
}

/// "and docs", "or the docs folder" after a place, and how many tokens that takes.
fn another(tokens: &[Token]) -> Option<(String, usize)> {
    let (join, after) = tokens.split_first()?;
    let mut next = Scope::default();
    let taken = if is_word(join, &["and", "or"]) { place(after, false, &mut next) } else { 0 };
    // What follows must be a place and nothing more: "in src and how …" goes on.
    let path = next.path.filter(|_| ends(after.get(taken)))?;
    Some((path, taken + 1))
}

/// Reads a place at the beginning of `tokens` into `scope`; returns how many tokens it takes, none if there is no place.
fn place(tokens: &[Token], after_of: bool, scope: &mut Scope) -> usize {
    let skipped = tokens.iter().take_while(|token| is_determiner(token)).count();
    let Some((first, after)) = tokens.get(skipped..).and_then(<[Token]>::split_first) else { return 0 };
    let next = after.first();
    let next_is = |words: &[&str]| next.is_some_and(|next| is_word(next, words));
    // "rust files", "*.md", ".toml files"
    if let Some(kind) =
        filter(first).filter(|_| next_is(&["files", "file", "sources", "code"]) || first.text.contains('*'))
    {
        scope.only = Some(kind);
        return skipped + 1 + usize::from(next_is(&["files", "file", "sources", "code"]));
    }
    // "the folder src", "the file a.txt"
    let names = FOLDER.contains(&first.lower.as_str()) || first.lower == "file";
    if let Some(named) = next.filter(|next| first.kind == Kind::Word && names && is_name(next)) {
        let called = usize::from(is_word(named, &["called", "named"]));
        if let Some(named) = after.get(called).filter(|named| is_name(named)) {
            scope.path = Some(clean(&named.text));
            return skipped + 2 + called;
        }
    }
    if let Some(path) = path(first) {
        scope.path = Some(path);
        let noun = next_is(&FOLDER) || next_is(&["file", "files"]);
        return skipped + 1 + usize::from(noun);
    }
    if next_is(&FOLDER) && !after_of {
        if !is_word(first, &["same", "root", "top", "working", "project", "workspace"]) {
            scope.path = Some(clean(&first.text));
        }
        return skipped + 2;
    }
    if is_word(first, &WORKSPACE) {
        return if after_of && !ends(next) {
            0
        } else {
            skipped + 1 + usize::from(next_is(&WORKSPACE) || next_is(&["base"]))
        };
    }
    let is_place = is_name(first) && !is_word(first, &NOWHERE) && super::needle::mark(first).is_none();
    let is_bare = !after_of && ends(next) && is_place;
    if is_bare {
        scope.path = Some(clean(&first.text));
        return skipped + 1;
    }
    0
}

/// A word, or quoted text, that may be the name of a file or folder.
fn is_name(token: &Token) -> bool {
    let fits = |c: char| c.is_alphanumeric() || "._-/ ".contains(c);
    token.kind != Kind::Regex && !token.text.is_empty() && token.text.chars().all(fits)
}

/// Whether a bare word that stands before `next` ends there.
fn ends(next: Option<&Token>) -> bool {
    next.is_none_or(|next| {
        let words = [
            "for",
            "and",
            "or",
            "that",
            "which",
            "with",
            "containing",
            "please",
            "again",
            "too",
            "contain",
            "mention",
            "use",
            "is",
            "are",
            "by",
            "as",
            "about",
            "then",
            "in",
            "to",
            "per",
        ];
        is_word(next, &words)
    })
}

#[cfg(test)]
mod tests {
    use super::{super::token::tokens, Scope, path, take_scope};

    fn paths(text: &str) -> Vec<String> {
        tokens(text).iter().filter_map(path).collect()
    }

    #[test]
    fn paths_are_known_by_their_look() {
        assert_eq!(
            paths("README.md src/ ./a/b .gitignore Makefile LICENSE-MIT ../x a.tar.gz"),
            ["README.md", "src", "a/b", ".gitignore", "Makefile", "LICENSE-MIT", "../x", "a.tar.gz"]
        );
        assert!(
            paths(".unwrap() foo.bar(baz) std::fs $HOME 3.5 e.g. TODO and/or?").iter().all(|path| path == "and/or")
        );
    }

    #[test]
    fn places_are_taken_out() {
        for (text, place, left) in [
            ("TODOs in src", Some("src"), "TODOs"),
            ("TODOs under the docs folder please", Some("docs"), "TODOs please"),
            ("x in the folder my/code", Some("my/code"), "x"),
            ("TODOs in this project", None, "TODOs"),
            ("in src for y", Some("src"), "for y"),
            ("x in total", None, "x in total"),
            ("lines of README.md", Some("README.md"), "lines"),
        ] {
            let (Scope { path, .. }, rest) = take_scope(&tokens(text));
            let rest: Vec<_> = rest.into_iter().map(|token| token.text).collect();
            assert_eq!((path.as_deref(), rest.join(" ").as_str()), (place, left), "{text}");
        }
    }
}
