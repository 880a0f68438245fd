//! Where a node keeps what drivers may lease.

use ephor_base::Secret;
use ephor_kernel::Secrets;

use crate::{
    config::{Key, OPENAI},
    files,
};

/// Secrets from the files and the variables of the environment that the configuration names.
pub(crate) struct Keyring {
    pub(crate) openai: Key,
}

impl Secrets for Keyring {
    fn secret(&self, name: &str) -> Option<Secret<String>> {
        if name != OPENAI {
            return None;
        }
        let text = match &self.openai {
            Key::File(file) => files::named(file, files::MOST_TEXT).ok()?,
            Key::Variable(name) => std::env::var(name).ok()?,
            Key::None => return None,
        };
        let key = text.trim().to_owned();
        (!key.is_empty()).then(|| Secret::new(key))
    }
}
