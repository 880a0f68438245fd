//! Texts of lines: YAML, tables, blocks, and lines that are nothing else.

use std::collections::BTreeSet;

use super::{Builder, Kind, MASK, json};

/// More values of JSON than so many are not looked for on their lines.
const MOST_VALUES: usize = 4096;
/// A name has no more words.
const MOST_WORDS: usize = 5;

/// A line, with how far it is set in.
#[derive(Clone, Copy, Debug)]
struct Line<'t> {
    indent: usize,
    /// At which byte of the text its first sign is.
    at: usize,
    /// Without what it is set in by, and without what is behind it.
    text: &'t str,
}

/// What is open while lines are read.
struct Open {
    indent: usize,
    node: usize,
}

pub(super) fn read(text: &str, builder: &mut Builder) {
    let root = builder.push(None, "", 0, Kind::List);
    let last = [text.rfind('}'), text.rfind(']')];
    let mut reader = Reader { text, root, last, builder, open: Vec::new(), block: None, values: 0, table: None };
    let mut at = 0_usize;
    while at < text.len() {
        at = reader.line(at);
    }
}

struct Reader<'t, 'b> {
    text: &'t str,
    root: usize,
    /// Where the last brace and the last bracket are.
    last: [Option<usize>; 2],
    builder: &'b mut Builder,
    /// The lists and maps that the next line may be of, each set in further.
    open: Vec<Open>,
    /// The block of `key: value` that is being read, with the names in it.
    block: Option<(usize, BTreeSet<String>)>,
    /// How many values of JSON there were.
    values: usize,
    /// The names of the columns of the table that is being read.
    table: Option<Vec<String>>,
}

