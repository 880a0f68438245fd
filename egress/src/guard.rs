//! The resolver that lets only allowed addresses through.

use std::{
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{
    address::{is_loopback, is_public},
    error::RefusedAddress,
};

/// Finds the addresses of names.
pub(crate) trait Lookup: Send + Sync + 'static {
    /// The addresses of `name`.
    fn lookup(&self, name: String) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>;
}

/// The system's own.
pub(crate) struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, name: String) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect()) })
    }
}

/// A name that may be resolved.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// It names this machine, so it may lead there and nowhere else.
    pub(crate) is_local: bool,
}

/// Resolves the names it knows, to addresses that are allowed. The connector connects to what it returns and to nothing
/// else, so what is judged is what is reached.
pub(crate) struct Guard {
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) addresses: Arc<[IpAddr]>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let host = self.hosts.iter().find(|host| host.name.eq_ignore_ascii_case(&name)).cloned();
        let addresses = Arc::clone(&self.addresses);
        let found = self.lookup.lookup(name.clone());
        Box::pin(async move {
            let Some(host) = host else {
                // No request names another host; should one come up all the same, it is not looked up.
                return Err(format!("`{name}` is not a configured host").into());
            };
            let found = found.await?;
            let (allowed, refused): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|address| host.allows(*address, &addresses));
            match (allowed.is_empty(), refused.first()) {
                (true, Some(address)) => Err(RefusedAddress { name, address: *address }.into()),
                (true, None) => Err(format!("`{name}` has no address").into()),
                _ => Ok(Box::new(allowed.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs),
            }
        })
    }
}

impl Host {
    fn allows(&self, address: IpAddr, named: &[IpAddr]) -> bool {
        if self.is_local { is_loopback(address) } else { is_public(address) || named.contains(&address.to_canonical()) }
    }
}
