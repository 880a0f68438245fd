//! A witness (C2SP tlog-witness): it cosigns the checkpoints of logs it knows, and only ones that continue what it saw last.
//!
//! Requests and answers are bytes; the owner of a wire puts them on it. What was seen last of each log is on the disk before a
//! cosignature leaves, and a lock of that log is held from the check until then, so that of two requests at once one comes
//! after the other. A witness whose store is damaged or gone does not open: one that forgot would cosign a second history.
//!
//! When a log shows that it has two histories, the witness cosigns nothing, hands out the [`ForkProof`], and keeps the first.

mod request;
mod store;
mod submission;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use ephor_base::{Digest, Timestamp, files::Files};
use ephor_signatures::Signatures;
use ephor_tlog::{
    ForkProof, Head, KnownLog, Note, NoteFault,
    checkpoint::{
        cosignature::cosignatures,
        known::{check_any, read_text},
    },
    proof::{ProofError, check_consistency, prefix_root},
};

use crate::CosignerKeys;
pub use request::MAX_REQUEST_BYTES;
use request::Request;
pub use store::WitnessError;
use store::{Kept, Store};
pub use submission::{Cosigned, Submission, SubmissionError};

const TEXT: &str = "text/plain; charset=utf-8";
/// The content type of an answer that says how large the log was when it was last seen.
pub(crate) const SIZE_TYPE: &str = "text/x.tlog.size";

/// An answer of the witness, as HTTP has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

/// What became of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// What is sent back.
    pub response: Response,
    /// The proof that the log has two histories, if the request shows it.
    pub fork: Option<ForkProof>,
}

/// What was seen last of a log.
#[derive(Clone, Debug)]
struct Seen {
    /// The checkpoint with the log's own signatures and our cosignatures.
    note: Note,
    head: Head,
    /// When it was cosigned. The next is never earlier, even if the clock steps back.
    seconds: u64,
}

/// The logs of one origin, which differ in their keys, and what was seen last.
struct Watched {
    logs: Vec<KnownLog>,
    seen: Mutex<Option<Seen>>,
}

