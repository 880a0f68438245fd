//! A witness, from its first request to its last, whatever goes wrong in between.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Barrier},
    thread,
};

use ephor_base::{Digest, Timestamp, files::Files};
use ephor_chain::{Answer, CosignerKeys, Submission, SubmissionError, Witness, WitnessError};
use ephor_signatures::Signatures;
use ephor_tlog::{Algorithm, Head, KnownLog, Note, checkpoint::cosignature::cosignatures};
use ephor_verify::{Checked, check};

use crate::common::{
    Seeded,
    history::{History, Leaves, Plain, root},
    memory::{After, Fault, Memory},
};

pub(crate) const NOW: Timestamp = Timestamp(1_795_226_899_000_000);
const FOLDER: &str = "/home/witness";

fn keys(random: &Seeded) -> CosignerKeys {
    CosignerKeys::generate("witness.example/w", random).unwrap()
}

/// A new witness, in memory.
pub(crate) fn opened(logs: Vec<KnownLog>, random: &Seeded) -> Witness {
    Witness::create(Path::new(FOLDER), keys(random), logs, &Memory::default().files()).unwrap()
}

pub(crate) fn submit(witness: &Witness, old: u64, path: &[Digest], checkpoint: &[u8]) -> Answer {
    let body = Submission::new(checkpoint, old, path.to_vec()).unwrap().body();
    witness.add_checkpoint(&body, NOW)
}

/// A log of anybody, with the hashes of its leaves.
struct Log {
    plain: Plain,
    leaves: Leaves,
}

impl Log {
    fn new(salt: u8) -> Self {
        let leaves = (0..40u8).map(|n| if n < 4 { Digest([n; 32]) } else { Digest([n ^ salt; 32]) }).collect();
        Self { plain: Plain::new(1, "log.example/a"), leaves: Leaves(leaves) }
    }

    fn checkpoint(&self, size: usize) -> Vec<u8> {
        self.plain.sign(self.leaves.head(size))
    }

    fn submit(&self, witness: &Witness, old: usize, size: usize) -> Answer {
        submit(witness, old as u64, &self.leaves.consistency(old, size), &self.checkpoint(size))
    }
}

fn raw(witness: &Witness, body: &[u8]) -> u16 {
    witness.add_checkpoint(body, NOW).response.status
}

#[test]
fn a_log_that_grows_is_cosigned_with_both_keys_at_every_step() {
    let log = Log::new(0);
    let witness = opened(vec![log.plain.known()], &Seeded::new(8));
    let mut old = 0;
    for size in [0, 0, 1, 1, 2, 3, 8, 21, 40] {
        let answer = log.submit(&witness, old, size);
        assert_eq!((answer.response.status, &answer.fork), (200, &None), "{old} to {size}");
        let whole = [log.checkpoint(size), answer.response.body.clone()].concat();
        let said = cosignatures(&Note::parse(&whole).unwrap(), witness.keys().verifier(), &Signatures).unwrap();
        let said: Vec<_> = said.iter().map(|said| (said.algorithm, said.seconds)).collect();
        assert_eq!(said, [(Algorithm::Ed25519, NOW.0 / 1_000_000), (Algorithm::MlDsa44, NOW.0 / 1_000_000)]);
        assert_eq!(witness.seen("log.example/a"), Some(log.leaves.head(size)));
        let shown = witness.checkpoint(Digest::of(b"log.example/a"));
        assert_eq!((shown.status, shown.body), (200, whole));
        old = size;
    }
    assert_eq!(witness.checkpoint(Digest::of(b"log.example/b")).status, 404);
}

#[test]
fn a_log_of_ephor_needs_both_its_signatures() {
    let history = History::of(&["one", "two"]);
    let witness = opened(vec![history.known()], &Seeded::new(8));
    let (size, bytes) = &history.checkpoints[0];
    let note = Note::parse(bytes).unwrap();
    for at in [0, 1] {
        let mut one = note.clone();
        one.signatures.remove(at);
        assert_eq!(submit(&witness, 0, &[], &one.to_bytes()).response.status, 403);
        let mut wrong = note.clone();
        wrong.signatures[at].signature[9] ^= 1;
        assert_eq!(submit(&witness, 0, &[], &wrong.to_bytes()).response.status, 403);
    }
    assert_eq!(submit(&witness, 0, &[], bytes).response.status, 200);
    let (next, later) = &history.checkpoints[1];
    let path = history.leaves().consistency(*size, *next);
    assert_eq!(submit(&witness, *size as u64, &path, later).response.status, 200);
}

