//! Opening a chain: look at everything, decide, and only then write.

use std::{io, path::PathBuf, sync::Arc};

use ephor_base::{Clock, Digest, Random, Seq, files::Files};
use ephor_record::{Damage, Fact, Finding, Follows, Minimum, Record, Rules, ScanError, Standing, Subject};
use ephor_signatures::Signatures;
use ephor_tlog::{Head, VerifierKeys};

use crate::{
    clock::RecordClock,
    durable,
    error::{AppendError, OpenError},
    head::{HeadFile, PinnedHead},
    journal::{Journal, STEP},
    keys::SigningKeys,
    log::Config,
    marks::{self, Marks},
    minimum,
    press::Press,
    publisher::{Begin, Places, Publisher, Signed},
    queue::{Hold, Offer, Queue, Reserve, STOP_RESERVE},
    quota::Quota,
    recovered::{self, Recovered},
    restore,
    rotation::Signers,
    scan::Scan,
    vault::{Vault, VaultKey},
    writer::{Shared, Writer, origin_digest},
};

/// Everything outside that a chain needs.
pub(crate) struct World<'a> {
    pub(crate) config: &'a Config,
    pub(crate) files: &'a Arc<dyn Files>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

/// The log that is given up for a new one.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    /// What the new one says of it.
    pub(crate) follows: Follows,
    /// What stood on it and stands on; the texts that are named there come first.
    pub(crate) heritage: Vec<Fact>,
}

/// What looking at a chain found. Nothing has been written.
pub(crate) struct Looked {
    pub(crate) scan: Scan,
    pub(crate) torn: u64,
    head: Option<PinnedHead>,
    /// The size of the published checkpoint; 0 if there is none.
    published: u64,
    /// The checkpoint of the last batch.
    last: Option<Signed>,
    /// Who signed that.
    signers: Option<Arc<VerifierKeys>>,
    /// The checkpoints of the batches that change the keys.
    changes: Vec<Signed>,
}

/// Reads a whole chain and checks everything but the signatures of earlier checkpoints.
pub(crate) fn look(config: &Config, files: &Arc<dyn Files>, keys: &VerifierKeys) -> Result<Looked, ScanError> {
    let mut scan = Scan::open(&config.folder, files)?;
    let head = marks::load_head(&config.head, &**files)?;
    let mut marks = Marks::new(&config.folder, files, head.clone())?;
    marks.begin(&scan, keys)?;
    let (mut last, mut changes) = (None, Vec::new());
    while let Some(batch) = scan.next()? {
        marks.pass(&batch, keys)?;
        if scan.rules.rotated() {
            changes.push((batch.checkpoint.head, batch.note.clone()));
        }
        last = Some(batch);
    }
    let torn = marks.judge(&scan, keys)?;
    Minimum::check(minimum::load(&config.folder, files)?, scan.rules.pruned())?;
    if head.is_none() && scan.tree.size() > 0 {
        return Err(ScanError::found("head", 0, None, Damage::HeadMissing));
    }
    if let Some(batch) = &last {
        batch.checkpoint.check(&batch.signers, &Signatures).map_err(|fault| batch.finding(Damage::Signature(fault)))?;
    }
    let signers = last.as_ref().map(|batch| Arc::clone(&batch.signers));
    let last = last.map(|batch| (batch.checkpoint.head, batch.note));
    Ok(Looked { scan, torn, head, published: marks.published(), last, signers, changes })
}

/// What stands in a chain that no process writes, as opening it would find it. Nothing is written.
///
/// # Errors
/// [`ScanError`]: the chain is not whole, or cannot be read.
pub fn what_stands(config: &Config, files: &Arc<dyn Files>, keys: &VerifierKeys) -> Result<Standing, ScanError> {
    Ok(Standing::clone(look(config, files, keys)?.scan.rules.standing()))
}

/// Opens a chain, or begins it, and writes its first batch.
pub(crate) fn open(
    world: World<'_>,
    keys: Signers,
    vault: Arc<VaultKey>,
    version: &str,
    before: Option<Before>,
) -> Result<(Writer, Recovered), OpenError> {
    let named = vault.name();
    let vault = Arc::new(Vault::new(&world.config.vault, vault, Arc::clone(world.files)));
    restore::check_restored(world.config, &**world.files)?;
    let looked = look(world.config, world.files, keys.verifier())?;
    let clock = clock(&world, &looked)?;
    let fresh = looked.scan.tree.size() == 0;
    if fresh && before.is_none() {
        let had_sessions = !vault.is_empty().map_err(io("reading the vault"))?;
        if had_sessions || !world.config.may_begin {
            return Err(ScanError::from(journal_missing()).into());
        }
    }
    let keys = signing(keys, &looked)?;
    if is_other_vault(&looked.scan.rules, named) {
        return Err(OpenError::OtherVault);
    }
    let torn = looked.torn;
    let rules = looked.scan.rules.clone();
    let mut writer = prepare(&world, keys, vault, (looked, clock))?;
    let records = first_records(&rules, writer.keys.verifier(), version, torn, named, before);
    let head = write_first(&mut writer, &records)?;
    writer.publish(false).map_err(full_or_io("publishing the chain"))?;
    let reserved = writer.journal.ahead();
    let quota = Quota::open(world.config, &**world.files, &writer.publisher, reserved)
        .map_err(io("counting the bytes of the chain"))?;
    {
        let mut queue = writer.shared.lock();
        (queue.quota, queue.publisher) = (quota, Some(Arc::clone(&writer.publisher)));
    }
    Ok((writer, recovered(&rules, torn, head)))
}

