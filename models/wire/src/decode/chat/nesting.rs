//! How deep in an object a text is that comes in pieces.

/// Looks at each byte once.
#[derive(Clone, Debug, Default)]
pub(super) struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Nesting {
    pub(super) fn take(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => {
                    self.begun = true;
                    self.depth += 1;
                }
                // What a model writes need not be balanced.
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Whether there was an object, and it is over.
    pub(super) const fn is_closed(&self) -> bool {
        self.begun && self.depth == 0 && !self.in_string
    }
}
