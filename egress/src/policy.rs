//! What the operator allows.

use std::{net::IpAddr, time::Duration};

use reqwest::Certificate;

use crate::{BaseUrl, ProxyUrl};

/// Where connections may go, and how. `node` makes it from the configuration.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Whose way out it is: the name that stands before its origins, and a blank, where a registration names them. Empty: nothing does.
    pub owner: String,
    /// The base URLs that may be reached: those of the configured providers. None: nothing is reached.
    pub origins: Vec<BaseUrl>,
    /// Addresses that are not public and that a name of `origins`, or the proxy's, may resolve to all the same. An
    /// address that stands in a base URL itself need not be here.
    pub addresses: Vec<IpAddr>,
    /// The proxy for every origin but this machine. The environment's proxies are never used.
    pub proxy: Option<ProxyUrl>,
    /// Certificate authorities trusted beside those of the system.
    pub authorities: Authorities,
    /// Timeouts and caps.
    pub limits: Limits,
}

impl Policy {
    /// An origin as a registration names it.
    pub(crate) fn registered(&self, origin: &BaseUrl) -> String {
        if self.owner.is_empty() { origin.to_string() } else { format!("{} {origin}", self.owner) }
    }
}

/// Timeouts and caps of each request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// From the first lookup of the name to the end of the TLS handshake.
    pub connect: Duration,
    /// From the start to the end of the response's headers, all that a server sends before them included.
    pub first_byte: Duration,
    /// The longest time without a byte within the response.
    pub idle: Duration,
    /// The most bytes of a response.
    pub response_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Three SYN retries take seven seconds.
            connect: Duration::from_secs(10),
            // A local model on a slow machine may read its prompt for over a minute before its first word.
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            // An answer of 100,000 tokens is half a megabyte of text, and twenty times that as events.
            response_bytes: 16 * 1024 * 1024,
        }
    }
}

/// A file that holds no certificates.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no certificate in PEM form in it: {0}")]
pub struct BadAuthority(String);

/// Certificate authorities, for a provider behind a private one.
#[derive(Clone, Debug, Default)]
pub struct Authorities(Vec<Certificate>);

impl Authorities {
    /// The authorities in `pem`, one or more certificates.
    ///
    /// # Errors
    /// [`BadAuthority`] if there is none.
    pub fn parse(pem: &[u8]) -> Result<Self, BadAuthority> {
        let found = Certificate::from_pem_bundle(pem).map_err(|error| BadAuthority(error.to_string()))?;
        if found.is_empty() { Err(BadAuthority("it is empty".to_owned())) } else { Ok(Self(found)) }
    }

    pub(crate) fn certificates(&self) -> impl Iterator<Item = Certificate> {
        self.0.iter().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::Authorities;

    #[test]
    fn a_file_without_a_certificate_is_an_error() {
        assert!(Authorities::parse(b"").is_err());
        assert!(Authorities::parse(b"not a certificate").is_err());
    }
}