/// The keys of the home that are in force.
fn signing(keys: Signers, looked: &Looked) -> Result<SigningKeys, OpenError> {
    let ours = is_ours(looked, &keys).then(|| keys.in_force(looked.scan.rules.keys().map(|keys| &**keys))).flatten();
    ours.ok_or_else(|| ScanError::from(looked.scan.end_finding(Damage::Keys)).into())
}

/// Whether keys of the home are in force, and signed the last batch too: others that name ours could be anybody's.
pub(crate) fn is_ours(looked: &Looked, keys: &Signers) -> bool {
    let Some(in_force) = looked.scan.rules.keys() else { return looked.scan.tree.size() == 0 };
    keys.has(in_force) && looked.signers.as_ref().is_none_or(|signers| keys.has(signers))
}

/// The time of the record, from the clock of the machine.
fn clock(world: &World<'_>, looked: &Looked) -> Result<RecordClock, OpenError> {
    let (now, last) = ((world.clock.now(), world.clock.monotonic()), looked.scan.rules.time());
    RecordClock::begin(last, now).ok_or(OpenError::Clock { now: now.0, last })
}

/// Whether the record names another vault key. What is sealed under a key that an intruder put there is the intruder's to read.
pub(crate) fn is_other_vault(rules: &Rules, name: Digest) -> bool {
    rules.vault().is_some_and(|named| named != name)
}

/// There was a journal, and it is gone together with everything that was held against it.
pub(crate) fn journal_missing() -> Finding {
    Finding { file: PathBuf::from("journal"), offset: 0, seq: None, damage: Damage::JournalMissing }
}

/// From here on the chain is being written.
fn prepare(
    world: &World<'_>,
    keys: SigningKeys,
    vault: Arc<Vault>,
    (looked, clock): (Looked, RecordClock),
) -> Result<Writer, OpenError> {
    let Config { folder, head: head_path, segment_bytes, publish_every, .. } = world.config;
    let Looked { scan, torn, head: pinned, published, last, changes, .. } = looked;
    let (files, head) = (world.files, scan.head());
    let stopped = pinned.as_ref().is_some_and(|pinned| pinned.stopped && pinned.head == head);
    // What the press goes on with is looked at before anything is written.
    let begun = published.max(scan.start.size);
    let press = Press::at((folder, &world.config.vault), files, begun, scan.start.size)?;
    vault.make().map_err(io("making the vault"))?;
    // A crash may have come between the record of an erasure and the end of the key.
    vault.destroy_all(scan.rules.erased(), &*world.random).map_err(io("destroying the key of an erased session"))?;
    let pin = HeadFile::open(head_path, files, keys.origin(), head, pinned.as_ref())
        .map_err(full_or_io("making the pinned head"))?;
    // The head says that the node runs before anything follows a stop.
    pin.pin(head, false).map_err(full_or_io("pinning the head"))?;
    let origin = origin_digest(&keys);
    let journal = match scan.end() {
        None => Journal::begin(files, folder, origin, *segment_bytes),
        Some(end) => Journal::resume(files, folder, origin, *segment_bytes, end, scan.used, torn > 0 || !stopped),
    };
    let journal = journal.map_err(full_or_io("opening the journal"))?;
    let pruned = scan.rules.pruned();
    let (from, size) = (scan.start.size, head.size);
    let begin = Begin { from, published, size, last: scan.rules.time(), changes, pruned };
    let places = Places { chain: folder.clone(), vault: world.config.vault.clone() };
    let publisher = Publisher::new(files, places, pin, *publish_every, Arc::clone(&world.clock), begin, press);
    let publisher = publisher.map_err(io("tidying the chain folder"))?;
    let mut queue = Queue::new(scan.rules, clock, head);
    // A segment that begins without a snapshot could not be the oldest.
    queue.snapshot_due = journal.is_empty() && journal.first() > 0;
    // Nor does a pruning go on before the journal begins behind it.
    queue.snapshot_due |= pruned.is_some_and(|pruned| from < pruned.index);
    let shared = Shared::new(queue, Arc::clone(&world.clock), Arc::clone(&world.random), vault);
    let publisher = Arc::new(publisher);
    let (shared, keys) = (Arc::new(shared), Arc::new(keys));
    let writer = Writer { shared, journal, tree: scan.tree, keys, signer: None, publisher, last };
    if published == 0 {
        writer.publish(false).map_err(full_or_io("publishing the chain"))?;
    }
    Ok(writer)
}

