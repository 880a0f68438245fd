//! A session is erased: nothing in the home gives its content back, and every proof holds.

use std::path::Path;

use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use ephor_base::{MessageId, Part, PartKind, SessionId, Timestamp};
use ephor_chain::{AppendError, EraseError, Log, Private};
use ephor_record::{Because, Content, Entry, Fact, Missed, Record, Subject, Undelivered};

use crate::common::{
    OPERATOR, World, block_on,
    memory::{After, Fault, Memory},
    outgrow, plain,
};

const ANNA: SessionId = SessionId([0xaa; 16]);
const BERT: SessionId = SessionId([0xbb; 16]);
const CARL: SessionId = SessionId([0xcc; 16]);
const SECRET: &str = "the-medical-file-of-anna-which-nobody-else-may-read";

fn world() -> (Memory, World) {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    (memory, world)
}

/// A home whose journal holds two or three batches before it goes on in another segment.
fn short() -> (Memory, World) {
    let (memory, mut world) = world();
    world.config.segment_bytes = 10_000;
    (memory, world)
}

fn said(session: SessionId, number: u64, text: &str, from: Option<SessionId>) -> Record {
    let subject = Subject { session: Some(session), ..Subject::default() };
    let parts = vec![Part { kind: PartKind::Typed, text: text.to_owned() }];
    Record {
        subject,
        fact: Fact::Message {
            id: MessageId(number),
            spans: Vec::new(),
            from,
            because: None,
            owed: false,
            scope: None,
            offset: None,
        },
        content: Some(Content::Parts(parts)),
    }
}

fn talked(log: &Log) {
    block_on(log.append(said(ANNA, 1, SECRET, None))).unwrap();
    block_on(log.append(said(BERT, 2, "what Bert said", None))).unwrap();
}

fn erase(log: &Log, session: SessionId) -> Result<ephor_chain::Erased, EraseError> {
    block_on(log.erase(session, log.derived(session).unwrap(), "asked for".into(), OPERATOR))
}

/// What each session's messages are to whoever reads with the vault's key.
fn opened(log: &Log, session: SessionId) -> Vec<bool> {
    let of = |entry: &Entry| entry.subject.session == Some(session) && entry.content.is_some();
    let stored = log.entries().map(Result::unwrap).filter(|stored| of(&stored.entry));
    stored.map(|stored| matches!(stored.content, Private::Open(_))).collect()
}

/// What an attacker gets who has every byte of every file, and the vault's key. It tries each place in each file as a
/// wrapped session key, and each key that it finds on each place as a sealed content.
fn loot(memory: &Memory, vault_key: &[u8; 32], session: SessionId) -> (usize, bool) {
    let open = |key: &[u8], aad: &[u8], bytes: &[u8]| {
        let (nonce, text) = bytes.split_at_checked(24)?;
        let cipher = XChaCha20Poly1305::new_from_slice(key).unwrap();
        cipher.decrypt(XNonce::from_slice(nonce), Payload { msg: text, aad }).ok()
    };
    let files = memory.everything();
    let mut keys = Vec::new();
    for (_, bytes) in &files {
        // Disk that is only reserved holds nothing.
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let bytes = &bytes[..used];
        keys.extend(bytes.windows(24 + 32 + 16).filter_map(|window| open(vault_key, &session.0, window)));
    }
    let found = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    let plain = files.iter().any(|(_, bytes)| found(bytes));
    (keys.len(), plain)
}

fn vault_key_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    ephor_base::Random::fill(&crate::common::Seeded::new(43), &mut bytes);
    bytes
}

#[test]
fn nothing_in_the_home_gives_the_content_of_an_erased_session_back() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    talked(&log);
    assert_eq!(loot(&memory, &vault_key_bytes(), ANNA), (1, false), "the attack works while the key is there");
    let erased = erase(&log, ANNA).unwrap();
    assert_eq!(loot(&memory, &vault_key_bytes(), ANNA), (0, false));
    assert_eq!((opened(&log, ANNA), opened(&log, BERT)), (vec![false], vec![true]));
    let fact = log.entries().map(Result::unwrap).find(|stored| stored.receipt.seq == erased.seq).unwrap().entry;
    assert!(matches!(fact.fact, Fact::Erase { session: ANNA, ref reason, .. } if reason == "asked for"));
    assert_eq!(fact.subject.operator, Some(OPERATOR));
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
    let (log, _) = world.open().unwrap();
    assert_eq!((opened(&log, ANNA), opened(&log, BERT)), (vec![false], vec![true]));
    assert_eq!(loot(&memory, &vault_key_bytes(), ANNA), (0, false));
}

