//! Where a node keeps what drivers may lease.

use std::collections::BTreeMap;

use ephor_base::Secret;
use ephor_kernel::Secrets;

use crate::{config::Key, files};

/// Secrets from the files and the variables of the environment that the configuration names.
pub(crate) struct Keyring(pub(crate) BTreeMap<String, Key>);

impl Secrets for Keyring {
    fn secret(&self, name: &str) -> Option<Secret<String>> {
        let text = match self.0.get(name)? {
            Key::File(file) => files::named(file, files::MOST_TEXT).ok()?,
            Key::Variable(name) => std::env::var(name).ok()?,
        };
        let key = text.trim().to_owned();
        (!key.is_empty()).then(|| Secret::new(key))
    }
}