#[test]
fn every_refusal_has_its_status_and_leaves_what_was_seen() {
    let log = Log::new(0);
    let witness = opened(vec![log.plain.known()], &Seeded::new(8));
    assert_eq!(log.submit(&witness, 0, 21).response.status, 200);
    let good = Submission::new(&log.checkpoint(30), 21, log.leaves.consistency(21, 30)).unwrap().body();
    let text = String::from_utf8(good.clone()).unwrap();
    let behind = log.submit(&witness, 8, 30).response;
    assert_eq!((behind.status, behind.content_type, behind.body), (409, "text/x.tlog.size", b"21\n".to_vec()));
    // A checkpoint of before, and one beyond with no word of before.
    assert_eq!(log.submit(&witness, 8, 8).response.status, 409);
    assert_eq!(log.submit(&witness, 0, 30).response.status, 409);
    // Malformed, which nobody needs to have signed.
    for bad in [
        String::new(),
        text.replace("old 21", "old 021"),
        text.replace("old 21", "old +21"),
        text.replace("old 21", "old  21"),
        text.replace("old 21\n", ""),
        text.replace("old 21\n", "old 21\n=\n"),
        text.replace("old 21\n", "old 21\r\n"),
        text.replace("old 21\n", "old 21\n\n"),
        text.replace("old 21", &format!("old 21{}", "\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".repeat(64))),
        text.trim_end().to_owned(),
        text.replace("— ", "- "),
    ] {
        assert_eq!(raw(&witness, bad.as_bytes()), 400, "{bad}");
    }
    // The old size beyond the checkpoint.
    assert_eq!(raw(&witness, text.replace("old 21", "old 31").as_bytes()), 400);
    // Not signed by the log, which the size is not told to.
    let stranger = Plain::new(2, "log.example/a");
    assert_eq!(submit(&witness, 8, &[], &stranger.sign(log.leaves.head(30))).response.status, 403);
    let elsewhere = Plain::new(1, "log.example/b");
    assert_eq!(submit(&witness, 0, &[], &elsewhere.sign(log.leaves.head(30))).response.status, 404);
    // Proofs that prove nothing.
    let path = log.leaves.consistency(21, 30);
    let zeros = vec![Digest([0; 32]); path.len()];
    for wrong in [&path[1..], &[], &zeros, &[path.clone(), vec![Digest([0; 32])]].concat()] {
        let answer = submit(&witness, 21, wrong, &log.checkpoint(30));
        assert_eq!((answer.response.status, answer.fork), (422, None));
    }
    let answer = submit(&witness, 21, &path, &log.checkpoint(21));
    assert_eq!((answer.response.status, answer.fork), (422, None));
    assert_eq!(witness.seen("log.example/a"), Some(log.leaves.head(21)));
    assert_eq!(raw(&witness, &good), 200);
}

#[test]
fn a_checkpoint_of_no_entries_has_the_root_of_nothing() {
    let log = Log::new(0);
    let witness = opened(vec![log.plain.known()], &Seeded::new(8));
    let forged = log.plain.sign(Head { size: 0, root: Digest([1; 32]) });
    assert_eq!(submit(&witness, 0, &[], &forged).response.status, 422);
    assert_eq!(submit(&witness, 0, &[Digest([1; 32])], &log.checkpoint(3)).response.status, 422);
    assert_eq!(witness.seen("log.example/a"), None);
    assert_eq!(log.submit(&witness, 0, 0).response.status, 200);
}

#[test]
fn extension_lines_are_signed_but_not_on_a_log_of_ephor() {
    let plain = Plain::new(1, "log.example/a");
    let text = format!("{}extension\n", plain.text(Head { size: 1, root: Digest([1; 32]) }));
    let witness = opened(vec![plain.known()], &Seeded::new(8));
    let answer = submit(&witness, 0, &[], &plain.sign_text(text.clone()));
    assert_eq!(answer.response.status, 200);
    let empty = text.replace("extension\n", "\nextension\n");
    let body = [b"old 1\n\n".as_slice(), &plain.sign_text(empty)].concat();
    assert_eq!(raw(&witness, &body), 400);
}

