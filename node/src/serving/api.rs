//! The door of the node for its clients: a socket in the home, which only the operator's user can open.

use std::{
    io,
    os::{
        fd::AsRawFd,
        unix::{fs::PermissionsExt, net::UnixListener as StdListener},
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Context;
use ephor_kernel::{Body, Life, Process};
use tokio::net::{UnixListener, UnixStream};

use super::{Clients, boot::Node, connection};
use crate::home::Home;

/// Takes connections and starts a process for each.
pub(crate) struct Api(Arc<Shared>);

struct Shared {
    node: Arc<Node>,
    listener: UnixListener,
    clients: Arc<Clients>,
    count: AtomicU64,
}

/// Binds the socket. The home is locked, so one that is there was left behind.
pub(crate) fn bind(home: &Home) -> anyhow::Result<UnixListener> {
    let path = home.socket();
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("`{}` cannot be replaced", path.display()));
        }
        _ => {}
    }
    let listener = short_path(&path, |path| StdListener::bind(path))
        .with_context(|| format!("the socket `{}` cannot be made", path.display()))?;
    // The folder keeps others out already; this says so to whoever looks at the file.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
        .with_context(|| format!("the socket `{}` cannot be kept private", path.display()))?;
    listener.set_nonblocking(true)?;
    Ok(UnixListener::from_std(listener)?)
}

/// A socket's path may have 107 bytes at most; through a descriptor of its folder every path is short.
pub(crate) fn short_path<T>(path: &Path, with: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    const MOST: usize = 100;
    if path.as_os_str().len() <= MOST {
        return with(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(folder)?;
    with(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

impl Api {
    pub(crate) fn new(node: Arc<Node>, listener: UnixListener, clients: Arc<Clients>) -> Self {
        Self(Arc::new(Shared { node, listener, clients, count: AtomicU64::new(1) }))
    }
}

impl Body for Api {
    fn run(&self, process: Process) -> Life {
        let shared = self.0.clone();
        Life::new(async move {
            loop {
                tokio::select! {
                    () = process.stopping() => return Ok(()),
                    accepted = shared.listener.accept() => match accepted {
                        Ok((stream, _)) => shared.receive(stream).await?,
                        Err(error) => {
                            // Out of descriptors, say: the next client may have more luck.
                            tracing::warn!(%error, "a connection could not be taken");
                            process.sleep(std::time::Duration::from_millis(100)).await;
                        }
                    },
                }
            }
        })
    }
}

impl Shared {
    async fn receive(&self, stream: UnixStream) -> Result<(), String> {
        let name = format!("client-{}", self.count.fetch_add(1, Ordering::Relaxed));
        let body = connection::Connection::new(self.node.clone(), stream, self.clients.arrive());
        let started = self.node.kernel.start_task(&name, Arc::new(body)).await;
        started.map(|_| ()).map_err(|error| error.to_string())
    }
}
