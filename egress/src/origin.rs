//! What a configuration may name as a place to connect to.

use std::{fmt, net::IpAddr, str::FromStr};

use reqwest::Url;

use crate::address::is_loopback;

/// The base URL of a provider, such as `https://api.openai.com/v1`: everything under it may be asked.
///
/// The scheme is `https`, or `http` where the host is this machine. It carries no user name, password, query or
/// fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BaseUrl(Url);

/// A text that cannot be a base URL.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadBaseUrl {
    /// Not a URL at all, or one of another scheme.
    #[error("`{0}` is not a base URL: one looks like `https://api.example.com/v1`")]
    NotUrl(String),
    /// The connection would not be encrypted.
    #[error("`{0}` is not encrypted: `http` is only for this machine (`http://127.0.0.1:PORT/…`); use `https`")]
    Plain(String),
    /// It carries what does not belong to a base URL. The text is not shown, because it may hold a password.
    #[error("a base URL has no user name, password, query or fragment; a key is kept apart from it")]
    Extra,
}

impl BaseUrl {
    /// Host and port as a person writes them; the port only where it is not the scheme's own.
    #[must_use]
    pub fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether it names this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_this_machine(&self.0)
    }

    /// The host without the port.
    pub(crate) fn name(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// `path` under this URL.
    pub(crate) fn under(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let base = self.0.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{}", path.trim_start_matches('/')));
        url
    }

    /// `path` under this URL with a query, which may be empty.
    pub(crate) fn asked(&self, path: &str, query: &str) -> Url {
        let mut url = self.under(path);
        url.set_query(Some(query).filter(|query| !query.is_empty()));
        url
    }
}

/// The proxy that connections go through, such as `http://proxy.example.com:3128`: scheme, host and port.
///
/// The scheme may be `http`: what goes through it is encrypted end to end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProxyUrl(Url);

/// A text that cannot be a proxy's URL. The text is not shown, because it may hold a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a proxy is given as `http://HOST:PORT` or `https://HOST:PORT`, without user name, password or path")]
pub struct BadProxyUrl;

impl ProxyUrl {
    pub(crate) const fn url(&self) -> &Url {
        &self.0
    }

    pub(crate) fn name(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    pub(crate) fn is_loopback(&self) -> bool {
        is_this_machine(&self.0)
    }
}

impl FromStr for ProxyUrl {
    type Err = BadProxyUrl;

    fn from_str(text: &str) -> Result<Self, BadProxyUrl> {
        let url = Url::parse(text.trim()).map_err(|_| BadProxyUrl)?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.path() == "/";
        let fits = is_plain && matches!(url.scheme(), "http" | "https") && url.has_host();
        fits.then_some(Self(url)).ok_or(BadProxyUrl)
    }
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address: Option<IpAddr> =
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok();
    address.map_or_else(|| is_local_name(host), is_loopback)
}

/// RFC 6761, section 6.3: these names are this machine, whatever a name server says.
fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

impl FromStr for BaseUrl {
    type Err = BadBaseUrl;

    fn from_str(text: &str) -> Result<Self, BadBaseUrl> {
        // Before the text is repeated in an error: it may hold a password even where it is no URL.
        if text.contains(['@', '?', '#']) {
            return Err(BadBaseUrl::Extra);
        }
        let url = Url::parse(text.trim()).map_err(|_| BadBaseUrl::NotUrl(text.to_owned()))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(BadBaseUrl::NotUrl(text.to_owned()));
        }
        let base = Self(url);
        if !base.is_encrypted() && !base.is_loopback() {
            return Err(BadBaseUrl::Plain(text.to_owned()));
        }
        Ok(base)
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{BadBaseUrl, BaseUrl, ProxyUrl};

    fn base(text: &str) -> BaseUrl {
        text.parse().unwrap()
    }

    #[test]
    fn a_path_goes_under_the_base_whatever_its_slashes() {
        for text in ["https://api.example.com/v1", "https://api.example.com/v1/"] {
            assert_eq!(base(text).under("chat/completions").as_str(), "https://api.example.com/v1/chat/completions");
        }
    }

    #[test]
    fn plain_http_is_only_for_this_machine() {
        for text in ["http://127.0.0.1:11434/v1", "http://localhost:8000", "http://[::1]:80/v1", "http://127.1/v1"] {
            assert!(base(text).is_loopback(), "{text}");
        }
        for text in [
            "http://api.example.com/v1",
            "http://192.168.1.5/v1",
            "http://169.254.169.254/",
            "http://localhost.example.com",
        ] {
            assert_eq!(text.parse::<BaseUrl>(), Err(BadBaseUrl::Plain(text.to_owned())));
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused_and_no_password_is_repeated() {
        for text in ["", "api.example.com", "ftp://example.com", "file:///etc/passwd", "https://"] {
            assert!(matches!(text.parse::<BaseUrl>(), Err(BadBaseUrl::NotUrl(_))), "{text}");
        }
        for text in [
            "https://me:hunter2@example.com",
            "https://example.com/?key=hunter2",
            "me:hunter2@example.com",
            "https://example.com/#x",
        ] {
            let error = text.parse::<BaseUrl>().unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn a_proxy_is_a_scheme_a_host_and_a_port() {
        assert!("http://proxy.example.com:3128".parse::<ProxyUrl>().is_ok());
        for text in ["socks5://example.com", "http://me:x@example.com", "http://example.com/path", "example.com:3128"] {
            assert!(text.parse::<ProxyUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_host_is_named_with_an_unusual_port_only() {
        assert_eq!(base("https://api.example.com:443/v1").host(), "api.example.com");
        assert_eq!(base("http://127.0.0.1:11434/v1").host(), "127.0.0.1:11434");
    }
}