#[test]
fn the_bytes_of_the_key_are_overwritten_before_the_file_goes() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    talked(&log);
    let path = Path::new("/home/vault/keys").join(ANNA.to_string());
    let file = world.files.open(&path, ephor_base::files::Open::Read).unwrap();
    let before = memory.get(&path);
    erase(&log, ANNA).unwrap();
    let mut after = vec![0; before.len()];
    assert_eq!(file.read_at(&mut after, 0).unwrap(), before.len());
    let same = before.iter().zip(&after).filter(|(before, after)| before == after).count();
    assert!(same < before.len() / 8, "{same} of {} bytes are as they were", before.len());
    assert!(!memory.paths().contains(&path));
}

#[test]
fn an_erased_session_takes_nothing_more_and_gets_no_new_key() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    talked(&log);
    erase(&log, ANNA).unwrap();
    let refused = |log: &Log| {
        assert!(matches!(
            block_on(log.append(said(ANNA, 3, "more", None))),
            Err(AppendError::Erased { session: ANNA })
        ));
        assert!(matches!(erase(log, ANNA), Err(EraseError::Already(ANNA))));
        assert!(!memory.paths().contains(&Path::new("/home/vault/keys").join(ANNA.to_string())));
        block_on(log.append(said(BERT, 4, "goes on", None))).unwrap();
    };
    refused(&log);
    block_on(log.close()).unwrap();
    refused(&world.open().unwrap().0);
    let (log, _) = world.open().unwrap();
    assert!(matches!(erase(&log, CARL), Err(EraseError::Unknown(CARL))));
}

#[test]
fn which_sessions_came_out_of_which_is_read_once() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    talked(&log);
    block_on(log.append(said(BERT, 3, "pass it on", Some(ANNA)))).unwrap();
    assert_eq!(log.derived(ANNA).unwrap(), [BERT]);
    // Whoever read it again would find nothing.
    for path in memory.paths().into_iter().filter(|path| path.starts_with(&world.config.folder)) {
        memory.take_away(&path);
    }
    assert_eq!((log.derived(ANNA).unwrap(), log.derived(BERT).unwrap()), (vec![BERT], vec![]));
}

#[test]
fn what_was_delegated_from_an_erased_session_is_named_however_far() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    talked(&log);
    block_on(log.append(said(BERT, 3, "pass it on", Some(ANNA)))).unwrap();
    block_on(log.append(said(CARL, 4, "passed on", Some(BERT)))).unwrap();
    block_on(log.append(said(ANNA, 5, "and back", Some(CARL)))).unwrap();
    assert_eq!(log.derived(ANNA).unwrap(), [BERT, CARL]);
    assert_eq!(log.derived(CARL).unwrap(), [ANNA, BERT]);
    let erased = erase(&log, ANNA).unwrap();
    assert_eq!(erased.derived, [BERT, CARL]);
    assert_eq!(opened(&log, CARL), [true], "they are told, not erased");
    assert_eq!(erase(&log, BERT).unwrap().derived, [ANNA, CARL]);
    assert_eq!((opened(&log, BERT), opened(&log, CARL)), (vec![false, false], vec![true]));
}

#[test]
fn a_session_that_a_dead_letter_was_replayed_into_came_out_of_that_of_the_letter() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let message = |session, number, because, owed| {
        let record = said(session, number, SECRET, None);
        let fact = Fact::Message {
            id: MessageId(number),
            spans: Vec::new(),
            from: None,
            because,
            owed,
            scope: None,
            offset: None,
        };
        Record { fact, ..record }
    };
    let accepted = block_on(log.append(message(ANNA, 1, None, true))).unwrap().seq;
    let fact = Fact::Dead { message: MessageId(1), accepted, why: Undelivered::Stopped };
    let subject = Subject { session: Some(ANNA), ..Subject::default() };
    block_on(log.append(Record { subject, fact, content: None })).unwrap();
    block_on(log.append(message(BERT, 2, None, false))).unwrap();
    assert_eq!(log.derived(ANNA).unwrap(), []);
    block_on(log.append(message(BERT, 3, Some(Because::Replay(MessageId(1))), false))).unwrap();
    assert_eq!(log.derived(ANNA).unwrap(), [BERT]);
    assert_eq!(log.derived(BERT).unwrap(), []);
}