/// What opening records: the origin of a new log with what it takes over, the boot, and the outcomes that are missing.
fn first_records(
    rules: &Rules,
    keys: &VerifierKeys,
    version: &str,
    trimmed_bytes: u64,
    vault: Digest,
    before: Option<Before>,
) -> Vec<Record> {
    let own = |fact| Record { subject: Subject::default(), fact, content: None };
    let mut records = Vec::new();
    if rules.size() == 0 {
        let (ed25519, ml_dsa_65) = (keys.ed25519().to_owned(), keys.ml_dsa_65().to_owned());
        let (follows, heritage) = before.map(|before| (before.follows, before.heritage)).unzip();
        records.push(own(Fact::Origin { ed25519, ml_dsa_65, follows }));
        records.extend(heritage.into_iter().flatten().map(own));
    }
    let (number, clean) = (rules.boots().saturating_add(1), is_clean(rules));
    records.push(own(Fact::Boot { number, version: version.to_owned(), clean, trimmed_bytes, vault: Some(vault) }));
    for (intent, open) in rules.intents() {
        let fact = Fact::Outcome { intent: *intent, end: "indeterminate".to_owned(), used: open.reserved };
        records.push(Record { subject: open.subject.clone(), fact, content: None });
    }
    records
}

/// A log without a boot yet follows nothing unclean.
const fn is_clean(rules: &Rules) -> bool {
    rules.stopped() || rules.boots() == 0
}

/// Writes the first batch, and reserves disk for what comes after it.
fn write_first(writer: &mut Writer, records: &[Record]) -> Result<Head, OpenError> {
    let shared = Arc::clone(&writer.shared);
    let offers: Vec<_> = records.iter().map(|record| Offer { record, sealed: None }).collect();
    make_room(writer, STEP.max(STOP_RESERVE))?;
    for offers in offers.chunks(AT_ONCE) {
        loop {
            let now = (shared.clock.now(), shared.clock.monotonic());
            let hold = shared.lock().take(offers, Reserve::None, now);
            match hold {
                Ok(_) => break,
                Err(Hold::Room(more)) => make_room(writer, more)?,
                Err(Hold::Refused(error)) => return Err(error.into()),
                Err(Hold::Batch) => {
                    write_batch(writer)?;
                }
            }
        }
    }
    let head = write_batch(writer)?;
    keep_for_stop(writer)?;
    Ok(head)
}

/// Writes what has gathered so far.
fn write_batch(writer: &mut Writer) -> Result<Head, OpenError> {
    let mut batch = std::mem::take(&mut writer.shared.lock().batch);
    Ok(writer.commit(&mut batch).map_err(|failure| AppendError::from(Arc::new(failure)))?)
}

/// So many records of an opening are taken at once: there may be more outcomes missing than one frame holds.
const AT_ONCE: usize = 1000;

/// Takes the disk for the stop out of what others may use.
fn keep_for_stop(writer: &mut Writer) -> Result<(), OpenError> {
    let shared = Arc::clone(&writer.shared);
    let room = shared.lock().room;
    if room < STOP_RESERVE {
        make_room(writer, STOP_RESERVE)?;
    }
    let mut queue = shared.lock();
    queue.room = queue.room.saturating_sub(STOP_RESERVE);
    Ok(())
}

fn make_room(writer: &mut Writer, more: u64) -> Result<(), OpenError> {
    writer.make_room(more).map(drop).map_err(|undone| match AppendError::from(undone) {
        AppendError::Full { needed } => OpenError::Full { needed },
        other => other.into(),
    })
}

fn recovered(rules: &Rules, trimmed_bytes: u64, head: Head) -> Recovered {
    let (next_pid, next_call, next_message, next_ticket) = recovered::free(rules.used());
    Recovered {
        boot: rules.boots().saturating_add(1),
        fresh: rules.size() == 0,
        clean: is_clean(rules),
        trimmed_bytes,
        next_pid,
        next_call,
        next_message,
        next_ticket,
        standing: Standing::clone(rules.standing()),
        indeterminate: rules.intents().keys().copied().collect::<Vec<Seq>>(),
        head,
    }
}

/// An error of the system while `doing` something.
pub(crate) fn io(doing: &str) -> impl FnOnce(io::Error) -> OpenError {
    let doing = doing.to_owned();
    move |source| OpenError::Io { doing, source }
}

fn full_or_io(doing: &str) -> impl FnOnce(io::Error) -> OpenError {
    let io = io(doing);
    move |error| if durable::is_full(&error) { OpenError::Full { needed: STEP } } else { io(error) }
}

impl From<ScanError> for OpenError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Damaged(finding) => Self::Quarantined { finding },
            // Whatever opening needs is kept, so what points below the minimum is not what it was.
            ScanError::Pruned { entry, .. } => {
                let damage = Damage::Minimum("what is needed to open the log lies before it");
                Self::Quarantined {
                    finding: Finding { file: Minimum::FILE.into(), offset: 0, seq: Some(Seq(entry)), damage },
                }
            }
            ScanError::OtherFormat(other) => Self::OtherFormat(other),
            ScanError::Io { path, source } => Self::Io { doing: format!("reading `{}`", path.display()), source },
        }
    }
}
