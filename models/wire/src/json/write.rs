//! Writes an object in the order of its fields, so that the same request has the same bytes: a provider's cache goes by its beginning.

/// An object that is being written.
pub(crate) struct Object<'a> {
    to: &'a mut Vec<u8>,
    is_first: bool,
}

/// A list that is being written.
pub(crate) struct List<'a> {
    to: &'a mut Vec<u8>,
    is_first: bool,
}

/// The bytes of the object that `write` writes.
pub(crate) fn object(write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    braces(&mut bytes, write);
    bytes
}

fn braces(to: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
    to.push(b'{');
    write(&mut Object { to, is_first: true });
    to.push(b'}');
}

fn string(to: &mut Vec<u8>, text: &str) {
    // A string always serialises, and a vector takes every byte.
    let _infallible = serde_json::to_writer(to, text);
}

fn comma(to: &mut Vec<u8>, is_first: &mut bool) {
    if !std::mem::take(is_first) {
        to.push(b',');
    }
}

impl Object<'_> {
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        comma(self.to, &mut self.is_first);
        string(self.to, key);
        self.to.push(b':');
        self.to
    }

    pub(crate) fn text(&mut self, key: &str, text: &str) {
        string(self.key(key), text);
    }

    /// JSON as it is.
    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        self.key(key).extend_from_slice(json.as_bytes());
    }

    pub(crate) fn number(&mut self, key: &str, number: u64) {
        self.raw(key, &number.to_string());
    }

    /// A number of thousandths, as a decimal fraction.
    pub(crate) fn thousandths(&mut self, key: &str, thousandths: u16) {
        self.raw(key, &(f64::from(thousandths) / 1000.0).to_string());
    }

    pub(crate) fn truth(&mut self, key: &str, is_true: bool) {
        self.raw(key, if is_true { "true" } else { "false" });
    }

    pub(crate) fn object(&mut self, key: &str, write: impl FnOnce(&mut Object<'_>)) {
        braces(self.key(key), write);
    }

    pub(crate) fn list(&mut self, key: &str, write: impl FnOnce(&mut List<'_>)) {
        let to = self.key(key);
        to.push(b'[');
        write(&mut List { to, is_first: true });
        to.push(b']');
    }

    /// The fields of an object that is JSON already, in place of fields of its own.
    pub(crate) fn fields_of(&mut self, json: &str) {
        let inner = json.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default().trim();
        if !inner.is_empty() {
            comma(self.to, &mut self.is_first);
            self.to.extend_from_slice(inner.as_bytes());
        }
    }
}

impl List<'_> {
    pub(crate) fn text(&mut self, text: &str) {
        comma(self.to, &mut self.is_first);
        string(self.to, text);
    }

    /// JSON as it is.
    pub(crate) fn raw(&mut self, json: &str) {
        comma(self.to, &mut self.is_first);
        self.to.extend_from_slice(json.as_bytes());
    }

    pub(crate) fn object(&mut self, write: impl FnOnce(&mut Object<'_>)) {
        comma(self.to, &mut self.is_first);
        braces(self.to, write);
    }
}