impl<'t> Reader<'t, '_> {
    /// Reads the line that begins at the byte `at`, with what belongs to it, and says where the next begins.
    fn line(&mut self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let end = rest.find('\n').map_or(self.text.len(), |len| at.saturating_add(len));
        let next = end.saturating_add(1);
        let whole = self.text.get(at..end).unwrap_or_default();
        let indent = whole.len().saturating_sub(whole.trim_start().len());
        let line = Line { indent, at: at.saturating_add(indent), text: whole.trim() };
        if self.ends_a_block(line.text) {
            (self.block, self.table) = (None, None);
            self.open.clear();
            return next;
        }
        while self.open.last().is_some_and(|open| open.indent > indent) {
            self.open.pop();
        }
        if json::begins(self.text, line.at, self.last) {
            (self.block, self.table) = (None, None);
            let root = Some(self.root);
            let behind = json::read(self.text, line.at, root, "", self.builder);
            self.values = self.values.saturating_add(1);
            if behind > line.at && self.values < MOST_VALUES {
                return self.behind(behind);
            }
            return next.max(behind);
        }
        if let Some(item) = line.text.strip_prefix("- ") {
            return self.item(line, item, end);
        }
        let top = line.indent == 0 || self.open.is_empty();
        // At the top, a name of several words is no key.
        if let Some((key, value)) = keyed(line.text).filter(|(key, _)| !top || !key.contains(' ')) {
            return self.entry(line, key, value, end);
        }
        self.plain(line);
        next
    }

    /// Where to go on behind a value that ends at the byte `at`: with another one on the same line, or with the next line.
    fn behind(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let next = rest.trim_start_matches([',', ';', ' ']);
        let begin = at.saturating_add(rest.len().saturating_sub(next.len()));
        if next.starts_with(['{', '[']) {
            return begin;
        }
        rest.find('\n').map_or(self.text.len(), |len| at.saturating_add(len).saturating_add(1))
    }

    fn ends_a_block(&self, line: &str) -> bool {
        line.is_empty()
            || line.starts_with("---")
            || line.starts_with("===")
            || line.starts_with("BEGIN:")
            || line.starts_with("END:")
    }

    /// An element of a list: a value, or the first entry of a record.
    fn item(&mut self, line: Line<'t>, item: &'t str, end: usize) -> usize {
        (self.block, self.table) = (None, None);
        let begin = line.at.saturating_add(2);
        let lead = item.len().saturating_sub(item.trim_start().len());
        let (at, item) = (begin.saturating_add(lead), item.trim_start());
        while self.open.last().is_some_and(|open| open.indent > line.indent) {
            self.open.pop();
        }
        let list = self.open.last().map_or(self.root, |open| open.node);
        if json::begins(self.text, at, self.last) {
            let behind = json::read(self.text, at, Some(list), "", self.builder);
            return self.behind(behind);
        }
        let row = self.builder.push(Some(list), "", at, Kind::Row);
        let inner = line.indent.saturating_add(1);
        self.open.push(Open { indent: inner, node: row });
        match keyed(item) {
            Some((key, value)) => {
                self.value_of(row, key, value, Line { indent: line.indent.saturating_add(2), at, text: item }, end)
            }
            None => {
                self.cells(row, at, item);
                end.saturating_add(1)
            }
        }
    }

    /// `key: value`, of a record that is open, of a block, or of the text.
    fn entry(&mut self, line: Line<'t>, key: &'t str, value: &'t str, end: usize) -> usize {
        if let Some(open) = self.open.last().filter(|open| open.indent <= line.indent && line.indent > 0) {
            let node = open.node;
            return self.value_of(node, key, value, line, end);
        }
        self.open.clear();
        self.table = None;
        let again = self.block.as_ref().is_none_or(|(_, names)| names.contains(key));
        if again {
            let row = self.builder.push(Some(self.root), "", line.at, Kind::Row);
            self.block = Some((row, BTreeSet::new()));
        }
        let Some((row, names)) = &mut self.block else { return end.saturating_add(1) };
        names.insert(key.to_owned());
        let row = *row;
        self.value_of(row, key, value, line, end)
    }

    /// The value behind a key: on the line, or in those that are set in under it.
    fn value_of(&mut self, node: usize, key: &str, value: &'t str, line: Line<'t>, end: usize) -> usize {
        let at = line.at.saturating_add(line.text.len().saturating_sub(value.len()));
        if value.is_empty() || matches!(value, "|" | ">" | "|-" | ">-") {
            let own = self.builder.push(Some(node), key, line.at, self.below(end));
            self.open.push(Open {
                indent: line.indent.saturating_add(usize::from(!self.dashes_at(end, line.indent))),
                node: own,
            });
            return end.saturating_add(1);
        }
        if json::begins(self.text, at, self.last) {
            let behind = json::read(self.text, at, Some(node), key, self.builder);
            return self.behind(behind);
        }
        self.builder.value(Some(node), key, at, value);
        end.saturating_add(1)
    }

    /// What a key opens that has nothing behind it.
    fn below(&self, end: usize) -> Kind {
        let next = self.text.get(end..).unwrap_or_default().trim_start_matches('\n');
        let next = next.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim_start();
        if next.starts_with("- ") || keyed(next).is_none() { Kind::List } else { Kind::Map }
    }

    /// Whether the next line is an element that is set in as far as its key.
    fn dashes_at(&self, end: usize, indent: usize) -> bool {
        let next = self.text.get(end..).unwrap_or_default().trim_start_matches('\n').lines().next().unwrap_or_default();
        next.trim_start().starts_with("- ") && next.len().saturating_sub(next.trim_start().len()) == indent
    }

    /// A line that is a record by itself, or more of the one that it is set in under.
    fn plain(&mut self, line: Line<'t>) {
        // What nobody is trusted for opens nothing and closes nothing.
        if line.text.chars().all(|c| c == MASK) {
            self.builder.value(Some(self.root), "", line.at, line.text);
            return;
        }
        if line.indent > 0
            && let Some(open) = self.open.last()
        {
            let node = open.node;
            self.builder.value(Some(node), "", line.at, line.text);
            return;
        }
        self.block = None;
        let cells = cells(line.text);
        if cells.len() > 1 && is_rule(&cells) {
            return;
        }
        if self.table.is_none() && is_heading(&cells) && self.has_rows(line, cells.len()) {
            self.table = Some(cells.iter().map(|(_, cell)| (*cell).to_owned()).collect());
            return;
        }
        if let Some(names) = names(line.text) {
            let list = self.builder.push(Some(self.root), "", line.at, Kind::List);
            for (at, name) in names {
                self.builder.value(Some(list), "", line.at.saturating_add(at), name);
            }
            self.open.clear();
            return;
        }
        let row = self.builder.push(Some(self.root), "", line.at, Kind::Row);
        self.cells(row, line.at, line.text);
        self.open.clear();
        self.open.push(Open { indent: 1, node: row });
    }

    /// Whether the next line has as many cells, and in one of them a sign that a name does not have.
    fn has_rows(&self, line: Line<'t>, columns: usize) -> bool {
        let behind = self.text.get(line.at.saturating_add(line.text.len())..).unwrap_or_default();
        let mut next = behind.lines().map(str::trim).filter(|line| !line.is_empty()).map(cells);
        let no_name = |cell: &str| !is_name(cell) || cell.contains(|c: char| c.is_ascii_digit() || c == MASK);
        next.find(|cells| !is_rule(cells)).is_some_and(|cells| {
            cells.len() > 1 && cells.len().abs_diff(columns) <= 1 && cells.iter().any(|(_, cell)| no_name(cell))
        })
    }

    /// The cells of a line, each with its name if it has one.
    fn cells(&mut self, row: usize, at: usize, line: &str) {
        let all = cells(line);
        let table = self.table.take();
        // A row that has more cells than columns, or fewer, has none by name.
        let names = table.as_ref().filter(|names| names.len() == all.len());
        for (number, (offset, cell)) in all.iter().enumerate() {
            let start = at.saturating_add(*offset);
            if cell.is_empty() {
                continue;
            }
            let name = names.and_then(|names| names.get(number)).map_or("", String::as_str);
            if !name.is_empty() {
                self.builder.value(Some(row), name, start, cell);
            } else if let Some((key, value)) = keyed(cell).filter(|(key, value)| !value.is_empty() && is_key(key)) {
                let len = cell.len().saturating_sub(value.len());
                self.builder.value(Some(row), key, start.saturating_add(len), value);
            } else {
                self.pairs(row, start, cell);
            }
        }
        self.table = table;
    }

    /// `key=value key=value`, or just words.
    fn pairs(&mut self, row: usize, at: usize, cell: &str) {
        let is_pair = |word: &str| word.split_once('=').is_some_and(|(key, value)| is_name(key) && !value.is_empty());
        if !cell.split(' ').any(is_pair) {
            return self.builder.value(Some(row), "", at, cell);
        }
        let mut offset = 0_usize;
        for word in cell.split(' ') {
            let start = at.saturating_add(offset);
            offset = offset.saturating_add(word.len()).saturating_add(1);
            match word.split_once('=').filter(|(key, value)| is_name(key) && !value.is_empty()) {
                Some((key, value)) => {
                    let len = key.len().saturating_add(1);
                    self.builder.value(Some(row), key, start.saturating_add(len), value);
                }
                None if !word.is_empty() => self.builder.value(Some(row), "", start, word),
                None => {}
            }
        }
    }
}

