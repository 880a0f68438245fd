//! One request and its response.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use ephor_base::Secret;
use ephor_kernel::Permit;
use reqwest::{
    Client, Proxy,
    header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT},
    redirect,
};

use crate::{
    BaseUrl, Body, Error, Limits, Policy,
    guard::{Guard, Host, Lookup, SystemLookup},
};

/// How this program names itself to servers.
pub(crate) const AGENT: &str = concat!("ephor/", env!("CARGO_PKG_VERSION"));

/// The way out.
pub struct Egress {
    policy: Policy,
    addresses: Arc<[IpAddr]>,
    lookup: Arc<dyn Lookup>,
    /// One client for each origin of the policy, made at its first use: reading the system's certificate authorities
    /// takes longer than a start should.
    clients: Vec<OnceLock<Client>>,
}

/// A POST of JSON.
#[derive(Debug)]
pub struct Post<'a> {
    /// The base URL, one of the policy's.
    pub base: &'a BaseUrl,
    /// The path under it.
    pub path: &'a str,
    /// The query, without its `?`; empty where there is none.
    pub query: &'a str,
    /// The credential.
    pub key: Option<Key<'a>>,
    /// The other headers, by name. A header that is named twice is sent as it was named last.
    pub headers: Vec<(&'a str, &'a str)>,
    /// JSON.
    pub json: Vec<u8>,
}

/// A credential, and the header that it is sent in.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The header, in lower case, such as `authorization`.
    pub header: &'static str,
    /// What stands before the secret, such as `Bearer ` or nothing.
    pub before: &'static str,
    /// The secret. Blanks around it are not sent.
    pub secret: &'a Secret<String>,
}

/// A response whose body is still to come.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type`, or nothing.
    pub content_type: String,
    /// For how many seconds the server asks to be left alone: `Retry-After`, as RFC 9110 has it, section 10.2.3.
    pub retry_after: Option<u32>,
    /// Where a redirect points. It is not followed.
    pub location: Option<String>,
    headers: HeaderMap,
    /// The bytes.
    pub body: Body,
}

impl Response {
    /// The value of a header, if it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Egress {
    /// A way out under `policy`. Connects to nothing.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self::with_lookup(policy, Arc::new(SystemLookup))
    }

    fn with_lookup(policy: Policy, lookup: Arc<dyn Lookup>) -> Self {
        let addresses = policy.addresses.iter().map(IpAddr::to_canonical).collect();
        let clients = policy.origins.iter().map(|_| OnceLock::new()).collect();
        Self { policy, addresses, lookup, clients }
    }

    /// Sends `post` for the call that `permit` permits, and returns when the response begins. It may go where the permit
    /// names, while that is good: however many posts a call makes, they end at the same deadline. Dropping the future, or the
    /// response, closes the connection.
    ///
    /// # Errors
    /// [`Error`] says whether anything was sent. A response of any status is no error.
    pub async fn post(&self, permit: &Permit, post: Post<'_>) -> Result<Response, Error> {
        if !permit.may_reach(&self.policy.registered(post.base)) {
            return Err(Error::Forbidden(post.base.to_string()));
        }
        let left = permit.left().ok_or(Error::Over)?;
        self.send(left, post).await
    }

    /// [`Egress::post`] below the permit. Private, so that no caller gets round it.
    async fn send(&self, time_limit: Duration, post: Post<'_>) -> Result<Response, Error> {
        let client = self.client(post.base)?;
        let host = post.base.host();
        let Limits { first_byte, idle, response_bytes, .. } = self.policy.limits;
        let headers = headers(&post)?;
        let request = client.post(post.base.asked(post.path, post.query)).headers(headers).body(post.json);
        let begun = first_byte.min(time_limit);
        let mut response = tokio::time::timeout(begun, request.send())
            .await
            .map_err(|_| Error::Silent { host: host.clone(), after: begun })?
            .map_err(|error| Error::of(&host, &error))?;
        let headers = std::mem::take(response.headers_mut());
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        Ok(Response {
            status: response.status().as_u16(),
            content_type: text(CONTENT_TYPE).unwrap_or_default().to_owned(),
            retry_after: text(RETRY_AFTER).and_then(|after| seconds(after, text(DATE))),
            location: text(LOCATION).map(str::to_owned),
            body: Body::new(response, host, idle, response_bytes),
            headers,
        })
    }

    fn client(&self, base: &BaseUrl) -> Result<&Client, Error> {
        let at = self.policy.origins.iter().position(|origin| origin == base);
        let Some(slot) = at.and_then(|at| self.clients.get(at)) else {
            return Err(Error::Forbidden(base.to_string()));
        };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let client = self.build(base).map_err(|error| Error::of(&base.host(), &error))?;
        Ok(slot.get_or_init(|| client))
    }

    fn build(&self, base: &BaseUrl) -> reqwest::Result<Client> {
        let mut hosts = vec![Host { name: base.name().to_owned(), is_local: base.is_loopback() }];
        let mut builder = Client::builder()
            .redirect(redirect::Policy::none())
            // Without this the environment's proxies would be used.
            .no_proxy()
            .connect_timeout(self.policy.limits.connect)
            // A call leaves no connection behind, and each call's address is judged anew.
            .pool_max_idle_per_host(0)
            .http1_only()
            .https_only(base.is_encrypted());
        if let Some(proxy) = self.policy.proxy.as_ref().filter(|_| !base.is_loopback()) {
            hosts = vec![Host { name: proxy.name().to_owned(), is_local: proxy.is_loopback() }];
            builder = builder.proxy(Proxy::all(proxy.url().clone())?);
        }
        builder = if base.is_encrypted() {
            builder.tls_certs_merge(self.policy.authorities.certificates())
        } else {
            // No certificate is looked at, so the system's authorities need not be read, or be there.
            builder.tls_certs_only([])
        };
        let guard = Guard { lookup: Arc::clone(&self.lookup), hosts, addresses: Arc::clone(&self.addresses) };
        builder.dns_resolver(Arc::new(guard)).build()
    }
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Reads `Retry-After`: seconds, or a date, which is counted from the date of the response, so that no clock is needed and none has
/// to agree with the server's. Nothing for what says neither; what is longer than can be counted is as long as can be.
fn seconds(after: &str, now: Option<&str>) -> Option<u32> {
    let after = after.trim();
    if !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(after.parse().unwrap_or(u32::MAX));
    }
    let until = httpdate::parse_http_date(after).ok()?;
    let now = httpdate::parse_http_date(now?).ok()?;
    let left = until.duration_since(now).map_or(0, |left| left.as_secs());
    Some(u32::try_from(left).unwrap_or(u32::MAX))
}

/// What goes before the body. The key goes last: nothing takes its place.
fn headers(post: &Post<'_>) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    for (name, value) in &post.headers {
        let value = HeaderValue::from_str(value).map_err(|_| unsendable(name))?;
        headers.insert(named(name)?, value);
    }
    if let Some(key) = post.key {
        headers.insert(named(key.header)?, value_of(key)?);
    }
    Ok(headers)
}

fn named(name: &str) -> Result<HeaderName, Error> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable(name))
}

fn unsendable(name: &str) -> Error {
    Error::Setup(format!("no request can have the header `{name}`"))
}

fn value_of(key: Key<'_>) -> Result<HeaderValue, Error> {
    // The key itself must not be in the error.
    let mut value = HeaderValue::from_str(&format!("{}{}", key.before, key.secret.expose().trim()))
        .map_err(|_| Error::Setup("the key holds a character that no header can".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
