//! JSON, and what is like it: names and values without quotes, single quotes, a comma too many.

use super::{Builder, Kind, MASK, MOST_DEPTH};

/// Reads one value that begins at the byte `at` of `text`, and says where it ends.
pub(super) fn read(text: &str, at: usize, parent: Option<usize>, name: &str, builder: &mut Builder) -> usize {
    let mut reader = Reader { text, at, builder };
    reader.value(parent, name, 0);
    reader.at
}

/// Whether a value that is no single word begins at the byte `at`. `last` is where the last bracket of each kind is.
pub(super) fn begins(text: &str, at: usize, last: [Option<usize>; 2]) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let ends = |last: Option<usize>| last.is_some_and(|last| last > at);
    let [brace, bracket] = last;
    match rest.chars().next() {
        Some('{') => ends(brace),
        Some('[') => {
            let line = rest.get(1..).unwrap_or_default().lines().next().unwrap_or_default();
            // A number in brackets before a line is no list.
            let plain = || match line.trim_start().split_once(']') {
                Some((_, behind)) => !behind.trim_matches([',', '}', ']', ' ']).is_empty(),
                None => true,
            };
            ends(bracket) && !(line.trim_start().starts_with(char::is_alphanumeric) && plain())
        }
        _ => false,
    }
}

struct Reader<'t, 'b> {
    text: &'t str,
    at: usize,
    builder: &'b mut Builder,
}

impl Reader<'_, '_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn step(&mut self) {
        self.at = self.at.saturating_add(self.peek().map_or(1, char::len_utf8));
    }

    fn skip(&mut self, also: &[char]) {
        while self.peek().is_some_and(|c| c.is_whitespace() || also.contains(&c)) {
            self.step();
        }
    }

    fn value(&mut self, parent: Option<usize>, name: &str, depth: usize) {
        self.skip(&[]);
        let start = self.at;
        match self.peek() {
            Some('{') if depth < MOST_DEPTH => {
                let own = self.builder.push(parent, name, start, Kind::Map);
                self.step();
                self.entries(own, depth);
            }
            Some('[') if depth < MOST_DEPTH => {
                let own = self.builder.push(parent, name, start, Kind::List);
                self.step();
                self.elements(own, depth);
            }
            Some(_) => {
                let end = self.scalar(&[',', '}', ']', '\n']);
                let text = self.text.get(start..end).unwrap_or_default().to_owned();
                self.builder.value(parent, name, start, &text);
            }
            None => {}
        }
    }

    fn entries(&mut self, own: usize, depth: usize) {
        loop {
            // What nobody is trusted for may have hidden the end of a map.
            self.skip(&[',', MASK]);
            match self.peek() {
                None | Some('{') => return,
                Some('}' | ']') => return self.step(),
                Some(_) => {}
            }
            let (start, end) = (self.at, self.scalar(&[':', ',', '}']));
            let name = self.text.get(start..end).unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned();
            self.skip(&[]);
            if self.peek() == Some(':') {
                self.step();
                self.value(Some(own), &name, depth.saturating_add(1));
            } else {
                self.builder.value(Some(own), "", start, &name);
            }
        }
    }

    fn elements(&mut self, own: usize, depth: usize) {
        loop {
            self.skip(&[',', MASK]);
            match self.peek() {
                None => return,
                Some(']' | '}') => return self.step(),
                Some(_) => self.value(Some(own), "", depth.saturating_add(1)),
            }
        }
    }

    /// Passes over a word, or a text in quotes; says where it ends. It moves on at all events.
    fn scalar(&mut self, ends: &[char]) -> usize {
        let quote = self.peek().filter(|c| matches!(c, '"' | '\''));
        let begin = self.at;
        self.step();
        if let Some(quote) = quote {
            let mut escaped = false;
            while let Some(c) = self.peek() {
                self.step();
                if c == quote && !escaped {
                    return self.at;
                }
                escaped = c == '\\' && !escaped;
            }
            return self.at;
        }
        let first = self.text.get(begin..self.at).and_then(|first| first.chars().next());
        if first.is_some_and(|c| ends.contains(&c)) {
            return self.at;
        }
        while self.peek().is_some_and(|c| !ends.contains(&c)) {
            self.step();
        }
        self.at
    }
}