/// The name and the value of `name: value`; of a calendar or a card also `NAME;KIND=x:value`.
fn keyed(line: &str) -> Option<(&str, &str)> {
    let (key, value) = match line.split_once(": ") {
        Some(pair) => pair,
        None => (line.strip_suffix(':')?, ""),
    };
    let key = key.trim().trim_matches(['"', '\'']);
    // A line with cells has a name in each of them.
    let cells = value.contains(" | ") || value.contains("  ") && value.contains(": ");
    (is_name(key) && !cells).then_some((key, value.trim()))
}

/// The names that a line lists behind a colon, each with where it begins: `Hotels there: A, B and so on, C`.
fn names(line: &str) -> Option<Vec<(usize, &str)>> {
    let (before, list) = line.split_once(": ")?;
    let base = line.len().saturating_sub(list.len());
    let names: Vec<(usize, &str)> =
        split(list, ",").into_iter().map(|(at, name)| (base.saturating_add(at), name)).collect();
    let figures = |text: &str| text.contains(|c: char| c.is_ascii_digit() || c == MASK);
    let fits = |name: &str| !name.is_empty() && name.split(' ').count() <= MOST_WORDS && !figures(name);
    (names.len() > 2 && !figures(before) && names.iter().all(|(_, name)| fits(name))).then_some(names)
}

/// Whether a text may be the name of a value: one word, or a few without a sign.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '/' | '(' | ')');
    !text.is_empty() && text.chars().all(fits) && text.split(' ').count() <= 4 && text.chars().any(char::is_alphabetic)
}

/// Whether a name is one of a value, and not the value itself: `seats`, and not `offer 12`.
fn is_key(name: &str) -> bool {
    !name.contains(|c: char| c.is_ascii_digit())
}

/// The cells of a line, each with where it begins.
fn cells(line: &str) -> Vec<(usize, &str)> {
    let sign = [" | ", "\t", "; "].into_iter().find(|sign| line.contains(sign));
    match sign {
        // Those before the first stroke and behind the last are none.
        Some(" | ") => {
            let mut cells = split(line, "|");
            let outer = |cell: Option<&(usize, &str)>| cell.is_some_and(|(_, cell)| cell.is_empty());
            if line.starts_with('|') && outer(cells.first()) {
                cells.remove(0);
            }
            if line.ends_with('|') && outer(cells.last()) {
                cells.pop();
            }
            cells
        }
        Some(sign) => split(line, sign),
        None => {
            let mut cells = split(line, "  ");
            cells.retain(|(_, cell)| !cell.is_empty());
            cells
        }
    }
}

fn split<'l>(line: &'l str, sign: &str) -> Vec<(usize, &'l str)> {
    let mut at = 0_usize;
    let part = |part: &'l str| {
        let lead = part.len().saturating_sub(part.trim_start().len());
        let start = at.saturating_add(lead);
        at = at.saturating_add(part.len()).saturating_add(sign.len());
        (start, part.trim())
    };
    line.split(sign).map(part).collect()
}

/// Whether a line is drawn between the heading of a table and its rows.
fn is_rule(cells: &[(usize, &str)]) -> bool {
    cells.iter().all(|(_, cell)| cell.chars().all(|c| matches!(c, '-' | ':' | '+')))
}

/// Whether a line may name the columns of those behind it. A figure only ends a word: `last4`.
fn is_heading(cells: &[(usize, &str)]) -> bool {
    let word = |word: &str| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        letters.ends_with(char::is_alphabetic) == (letters.len() < word.len())
            || !word.contains(|c: char| c.is_ascii_digit())
    };
    let name =
        |cell: &str| is_name(cell) && cell.split(' ').all(word) && cell.bytes().filter(u8::is_ascii_digit).count() <= 1;
    cells.len() > 1 && cells.iter().all(|(_, cell)| name(cell))
}
