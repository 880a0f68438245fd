//! JSON objects one after the other, whatever stands between them: nothing, a line break as in NDJSON, or the commas of a list.

use super::Uncut;

/// Cuts by counting braces outside of strings. Each byte is looked at once.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    most: usize,
    object: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Objects {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, object: Vec::new(), depth: 0, in_string: false, escaped: false }
    }

    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<String>, Uncut> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.depth == 0 {
                match byte {
                    b'{' => {}
                    b',' | b'[' | b']' => continue,
                    byte if byte.is_ascii_whitespace() => continue,
                    _ => return Err(Uncut::Foreign),
                }
            }
            if self.object.len() >= self.most {
                return Err(Uncut::TooLong);
            }
            self.object.push(*byte);
            self.count(*byte);
            if self.depth == 0 {
                *bytes = bytes.get(at + 1..).unwrap_or_default();
                let object = std::mem::take(&mut self.object);
                return Ok(Some(String::from_utf8_lossy(&object).into_owned()));
            }
        }
        *bytes = &[];
        Ok(None)
    }

    pub(super) fn finish(self) -> Option<String> {
        (!self.object.is_empty()).then(|| String::from_utf8_lossy(&self.object).into_owned())
    }

    fn count(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            b'{' if !self.in_string => self.depth += 1,
            b'}' if !self.in_string => self.depth -= 1,
            _ => {}
        }
    }
}