#[test]
fn the_time_of_cosignatures_never_goes_back() {
    let log = Log::new(0);
    let memory = Memory::default();
    let known = || vec![log.plain.known()];
    let random = || Seeded::new(8);
    let witness = Witness::create(Path::new(FOLDER), keys(&random()), known(), &memory.files()).unwrap();
    let time = |witness: &Witness, old: usize, size: usize, now: u64| {
        let submission = Submission::new(&log.checkpoint(size), old as u64, log.leaves.consistency(old, size)).unwrap();
        let response = witness.add_checkpoint(&submission.body(), Timestamp(now * 1_000_000)).response;
        let keys = witness.keys().verifier();
        submission.read_answer(response.status, response.content_type, &response.body, keys).unwrap().said[0].seconds
    };
    assert_eq!(time(&witness, 0, 5, 0), 1);
    assert_eq!(time(&witness, 5, 6, 1000), 1000);
    assert_eq!(time(&witness, 6, 7, 900), 1000);
    let again = Witness::open(Path::new(FOLDER), keys(&random()), known(), &memory.files()).unwrap();
    assert_eq!(time(&again, 7, 7, 800), 1000);
    assert_eq!(time(&again, 7, 9, 1001), 1001);
}

#[test]
fn two_histories_become_a_fork_proof_that_anyone_can_check() {
    let (honest, other) = (Log::new(0), Log::new(0x80));
    let memory = Memory::default();
    let logs = vec![honest.plain.known()];
    let witness = Witness::create(Path::new(FOLDER), keys(&Seeded::new(8)), logs, &memory.files()).unwrap();
    assert_eq!(honest.submit(&witness, 0, 21).response.status, 200);
    for (old, size, status) in [(21, 21, 422), (8, 21, 409), (21, 30, 422), (21, 22, 422)] {
        let answer = other.submit(&witness, old, size);
        assert_eq!(answer.response.status, status, "{old} to {size}");
        let proof = answer.fork.unwrap().to_bytes();
        let Ok(Checked::Fork(fork)) = check(&proof, None, &[honest.plain.known()], &[]) else { panic!() };
        assert_eq!((fork.smaller.size, fork.larger.size), (21, size as u64));
    }
    let kept = memory.get(&Path::new(FOLDER).join(format!("{}.fork", Digest::of(b"log.example/a"))));
    assert!(matches!(check(&kept, None, &[honest.plain.known()], &[]), Ok(Checked::Fork(_))));
    // What was seen stays, and the honest history goes on.
    assert_eq!(honest.submit(&witness, 21, 30).response.status, 200);
}

#[test]
fn nobody_but_the_log_can_make_the_witness_accuse_it() {
    let log = Log::new(0);
    let other = Log::new(0x80);
    for size in 21..=40 {
        let witness = opened(vec![log.plain.known()], &Seeded::new(8));
        assert_eq!(log.submit(&witness, 0, 21).response.status, 200);
        let good = log.leaves.consistency(21, size);
        for old in 0..=size {
            for path in [log.leaves.consistency(old, size), other.leaves.consistency(old, size)] {
                if (old, &path) != (21, &good) {
                    let answer = submit(&witness, old as u64, &path, &log.checkpoint(size));
                    assert_ne!(answer.response.status, 200, "{old} to {size}");
                    assert_eq!(answer.fork, None, "{old} to {size}");
                }
            }
        }
        assert_eq!(submit(&witness, 21, &good, &log.checkpoint(size)).response.status, 200);
    }
}

#[test]
fn a_witness_that_is_killed_anywhere_never_forgets_what_it_cosigned() {
    let log = Log::new(0);
    let known = || vec![log.plain.known()];
    let folder = Path::new(FOLDER);
    let steps = [(0, 3), (3, 8), (8, 8), (8, 21)];
    let run = |memory: &Memory| {
        let files: Arc<dyn Files> = memory.files();
        let Ok(witness) = Witness::create(folder, keys(&Seeded::new(8)), known(), &files) else { return (false, 0) };
        let answered = |(old, size): &(usize, usize)| log.submit(&witness, *old, *size).response.status == 200;
        let done = steps.iter().filter(|step| answered(step)).map(|(_, size)| *size).max();
        (true, done.unwrap_or(0))
    };
    let whole = Memory::default();
    assert_eq!(run(&whole), (true, 21));
    for at in 1..=whole.operations() {
        for fault in [Fault::Crash, Fault::Torn, Fault::Eio, Fault::Enospc, Fault::Short] {
            let memory = Memory::default();
            memory.fail_at(at, fault);
            let (created, cosigned) = run(&memory);
            let afters = [After::Kill, After::PowerCut, After::Mixed(1), After::Mixed(2), After::Mixed(3)];
            for after in afters {
                let files: Arc<dyn Files> = memory.after(after).files();
                let again = Witness::open(folder, keys(&Seeded::new(8)), known(), &files);
                let witness = match again {
                    Ok(witness) => witness,
                    Err(error) => {
                        assert!(!created && cosigned == 0, "{fault:?} at {at}, {after:?}: {error}");
                        continue;
                    }
                };
                let seen = witness.seen("log.example/a").map_or(0, |head| head.size);
                assert!(seen >= cosigned as u64, "{fault:?} at {at}, {after:?}: {cosigned} cosigned, {seen} kept");
                let from = usize::try_from(seen).unwrap();
                assert_eq!(log.submit(&witness, from, 40).response.status, 200, "{fault:?} at {at}, {after:?}");
            }
        }
    }
}

