//! How the text of a list divides into records: JSON, YAML, tables, blocks of `key: value`, and plain lines.
//!
//! Only what is trusted says how a list divides: each part that anybody may have written counts as one sign, whatever is in
//! it. A record is an element of a list, a line, a row of a table, or a block; records may lie in one another. What cannot be
//! read in any of these ways is a plain line.

mod json;
mod lines;

use std::collections::{BTreeMap, BTreeSet};

/// Stands for a part of a list that nobody is trusted for.
pub(super) const MASK: char = '\u{fffc}';
/// So many figures are the number of an account or a telephone.
const LONG: usize = 8;
/// How deep records may lie in one another. What lies deeper is of the one around it.
const MOST_DEPTH: usize = 24;

/// A value of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Field {
    /// The names before it, from its record on, with `_` between them; empty where there are none.
    pub(super) key: String,
    /// At which byte of the text it begins, and what it is.
    pub(super) start: usize,
    pub(super) text: String,
    /// Of which record it is.
    pub(super) record: usize,
}

/// A record of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    /// The record that it lies in.
    pub(super) within: Option<usize>,
    /// What it is called there, if anything, and what the list is called.
    pub(super) name: String,
    pub(super) list: String,
    /// At which byte it begins.
    pub(super) start: usize,
}

/// The records of a text and their values, both in the order of the text.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub(super) records: Vec<Record>,
    pub(super) fields: Vec<Field>,
}

/// What a text is made of, before it is known what of it is a record.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    name: String,
    start: usize,
    kind: Kind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// Values with names.
    Map,
    /// Values without.
    List,
    /// An element of a list, a line or a block that is a record whatever is in it.
    Row,
    Value(String),
}

/// Puts a text together from its nodes.
#[derive(Debug, Default)]
struct Builder {
    nodes: Vec<Node>,
}

impl Builder {
    fn push(&mut self, parent: Option<usize>, name: &str, start: usize, kind: Kind) -> usize {
        self.nodes.push(Node { parent, name: name.to_owned(), start, kind });
        self.nodes.len().saturating_sub(1)
    }

    /// A value, without the quotes around it.
    fn value(&mut self, parent: Option<usize>, name: &str, start: usize, text: &str) {
        let bare = text.trim();
        let lead = text.len().saturating_sub(text.trim_start().len());
        let unquoted = ['"', '\'', '`'].iter().find_map(|sign| bare.strip_prefix(*sign)?.strip_suffix(*sign));
        let start = start.saturating_add(lead).saturating_add(usize::from(unquoted.is_some()));
        self.push(parent, name, start, Kind::Value(unquoted.unwrap_or(bare).to_owned()));
    }

    fn kind(&self, at: usize) -> Option<&Kind> {
        self.nodes.get(at).map(|node| &node.kind)
    }

    /// Whether a node is a record: a row, an element of a list, one of several maps beside each other that have a name in
    /// common, or a value of a map from names to values of one form.
    fn are_records(&self) -> Vec<bool> {
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            node.parent.and_then(|parent| below.get_mut(parent)).into_iter().for_each(|list| list.push(at));
        }
        let is = |node: &Node| {
            let in_a_list = node.parent.and_then(|parent| self.kind(parent)) == Some(&Kind::List);
            (node.kind == Kind::Row || in_a_list || node.parent.is_none()) && node.kind != Kind::List
        };
        let mut are: Vec<bool> = self.nodes.iter().map(is).collect();
        for inner in &below {
            let more = if self.is_of_one_form(inner) { inner.clone() } else { self.alike(inner, &below) };
            more.into_iter().filter_map(|at| are.get_mut(at).map(|own| *own = true)).for_each(drop);
        }
        are
    }

    /// Of the maps among some nodes, those that have a name which another has too.
    fn alike(&self, nodes: &[usize], below: &[Vec<usize>]) -> Vec<usize> {
        let maps = || nodes.iter().copied().filter(|at| self.kind(*at) == Some(&Kind::Map));
        let names = |map: usize| -> BTreeSet<&str> {
            let inner = below.get(map).into_iter().flatten().filter_map(|at| self.nodes.get(*at));
            inner.map(|node| node.name.as_str()).filter(|name| !name.is_empty()).collect()
        };
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        maps().flat_map(names).for_each(|name| {
            let count = count.entry(name).or_default();
            *count = count.saturating_add(1);
        });
        let shares = |map: &usize| names(*map).iter().any(|name| count.get(name).is_some_and(|count| *count > 1));
        maps().filter(shares).collect()
    }

    /// Whether some nodes are named values of one form, as addresses or numbers of accounts are: whose they are, their names
    /// say.
    fn is_of_one_form(&self, nodes: &[usize]) -> bool {
        let form = |at: &usize| match self.nodes.get(*at) {
            Some(Node { name, kind: Kind::Value(text), .. }) if !name.is_empty() => form(text),
            _ => None,
        };
        let mut forms = nodes.iter().map(form);
        let first = forms.next().flatten();
        nodes.len() > 1 && first.is_some() && forms.all(|form| form == first)
    }

    fn build(self) -> Records {
        let are = self.are_records();
        let mut built = Records::default();
        // Of each node, its record and the names from there on.
        let mut of: Vec<(Option<usize>, String)> = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            let (around, path) =
                node.parent.and_then(|parent| of.get(parent)).cloned().unwrap_or((None, String::new()));
            let join = if path.is_empty() || node.name.is_empty() { "" } else { "_" };
            let named = format!("{path}{join}{}", node.name);
            let own = if are.get(at) == Some(&true) {
                let list = node.parent.and_then(|parent| self.nodes.get(parent)).map_or("", |list| &list.name);
                let (name, list) = (node.name.clone(), list.to_owned());
                built.records.push(Record { within: around, name, list, start: node.start });
                let keeps = matches!(node.kind, Kind::Value(_)) && node.name.is_empty();
                (built.records.len().checked_sub(1), if keeps { path } else { String::new() })
            } else {
                (around, named.clone())
            };
            if let (Kind::Value(text), Some(record)) = (&node.kind, own.0) {
                // The value of a line that is nothing else keeps the name of the list that it is in.
                let key = if own.1.is_empty() { named } else { own.1.clone() };
                built.fields.push(Field { key, start: node.start, text: text.clone(), record });
            }
            of.push(own);
        }
        built.fields.sort_by_key(|field| field.start);
        built
    }
}

impl Records {
    /// Reads a text in which each part that nobody is trusted for is a [`MASK`].
    pub(super) fn read(text: &str) -> Self {
        let mut builder = Builder::default();
        lines::read(text, &mut builder);
        builder.build()
    }
}

/// The form of a value that is somebody's: an address, or a long number.
fn form(text: &str) -> Option<char> {
    let figures = text.bytes().filter(u8::is_ascii_digit).count();
    let address = text.contains('@') && !text.contains(' ');
    address.then_some('@').or_else(|| (figures >= LONG && !text.contains([':', '.'])).then_some('9'))
}