#[test]
fn what_a_schedule_has_sent_came_out_of_the_session_that_made_it_and_ends_with_it() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let made = |session, fact| Record { fact, ..said(session, 0, SECRET, None) };
    let (name, cron, zone) = ("a".to_owned(), "30 2 * * *".to_owned(), "Europe/Berlin".to_owned());
    let schedule = Fact::Schedule { name, cron, zone, missed: Missed::Skip };
    let of = |session, fact| {
        let record = made(session, fact);
        Record { subject: Subject { operator: Some(OPERATOR), ..record.subject }, ..record }
    };
    let message = |session, number, because| {
        let fact = Fact::Message {
            id: MessageId(number),
            spans: Vec::new(),
            from: None,
            because,
            owed: true,
            scope: None,
            offset: None,
        };
        made(session, fact)
    };
    let fire = |at| Some(Because::Fire { name: "a".to_owned(), at: Timestamp(at) });
    block_on(log.append(of(ANNA, schedule))).unwrap();
    block_on(log.append(message(BERT, 1, fire(5)))).unwrap();
    let accepted = block_on(log.append(message(ANNA, 2, None))).unwrap().seq;
    let fact = Fact::Dead { message: MessageId(2), accepted, why: Undelivered::Stopped };
    let subject = Subject { session: Some(ANNA), ..Subject::default() };
    block_on(log.append(Record { subject, fact, content: None })).unwrap();
    let stands = |log: &Log| log.standing(|standing| (standing.schedules().count(), standing.dead().count()));
    assert_eq!((stands(&log), log.derived(ANNA).unwrap()), ((1, 1), vec![BERT]));
    erase(&log, ANNA).unwrap();
    assert_eq!(stands(&log), (0, 0), "what nobody can read is neither sent nor replayed");
    let late = block_on(log.append(message(BERT, 3, fire(6))));
    assert!(matches!(late, Err(AppendError::Misplaced(_))), "{late:?}");
    block_on(log.close()).unwrap();
    let (_log, recovered) = world.open().unwrap();
    assert_eq!((recovered.standing.schedules().count(), recovered.standing.dead().count()), (0, 0));
    world.verify(world.pinned()).unwrap();
}

#[test]
fn a_key_that_comes_back_from_a_copy_is_destroyed_at_the_next_opening() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    talked(&log);
    let path = Path::new("/home/vault/keys").join(ANNA.to_string());
    let copy = memory.get(&path);
    erase(&log, ANNA).unwrap();
    block_on(log.close()).unwrap();
    memory.put(&path, copy.clone());
    assert_eq!(opened(&world.open().unwrap().0, ANNA), [false]);
    assert_eq!(loot(&memory, &vault_key_bytes(), ANNA), (0, false));
    // Where the first format had it, too.
    memory.put(&Path::new("/home/vault").join(ANNA.to_string()), copy);
    assert_eq!(opened(&world.open().unwrap().0, ANNA), [false]);
    assert_eq!(loot(&memory, &vault_key_bytes(), ANNA), (0, false));
}

#[test]
fn keys_of_the_first_format_are_moved_to_their_place() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    talked(&log);
    block_on(log.close()).unwrap();
    let (old, new) =
        (Path::new("/home/vault").join(ANNA.to_string()), Path::new("/home/vault/keys").join(ANNA.to_string()));
    memory.put(&old, memory.get(&new));
    memory.take_away(&new);
    let (log, _) = world.open().unwrap();
    assert_eq!(opened(&log, ANNA), [true]);
    assert!(memory.paths().contains(&new) && !memory.paths().contains(&old));
}

/// Erases with a crash at every operation, in a home after a clean stop; `then` goes on until the crash comes.
fn crash_everywhere(memory: &Memory, world: &World, every: u64, then: &dyn Fn(&Log)) {
    let (mut gone, mut kept) = (0, 0);
    for operation in 1.. {
        let mut done = false;
        for after in [After::Kill, After::PowerCut, After::Mixed(operation)] {
            let copy = memory.copy();
            let here = world.with_files(copy.files());
            let (log, _) = here.open().unwrap();
            copy.fail_at(copy.operations() + operation, Fault::Crash);
            done = block_on(log.erase(ANNA, Vec::new(), "asked for".into(), OPERATOR)).is_ok();
            if done {
                then(&log);
            }
            let left = copy.after(after);
            copy.die();
            drop(log);
            let here = world.with_files(left.files());
            let (log, _) = here.open().unwrap_or_else(|error| panic!("crash at {operation}, {after:?}: {error}"));
            let recorded = log.entries().any(|stored| matches!(stored.unwrap().entry.fact, Fact::Erase { .. }));
            let what = format!("crash at operation {operation}, {after:?}, recorded: {recorded}");
            assert_eq!(opened(&log, ANNA), [!recorded], "{what}");
            assert!(recorded || !done, "{what}: acknowledged and lost");
            // To try every place takes long, so where much was published only some crashes are looted.
            if operation % every == 0 {
                assert_eq!(loot(&left, &vault_key_bytes(), ANNA), (usize::from(!recorded), false), "{what}");
            }
            let refused = matches!(erase(&log, ANNA), Err(EraseError::Already(ANNA)));
            assert_eq!(refused, recorded, "{what}");
            block_on(log.close()).unwrap();
            here.verify(here.pinned()).unwrap();
            if recorded { gone += 1 } else { kept += 1 }
        }
        if done && memory_is_quiet(memory, world, operation, then) {
            break;
        }
    }
    assert!(gone > 6 && kept > 3, "{gone} crashes after the record, {kept} before");
}