/// A witness over its store.
pub struct Witness {
    keys: CosignerKeys,
    watched: BTreeMap<String, Watched>,
    store: Store,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Malformed(&'static str),
    UnknownLog,
    Signature(NoteFault),
    Shrinks,
    Behind(u64),
    Inconsistent(ProofError),
    /// We could not sign or keep it.
    Failed(&'static str),
}

impl Witness {
    /// Makes the store of a new witness in `folder`. A log may be given several times, once with each pair of keys.
    ///
    /// # Errors
    /// [`WitnessError`] if there already is one or it cannot be written.
    pub fn create(
        folder: &Path,
        keys: CosignerKeys,
        logs: Vec<KnownLog>,
        files: &Arc<dyn Files>,
    ) -> Result<Self, WitnessError> {
        let store = Store::create(folder, files)?;
        Ok(Self { keys, watched: watch(logs), store })
    }

    /// Opens a witness. Logs that are no longer given are left as they are in the store.
    ///
    /// # Errors
    /// [`WitnessError`] if there is none, or anything in its store is missing, damaged, or not of these keys. Nothing is
    /// changed: put back a copy that is as new as what was cosigned last.
    pub fn open(
        folder: &Path,
        keys: CosignerKeys,
        logs: Vec<KnownLog>,
        files: &Arc<dyn Files>,
    ) -> Result<Self, WitnessError> {
        let (store, kept) = Store::open(folder, files)?;
        let mut watched = watch(logs);
        for Kept { path, place, note } in kept {
            let (origin, seen) = Seen::parse(&note, &keys).ok_or_else(|| WitnessError::Damaged(path.clone()))?;
            if place != Digest::of(origin.as_bytes()) {
                return Err(WitnessError::Damaged(path));
            }
            if let Some(watched) = watched.get_mut(&origin) {
                watched.seen = Mutex::new(Some(seen));
            }
        }
        Ok(Self { keys, watched, store })
    }

    /// The keys that cosign.
    #[must_use]
    pub const fn keys(&self) -> &CosignerKeys {
        &self.keys
    }

    /// The head that was cosigned last for a log.
    #[must_use]
    pub fn seen(&self, origin: &str) -> Option<Head> {
        let watched = self.watched.get(origin)?;
        watched.seen.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|seen| seen.head)
    }

    /// Answers `GET <monitoring prefix>/<origin hash>/checkpoint`. `origin_hash` is the SHA-256 of the origin line.
    #[must_use]
    pub fn checkpoint(&self, origin_hash: Digest) -> Response {
        let found = self.watched.iter().find(|(origin, _)| Digest::of(origin.as_bytes()) == origin_hash);
        let seen = found.map(|(_, watched)| watched.seen.lock().unwrap_or_else(PoisonError::into_inner));
        match seen.as_deref() {
            Some(Some(seen)) => Response { status: 200, content_type: TEXT, body: seen.note.to_bytes() },
            _ => say(404, "nothing was cosigned for such a log"),
        }
    }

    /// Answers `POST <submission prefix>/add-checkpoint`: takes the body of the request and gives status, type and body.
    ///
    /// - 200: the log continues what was seen; the body are two signature lines, and the new head is on the disk.
    /// - 400: the request is malformed, or the old size is beyond the checkpoint.
    /// - 403: a signature of the log is missing or wrong. 404: the log is unknown.
    /// - 409: another size was seen last; the body says which.
    /// - 422: the log does not continue what was seen, or this is not shown.
    /// - 500: the witness could not keep or sign it. Nothing was cosigned.
    #[must_use]
    pub fn add_checkpoint(&self, body: &[u8], now: Timestamp) -> Answer {
        match self.cosign(body, now) {
            Ok(note) => Answer { response: Response { status: 200, content_type: TEXT, body: note }, fork: None },
            Err((refusal, fork)) => Answer { response: refusal.response(), fork: fork.map(|fork| *fork) },
        }
    }

    fn cosign(&self, body: &[u8], now: Timestamp) -> Result<Vec<u8>, (Refusal, Option<Box<ForkProof>>)> {
        let request = Request::parse(body).map_err(|why| (Refusal::Malformed(why), None))?;
        let watched = self.watched.get(&request.origin).ok_or((Refusal::UnknownLog, None))?;
        let mut seen = watched.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err((refusal, fork)) = decide(&watched.logs, seen.as_ref(), &request) {
            if let Some(fork) = &fork {
                self.store.keep_fork(Digest::of(request.origin.as_bytes()), &fork.to_bytes());
            }
            return Err((refusal, fork));
        }
        let last = seen.as_ref().map_or(1, |seen| seen.seconds);
        let seconds = (now.0 / 1_000_000).max(last);
        let failed = |why| (Refusal::Failed(why), None);
        let lines =
            self.keys.cosign(&request.note.text, seconds).ok_or_else(|| failed("no signature could be made"))?;
        let mut text = String::new();
        lines.iter().for_each(|line| line.write(&mut text));
        let next = Seen::new(&watched.logs, request, lines, seconds);
        let place = Digest::of(next.origin().as_bytes());
        self.store.keep(place, &next.note.to_bytes()).map_err(|_| failed("the checkpoint could not be kept"))?;
        *seen = Some(next);
        Ok(text.into_bytes())
    }
}

/// The rules of tlog-witness, in their order.
fn decide(logs: &[KnownLog], seen: Option<&Seen>, request: &Request) -> Result<(), (Refusal, Option<Box<ForkProof>>)> {
    let head = check_any(logs.iter(), &request.note, &Signatures).ok_or((Refusal::UnknownLog, None))?;
    let head = head.map_err(|fault| (Refusal::Signature(fault), None))?;
    let fork = seen.and_then(|seen| contradiction(seen, head, request)).map(Box::new);
    let last = seen.map_or_else(Head::empty, |seen| seen.head);
    let refusal = if request.old > head.size {
        Refusal::Shrinks
    } else if request.old != last.size {
        Refusal::Behind(last.size)
    } else {
        match check_consistency(last, head, &request.path) {
            Ok(()) => return Ok(()),
            Err(error) => Refusal::Inconsistent(error),
        }
    };
    Err((refusal, fork))
}

/// The proof that a checkpoint, which the log has signed, contradicts the one that was seen.
fn contradiction(seen: &Seen, head: Head, request: &Request) -> Option<ForkProof> {
    let (ours, theirs) = (seen.note.clone(), request.note.clone());
    if seen.head.size == 0 || seen.head == head {
        return None;
    }
    if seen.head.size == head.size {
        return Some(ForkProof::same_size(ours, theirs));
    }
    let prefix = prefix_root(seen.head, head, &request.path).filter(|prefix| *prefix != seen.head.root)?;
    Some(ForkProof::of_past(ours, theirs, prefix, request.path.clone()))
}

fn watch(logs: Vec<KnownLog>) -> BTreeMap<String, Watched> {
    let mut watched: BTreeMap<String, Watched> = BTreeMap::new();
    for log in logs {
        let new = || Watched { logs: Vec::new(), seen: Mutex::new(None) };
        watched.entry(log.origin().to_owned()).or_insert_with(new).logs.push(log);
    }
    watched
}

impl Seen {
    fn new(logs: &[KnownLog], request: Request, lines: [ephor_tlog::SignatureLine; 2], seconds: u64) -> Self {
        let Request { mut note, head, .. } = request;
        note.signatures.retain(|line| logs.iter().any(|log| log.made(line)));
        note.signatures.extend(lines);
        Self { note, head, seconds }
    }

    /// Reads what was kept. Both our cosignatures must stand on it.
    fn parse(bytes: &[u8], keys: &CosignerKeys) -> Option<(String, Self)> {
        let note = Note::parse(bytes).ok()?;
        let ours = cosignatures(&note, keys.verifier(), &Signatures).ok()?;
        let [first, second] = ours.as_slice() else { return None };
        let (origin, head, _) = read_text(&note.text)?;
        let whole = first.algorithm != second.algorithm && first.seconds == second.seconds;
        let origin = origin.to_owned();
        whole.then_some((origin, Self { head, seconds: first.seconds, note }))
    }

    fn origin(&self) -> &str {
        self.note.text.lines().next().unwrap_or_default()
    }
}

impl Refusal {
    fn response(&self) -> Response {
        match self {
            Self::Malformed(why) => say(400, why),
            Self::Shrinks => say(400, "the old size is beyond the checkpoint"),
            Self::Signature(fault) => say(403, &fault.to_string()),
            Self::UnknownLog => say(404, "the log is not known here"),
            Self::Behind(size) => {
                Response { status: 409, content_type: SIZE_TYPE, body: format!("{size}\n").into_bytes() }
            }
            Self::Inconsistent(error) => say(422, &error.to_string()),
            Self::Failed(why) => say(500, why),
        }
    }
}

fn say(status: u16, why: &str) -> Response {
    Response { status, content_type: TEXT, body: format!("{why}\n").into_bytes() }
}
