//! Where a node keeps what drivers may lease.

use std::path::PathBuf;

use ephor_base::Secret;
use ephor_kernel::Secrets;

/// The variable that holds the key of the provider `openai`.
pub(crate) const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// Secrets from the files the configuration names, and from the environment of the node.
pub(crate) struct Keyring {
    pub(crate) openai_file: Option<PathBuf>,
}

impl Secrets for Keyring {
    fn secret(&self, name: &str) -> Option<Secret<String>> {
        if name != "openai" {
            return None;
        }
        let text = match &self.openai_file {
            Some(file) => std::fs::read_to_string(file).ok()?,
            None => std::env::var(OPENAI_KEY).ok()?,
        };
        let key = text.trim().to_owned();
        (!key.is_empty()).then(|| Secret::new(key))
    }
}
