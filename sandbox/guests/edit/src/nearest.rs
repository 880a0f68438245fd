//! The place that a text comes nearest to which was not found, shown to the model that asked for it.

use std::{collections::HashMap, fmt};

use crate::text::{line_at, told};

/// How many places of one line are looked at, and how many lines of what is sought.
const PLACES: usize = 64;
const SOUGHT: usize = 1000;

/// Where a text comes nearest to one that it does not hold. Lines count from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Nearest {
    /// It stands there but for the ends of its lines.
    LineEnds {
        /// Where it begins.
        line: usize,
        /// Whether the text has CRLF there; otherwise LF.
        has_crlf: bool,
    },
    /// It stands there but for spaces, tabs and empty lines.
    Whitespace(Differing),
    /// Some of its lines stand there.
    Lines {
        /// How many of its lines, empty ones left out.
        same: usize,
        /// How many it has, empty ones left out.
        of: usize,
        /// The first that differs.
        first: Differing,
    },
    /// A line that is like its first one.
    Line(Differing),
    /// The text is empty.
    Empty,
    /// Nothing like it stands there.
    Nowhere,
}

/// A line that is not as it was said to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Differing {
    /// Its number.
    pub line: usize,
    /// What was sought there, for people: cut, with control characters spelt out.
    pub sought: String,
    /// What is there, likewise; none behind the last line.
    pub found: Option<String>,
}

impl Nearest {
    /// Where `text` comes nearest to `sought`, which it does not hold.
    pub(crate) fn of(text: &str, sought: &str) -> Self {
        if text.is_empty() {
            return Self::Empty;
        }
        if let Some(line) = but_for_line_ends(text, sought) {
            return Self::LineEnds { line, has_crlf: !sought.contains("\r\n") };
        }
        if let Some(differing) = but_for_whitespace(text, sought) {
            return Self::Whitespace(differing);
        }
        some_lines(text, sought).or_else(|| like(text, sought)).unwrap_or(Self::Nowhere)
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineEnds { line, has_crlf } => {
                let (has, not) = if *has_crlf { ("CRLF (`\\r\\n`)", "LF") } else { ("LF (`\\n`)", "CRLF") };
                write!(f, "At line {line} it stands but for the ends of lines: the file has {has} there, not {not}")
            }
            Self::Whitespace(Differing { line, sought, found }) => {
                let found = found.as_deref().unwrap_or("(the end of the file)");
                write!(f, "Whitespace alone differs: line {line} is `{found}`, not `{sought}`")
            }
            Self::Lines { same, of, first } => write!(f, "Of its {of} lines {same} stand there, but {first}"),
            Self::Line(differing) => write!(f, "The nearest: {differing}"),
            Self::Empty => f.write_str("The file is empty"),
            Self::Nowhere => f.write_str("Nothing like it stands there; read the file again"),
        }
    }
}

impl fmt::Display for Differing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, sought, found } = self;
        match found {
            Some(found) => write!(f, "line {line} is `{found}`, not `{sought}`"),
            None => write!(f, "the file ends before line {line}, which was to be `{sought}`"),
        }
    }
}

fn but_for_line_ends(text: &str, sought: &str) -> Option<usize> {
    let plain = |text: &str| text.replace("\r\n", "\n");
    let text = plain(text);
    text.find(&plain(sought)).map(|at| line_at(&text, at))
}

fn but_for_whitespace(text: &str, sought: &str) -> Option<Differing> {
    let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let sought_bare = bare(sought);
    if sought_bare.is_empty() {
        return None;
    }
    let mut left = bare(text).find(&sought_bare)?;
    // The character that stands at this byte once whitespace is left out.
    let begins = text.char_indices().filter(|(_, c)| !c.is_whitespace()).find(|(_, c)| {
        let is_it = left == 0;
        left = left.saturating_sub(c.len_utf8());
        is_it
    });
    let line = line_at(text, begins?.0);
    let lines = || (line..).zip(text.lines().skip(line.saturating_sub(1)));
    let pairs = || sought.lines().skip_while(|sought| sought.trim().is_empty()).zip(lines());
    let differs = |(sought, (_, found)): &(&str, (usize, &str))| !found.contains(sought);
    let (sought, (line, found)) = pairs().find(differs).or_else(|| pairs().next())?;
    Some(Differing { line, sought: told(sought), found: Some(told(found)) })
}

/// The place at which most lines of `sought` stand where they are to stand.
fn some_lines(text: &str, sought: &str) -> Option<Nearest> {
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = sought.lines().take(SOUGHT).collect();
    let is_said = |line: &&str| !line.trim().is_empty();
    let mut places: HashMap<&str, Vec<usize>> =
        wanted.iter().filter(|line| is_said(line)).map(|line| (*line, Vec::new())).collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(places) = places.get_mut(line).filter(|places| places.len() < PLACES) {
            places.push(at);
        }
    }
    // By how far `sought` would begin behind the first line, and one more than its lines, so that none is before the text.
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (index, line) in wanted.iter().enumerate() {
        for at in places.get(line).into_iter().flatten() {
            let from = at.saturating_add(wanted.len()).saturating_sub(index);
            let votes = votes.entry(from).or_default();
            *votes = votes.saturating_add(1);
        }
    }
    let most = votes.into_iter().max_by_key(|(from, votes)| (*votes, std::cmp::Reverse(*from)));
    let (from, same) = most?;
    let of = wanted.iter().filter(|line| is_said(line)).count();
    let there = |index: usize| from.saturating_add(index).checked_sub(wanted.len());
    let differs = |(index, sought): &(usize, &&str)| there(*index).and_then(|at| lines.get(at)) != Some(sought);
    let (index, sought) = wanted.iter().enumerate().find(differs)?;
    let (line, found) = match there(index) {
        Some(at) => (at.saturating_add(1), lines.get(at).map(|line| told(line))),
        None => (1, lines.first().map(|line| told(line))),
    };
    Some(Nearest::Lines { same, of, first: Differing { line, sought: told(sought), found } })
}

/// The line that has most of its beginning and end in common with the first line of `sought`: half of the longer one at least.
fn like(text: &str, sought: &str) -> Option<Nearest> {
    let wanted = sought.lines().find(|line| !line.trim().is_empty())?;
    let bytes = wanted.trim().as_bytes();
    let common = |line: &str| {
        let line = line.trim().as_bytes();
        let most = bytes.len().min(line.len());
        let front = bytes.iter().zip(line).take_while(|(one, other)| one == other).count();
        let back = bytes.iter().rev().zip(line.iter().rev()).take_while(|(one, other)| one == other).count();
        let common = front.saturating_add(back).min(most);
        (common.saturating_mul(2) >= bytes.len().max(line.len())).then_some(common)
    };
    let scored = (1..).zip(text.lines()).filter_map(|(number, line)| Some((common(line)?, number, line)));
    let (_, line, found) = scored
        .filter(|(common, ..)| *common > 0)
        .max_by_key(|(common, number, _)| (*common, std::cmp::Reverse(*number)))?;
    Some(Nearest::Line(Differing { line, sought: told(wanted), found: Some(told(found)) }))
}
