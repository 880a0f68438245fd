//! The door of the node for its clients: a socket in the home, which only the operator's user can open.
//!
//! A connection is a stranger until it has proved an operator's credential. Strangers are few, have no process and are on no record.

use std::{
    collections::BTreeMap,
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
    time::Duration,
};

use anyhow::Context;
use ephor_kernel::{Body, Life, Process};
use futures_util::{
    StreamExt,
    future::{AbortHandle, Abortable, BoxFuture, FutureExt},
    stream::FuturesUnordered,
};
use rustix::process::{Resource, getrlimit};
use tokio::net::{UnixListener, UnixStream};

use super::{Clients, boot::Node, connection};
use crate::{
    channel::{Admitted, Room, admit},
    home::Home,
};

/// How long a stranger may take to say who it is.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// How many strangers there may be at once. One more, and the one that has been there longest goes: whoever has a credential proves
/// it within milliseconds.
const MOST_STRANGERS: usize = 32;
/// How many of the descriptors that the process may have are not for connections, but for tools, models and the chain.
const DESCRIPTORS_KEPT: u64 = 24;

/// How often the socket is looked for.
const LOOK: Duration = Duration::from_secs(1);

/// Takes connections and starts a process for each.
pub(crate) struct Api(Arc<Shared>);

struct Shared {
    node: Arc<Node>,
    listener: UnixListener,
    clients: Arc<Clients>,
    /// Where all connections have room for long messages.
    room: Room,
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
    // The folder keeps others out already; this says so in a listing.
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
        Self(Arc::new(Shared { node, listener, clients, room: Room::default(), count: AtomicU64::new(1) }))
    }
}

impl Body for Api {
    fn run(&self, process: Process) -> Life {
        let shared = self.0.clone();
        Life::new(async move {
            let home = &shared.node.home;
            let mut replaced: Option<UnixListener> = None;
            let mut strangers = Strangers::default();
            loop {
                let listener = replaced.as_ref().unwrap_or(&shared.listener);
                tokio::select! {
                    // One that was sent away gives its descriptor back before another is taken.
                    biased;
                    () = process.stopping() => return Ok(()),
                    Some((number, admitted)) = strangers.introduced.next() => {
                        strangers.there.remove(&number);
                        if let Some(admitted) = admitted {
                            shared.receive(number, admitted).await;
                        }
                    }
                    () = process.sleep(LOOK) => if !home.socket().exists() {
                        // Without it nobody reaches this node, and nobody else can start one.
                        replaced = Some(bind(home).map_err(|error| format!("{error:#}"))?);
                    },
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => shared.hear(stream, &mut strangers),
                        Err(error) => {
                            // Out of descriptors, say: the next client may have more luck.
                            tracing::warn!(%error, "a connection could not be taken");
                            process.sleep(Duration::from_millis(100)).await;
                        }
                    },
                }
            }
        })
    }
}

/// Those who have not said yet who they are.
#[derive(Default)]
struct Strangers {
    /// By when they came.
    there: BTreeMap<u64, AbortHandle>,
    introduced: FuturesUnordered<BoxFuture<'static, (u64, Option<Admitted>)>>,
}

impl Shared {
    /// Has a connection say who it is.
    fn hear(&self, stream: UnixStream, strangers: &mut Strangers) {
        let is_scarce = leaves_too_few(&stream);
        if is_scarce || strangers.there.len() >= MOST_STRANGERS {
            match strangers.there.pop_first() {
                Some((_, longest)) => longest.abort(),
                None => return,
            }
        }
        let (node, number) = (self.node.clone(), self.count.fetch_add(1, Ordering::Relaxed));
        let room = self.room.clone();
        let introduction = async move {
            let keys = node.identity.borrow().clone();
            let is_signed =
                |operator, statement: &[u8], signature: &[u8]| node.kernel.is_signed_by(operator, statement, signature);
            tokio::time::timeout(INTRODUCTION, admit(stream, &keys, room, is_signed)).await.ok().flatten()
        };
        let (handle, registration) = AbortHandle::new_pair();
        let introduction = Abortable::new(introduction, registration);
        strangers.there.insert(number, handle);
        strangers.introduced.push(introduction.map(move |admitted| (number, admitted.ok().flatten())).boxed());
    }

    /// Gives a client a process.
    async fn receive(&self, number: u64, admitted: Admitted) {
        let body = connection::Connection::new(self.node.clone(), admitted, self.clients.arrive());
        let started = self.node.kernel.start_client(number, Arc::new(body)).await;
        if let Err(error) = started {
            // It hears nothing, and looks for a node again.
            tracing::warn!(%error, "a client could not be served");
        }
    }
}

/// Whether a connection has one of the last descriptors: the system gives the lowest that is free.
fn leaves_too_few(stream: &UnixStream) -> bool {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    u64::try_from(stream.as_raw_fd()).is_ok_and(|number| number >= most.saturating_sub(DESCRIPTORS_KEPT))
}