/// Whether all of it is over before this operation.
fn memory_is_quiet(memory: &Memory, world: &World, operation: u64, then: &dyn Fn(&Log)) -> bool {
    let copy = memory.copy();
    let (log, _) = world.with_files(copy.files()).open().unwrap();
    let before = copy.operations();
    block_on(log.erase(ANNA, Vec::new(), "asked for".into(), OPERATOR)).unwrap();
    then(&log);
    copy.operations() - before < operation
}

#[test]
fn a_crash_at_every_operation_of_erasing_ends_with_the_key_gone_or_nothing_recorded() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    talked(&log);
    block_on(log.close()).unwrap();
    crash_everywhere(&memory, &world, 1, &|_| ());
}

#[test]
fn a_crash_at_every_operation_of_erasing_and_recycling_ends_with_the_key_gone_or_nothing_recorded() {
    let (memory, world) = short();
    let (log, _) = world.open().unwrap();
    talked(&log);
    outgrow(&log, &world);
    block_on(log.close()).unwrap();
    crash_everywhere(&memory, &world, 7, &|log| {
        for number in 0..4 {
            drop(block_on(log.append(plain(number))));
            drop(block_on(log.publish()));
        }
    });
}

#[test]
fn an_erasure_holds_where_the_journal_no_longer_reaches() {
    let (memory, world) = short();
    let (log, _) = world.open().unwrap();
    talked(&log);
    outgrow(&log, &world);
    let path = Path::new("/home/vault/keys").join(ANNA.to_string());
    let copy = memory.get(&path);
    assert_eq!(loot(&memory, &vault_key_bytes(), ANNA), (1, false), "the attack works while the key is there");
    let erased = erase(&log, ANNA).unwrap();
    outgrow(&log, &world);
    assert_eq!((opened(&log, ANNA), opened(&log, BERT)), (vec![false], vec![true]));
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
    let journal = world.files.list(&world.config.folder.join("journal")).unwrap();
    let first = journal.iter().filter_map(|name| name.to_str()?.strip_suffix(".seg")?.parse::<u64>().ok()).min();
    assert!(first.unwrap() > erased.seq.0, "the journal still holds the erasure");
    memory.put(&path, copy);
    let (log, _) = world.open().unwrap();
    assert!(matches!(block_on(log.append(said(ANNA, 3, "more", None))), Err(AppendError::Erased { session: ANNA })));
    assert!(matches!(erase(&log, ANNA), Err(EraseError::Already(ANNA))));
    assert_eq!((opened(&log, ANNA), opened(&log, BERT)), (vec![false], vec![true]));
    assert_eq!(loot(&memory, &vault_key_bytes(), ANNA), (0, false));
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
}

#[test]
fn many_erasures_are_all_known_after_recycling_and_no_snapshot_repeats_them() {
    let (_, world) = short();
    let (log, _) = world.open().unwrap();
    let session = |number: u64| SessionId(u128::from(number + 1).to_be_bytes());
    let many = 3200;
    for number in 0..many {
        block_on(log.note(said(session(number), number, "said", None))).unwrap();
    }
    let threads: Vec<_> = (0..64)
        .map(|thread| {
            let log = log.clone();
            std::thread::spawn(move || {
                for number in (thread..many).step_by(64) {
                    block_on(log.erase(session(number), Vec::new(), String::new(), OPERATOR)).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    outgrow(&log, &world);
    let snapshots = log.entries().map(Result::unwrap).filter_map(|stored| match stored.entry.fact {
        Fact::Snapshot(snapshot) => Some((snapshot.of, snapshot.erased.len())),
        _ => None,
    });
    assert_eq!(snapshots.max(), Some((1, 0)));
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
    let (log, _) = world.open().unwrap();
    for number in (0..many).step_by(100).chain([many - 1]) {
        let again = block_on(log.erase(session(number), Vec::new(), String::new(), OPERATOR));
        assert!(matches!(again, Err(EraseError::Already(_))), "{number}: {again:?}");
    }
}

#[test]
fn only_the_log_itself_writes_erasures_and_changes_of_keys() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let mut record = plain(1);
    record.fact = Fact::Erase { session: ANNA, derived: Vec::new(), reason: String::new() };
    assert!(matches!(block_on(log.append(record.clone())), Err(AppendError::Misplaced(_))));
    record.fact = Fact::Keys { ed25519: String::new(), ml_dsa_65: String::new() };
    assert!(matches!(block_on(log.note(record)), Err(AppendError::Misplaced(_))));
}