#[test]
fn a_witness_whose_store_is_not_whole_does_not_open() {
    let log = Log::new(0);
    let known = || vec![log.plain.known(), Plain::new(3, "log.example/c").known()];
    let folder = Path::new(FOLDER);
    let memory = Memory::default();
    let open = |memory: &Memory| Witness::open(folder, keys(&Seeded::new(8)), known(), &memory.files());
    assert!(matches!(open(&memory), Err(WitnessError::Missing(_) | WitnessError::Io(_))));
    let witness = Witness::create(folder, keys(&Seeded::new(8)), known(), &memory.files()).unwrap();
    assert_eq!(log.submit(&witness, 0, 21).response.status, 200);
    let third = Plain::new(3, "log.example/c");
    assert_eq!(submit(&witness, 0, &[], &third.sign(log.leaves.head(5))).response.status, 200);
    assert!(open(&memory).is_ok());
    let again = Witness::create(folder, keys(&Seeded::new(8)), known(), &memory.files());
    assert!(matches!(again, Err(WitnessError::Exists(_))));
    let files = memory.everything();
    assert_eq!(files.len(), 3);
    for (path, bytes) in &files {
        let gone = memory.copy();
        gone.take_away(path);
        assert!(matches!(open(&gone), Err(WitnessError::Damaged(_))), "without {}", path.display());
        for at in 0..bytes.len() {
            let spoilt = memory.copy();
            let mut other = bytes.clone();
            other[at] ^= 1;
            spoilt.put(path, other);
            assert!(matches!(open(&spoilt), Err(WitnessError::Damaged(_))), "byte {at} of {}", path.display());
        }
        for other in files.iter().filter(|(other, _)| other != path) {
            let swapped = memory.copy();
            swapped.put(path, other.1.clone());
            assert!(matches!(open(&swapped), Err(WitnessError::Damaged(_))), "another file as {}", path.display());
        }
    }
    let stranger = Witness::open(folder, keys(&Seeded::new(9)), known(), &memory.files());
    assert!(matches!(stranger, Err(WitnessError::Damaged(_))));
    // A log that is no longer known is left alone, and is not new when it is known again.
    let fewer = Witness::open(folder, keys(&Seeded::new(8)), vec![third.known()], &memory.files()).unwrap();
    assert_eq!(fewer.seen("log.example/a"), None);
    assert_eq!(open(&memory).unwrap().seen("log.example/a"), Some(log.leaves.head(21)));
}

#[test]
fn of_two_histories_at_once_one_alone_is_cosigned() {
    for _ in 0..20 {
        let logs = [Log::new(0), Log::new(0x80)];
        let witness = opened(vec![logs[0].plain.known()], &Seeded::new(8));
        assert_eq!(logs[0].submit(&witness, 0, 4).response.status, 200);
        let start = Barrier::new(4);
        let cosigned: Vec<u16> = thread::scope(|scope| {
            let ask = |log: usize, size: usize| {
                let (log, witness, start) = (&logs[log], &witness, &start);
                scope.spawn(move || {
                    start.wait();
                    log.submit(witness, 4, size).response.status
                })
            };
            let all = [ask(0, 20), ask(1, 20), ask(0, 30), ask(1, 30)];
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(cosigned.iter().filter(|status| **status == 200).count(), 1, "{cosigned:?}");
    }
}

#[test]
fn a_client_counts_only_what_holds() {
    let log = Log::new(0);
    let witness = opened(vec![log.plain.known()], &Seeded::new(8));
    let submission = Submission::new(&log.checkpoint(21), 0, Vec::new()).unwrap();
    let response = witness.add_checkpoint(&submission.body(), NOW).response;
    let keys = witness.keys().verifier();
    let read = |status, kind: &str, body: &[u8]| submission.read_answer(status, kind, body, keys);
    let cosigned = read(200, response.content_type, &response.body).unwrap();
    assert_eq!((cosigned.lines.len(), cosigned.said.len()), (2, 2));
    let lines = String::from_utf8(response.body.clone()).unwrap();
    let first = lines.split_inclusive('\n').next().unwrap();
    let stranger = "— stranger.example AQIDBAUGBwg=\n";
    assert_eq!(read(200, "", format!("{stranger}{first}").as_bytes()).unwrap().lines.len(), 1);
    assert_eq!(read(200, "", stranger.as_bytes()), Err(SubmissionError::NoCosignature));
    assert_eq!(read(200, "", b""), Err(SubmissionError::Answer));
    assert_eq!(read(200, "", &response.body[1..]), Err(SubmissionError::Answer));
    // The same lines under another checkpoint.
    let other = Submission::new(&log.checkpoint(22), 0, Vec::new()).unwrap();
    assert!(matches!(other.read_answer(200, "", &response.body, keys), Err(SubmissionError::Cosignature(_))));
    let size = "text/x.tlog.size";
    assert_eq!(read(409, size, b"7\n"), Err(SubmissionError::Retry { seen: 7 }));
    assert_eq!(read(409, size, b"22\n"), Err(SubmissionError::Ahead { seen: 22, ours: 21 }));
    for (kind, body) in [("text/plain", "7\n"), (size, "7"), (size, "07\n"), (size, "-7\n"), (size, "0\n"), (size, "")]
    {
        assert_eq!(read(409, kind, body.as_bytes()), Err(SubmissionError::Answer), "{kind} {body:?}");
    }
    for (status, error) in [
        (400, SubmissionError::Malformed),
        (403, SubmissionError::Signatures),
        (404, SubmissionError::UnknownLog),
        (422, SubmissionError::Inconsistent),
        (500, SubmissionError::Status(500)),
        (302, SubmissionError::Status(302)),
    ] {
        assert_eq!(read(status, "", &response.body), Err(error));
    }
    assert!(Submission::new(&log.checkpoint(3), 4, Vec::new()).is_err());
    assert!(Submission::new(&log.checkpoint(3), 1, vec![Digest([0; 32]); 64]).is_err());
    assert!(Submission::new(b"nothing", 0, Vec::new()).is_err());
}

/// One exchange, as HTTP/1.1 has it.
fn post(address: std::net::SocketAddr, body: &[u8]) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let top = format!("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[top.as_bytes(), body].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let split = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let top = String::from_utf8(answer[..split].to_vec()).unwrap();
    let status = top.split(' ').nth(1).unwrap().parse().unwrap();
    let kind = top.lines().find_map(|line| line.strip_prefix("Content-Type: ")).unwrap().to_owned();
    (status, kind, answer[split + 4..].to_vec())
}

fn serve(listener: &TcpListener, witness: &Witness, exchanges: usize) {
    for stream in listener.incoming().take(exchanges) {
        let mut stream = stream.unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        let (split, length) = loop {
            let count = stream.read(&mut piece).unwrap();
            request.extend_from_slice(&piece[..count]);
            let Some(split) = request.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let top = String::from_utf8(request[..split].to_vec()).unwrap();
            let length = top.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            break (split + 4, length.parse::<usize>().unwrap());
        };
        while request.len() < split + length {
            let count = stream.read(&mut piece).unwrap();
            request.extend_from_slice(&piece[..count]);
        }
        let response = witness.add_checkpoint(&request[split..], NOW).response;
        let top = format!(
            "HTTP/1.1 {} .\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            response.status,
            response.content_type,
            response.body.len()
        );
        stream.write_all(&[top.as_bytes(), &response.body].concat()).unwrap();
    }
}

#[test]
fn a_log_is_witnessed_over_a_wire_beginning_from_a_conflict() {
    let log = Log::new(0);
    let witness = opened(vec![log.plain.known()], &Seeded::new(8));
    assert_eq!(log.submit(&witness, 0, 8).response.status, 200);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| serve(&listener, &witness, 2));
        let ask = |old: usize| {
            let path = log.leaves.consistency(old, 21);
            let submission = Submission::new(&log.checkpoint(21), old as u64, path).unwrap();
            let (status, kind, body) = post(address, &submission.body());
            submission.read_answer(status, &kind, &body, witness.keys().verifier())
        };
        let Err(SubmissionError::Retry { seen: 8 }) = ask(0) else { panic!() };
        assert_eq!(ask(8).unwrap().said.len(), 2);
    });
    assert_eq!(witness.seen("log.example/a").unwrap().root, root(&log.leaves.0[..21]));
}
