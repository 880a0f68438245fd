//! An operator prunes a home of more than a year: what goes, what stays and why, and what is left is whole.

use std::{
    fs,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, SystemTime},
};

use ephor_base::{Clock, EndReason, MessageId, Part, PartKind, Random, SessionId, Timestamp, TurnReport, files::Files};
use ephor_chain::{Config, Log, SigningKeys, VaultKey, disk::Disk};
use ephor_record::{Content, Fact, Record, Subject};
use serde_json::Value;

use crate::place::{Place, Ran, wait_until};

const DAY: u64 = 86_400_000_000;

/// A clock that is set by hand.
struct Past(AtomicU64);

impl Clock for Past {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

struct Counted(AtomicU64);

impl Random for Counted {
    fn fill(&self, into: &mut [u8]) {
        for chunk in into.chunks_mut(8) {
            let next = self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            chunk.copy_from_slice(&next.to_le_bytes()[..chunk.len()]);
        }
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// A home in which somebody asked something every day, up to yesterday.
fn aged(days: u64) -> Place {
    let place = Place::new();
    place.make_home();
    let (files, random): (Arc<dyn Files>, Arc<dyn Random>) = (Arc::new(Disk), Arc::new(Counted(7.into())));
    fs::create_dir_all(place.home.join("keys")).unwrap();
    let signing = SigningKeys::generate(&*random);
    signing.save(&place.home.join("keys/log"), &Disk).unwrap();
    fs::write(place.home.join("keys/log.pub"), signing.verifier().to_string()).unwrap();
    let vault = VaultKey::generate(&*random);
    fs::remove_file(place.home.join("keys/vault")).unwrap();
    vault.save(&place.home.join("keys/vault"), &Disk).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
    let clock = Arc::new(Past(AtomicU64::new(u64::try_from(now).unwrap() - (days + 1) * DAY)));
    let config = Config { publish_every: Duration::MAX, ..Config::in_home(&place.home) };
    let (log, _) = Log::open(config, signing, Arc::new(vault), files, clock.clone(), random, "1").unwrap();
    for day in 0..days {
        clock.0.fetch_add(DAY, Ordering::Relaxed);
        let subject = Subject { session: Some(SessionId((u128::from(day) + 1).to_be_bytes())), ..Subject::default() };
        let own = |fact, content| Record { subject: subject.clone(), fact, content };
        let parts = vec![Part { kind: PartKind::Typed, text: format!("what was said on day {day}") }];
        let message = Fact::Message {
            id: MessageId(day + 1),
            spans: Vec::new(),
            from: None,
            because: None,
            owed: false,
            scope: None,
            offset: None,
        };
        block_on(log.note(own(message, Some(Content::Parts(parts))))).unwrap();
        block_on(log.note(own(Fact::Lease { secret: "token".into() }, None))).unwrap();
        let (message, report) = (MessageId(day + 1), TurnReport::default());
        block_on(log.append(own(Fact::TurnEnd { message, end: EndReason::Replied, report }, None))).unwrap();
    }
    block_on(log.close()).unwrap();
    place
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_home_is_pruned_and_the_rest_is_whole_proven_and_goes_on() {
    let place = aged(400);
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    let dry = place.run(&["chain", "prune", "--dry-run"]).succeeded().stdout;
    assert!(dry.contains("entries would go, from entry 0 to ") && dry.contains("UTC"), "{dry}");
    assert!(!place.home.join("chain/minimum").exists(), "a dry run changed something");
    place.run(&["chain", "prune"]).failed(&["nothing was pruned", "--yes"]);
    let before = place.log();
    let pruned = json(&place.run(&["chain", "prune", "--yes", "--json"]).succeeded());
    let minimum = pruned["plan"]["minimum"].as_u64().unwrap();
    assert!(minimum >= 256 && pruned["entries"] == minimum && pruned["pruned"].as_u64().unwrap() > minimum, "{pruned}");

    place.verify();
    let told = place.run(&["chain", "verify"]).succeeded().stdout;
    assert!(told.contains(&format!("begins  at entry {minimum}; what lay before it was pruned")), "{told}");
    let after = place.log_now();
    assert_eq!(after[0]["seq"].as_u64().unwrap(), minimum);
    assert_eq!(after[..10], before[usize::try_from(minimum).unwrap()..][..10]);
    let stat = json(&place.run(&["chain", "stat", "--json"]).succeeded());
    assert_eq!((&stat["minimum"], &stat["oldest"]), (&minimum.into(), &after[0]["time"]));
    assert!(place.run(&["chain", "stat"]).succeeded().stdout.contains(&format!("those before {minimum} were pruned")));
    let gone = (minimum - 1).to_string();
    place.run(&["chain", "prove", &gone]).failed(&["was pruned", &format!("begins at entry {minimum}")]);
    place.run(&["chain", "export", "--from", &gone]).failed(&["was pruned", &minimum.to_string()]);
    let first = place.run(&["chain", "prove", &minimum.to_string()]).succeeded().stdout;
    let file = place.file("proof", first);
    place
        .run(&["chain", "check", file.to_str().unwrap(), "--key", place.home.join("keys/log.pub").to_str().unwrap()])
        .succeeded();
    let export = place.run(&["chain", "export"]).succeeded().stdout;
    assert!(export.lines().nth(1).unwrap().contains(&format!("\"seq\":{minimum}")), "{}", &export[..200]);
    let log = place.run(&["chain", "log", "--kind", "prune"]).succeeded().stdout;
    assert!(log.contains(&format!("entries before {minimum}, all of them kept for 180 days")), "{log}");

    place.run(&["run", "list the files"]).succeeded();
    place.verify();
    place.node_is_gone();
    let nothing = place.run(&["chain", "prune", "--yes"]).succeeded().stdout;
    assert!(nothing.contains("Nothing can be pruned"), "{nothing}");
}

#[test]
fn a_running_node_prunes_and_says_what_stays() {
    let place = aged(400);
    let node = place.up();
    let dry = json(&place.run(&["chain", "prune", "--dry-run", "--keep", "300d", "--json"]).succeeded());
    assert!(dry["pruned"].is_null() && dry["plan"]["keep_days"] == 300, "{dry}");
    let pruned = place.run(&["chain", "prune", "--yes"]).succeeded().stdout;
    assert!(pruned.starts_with("Pruned: ") && pruned.contains("The log begins at entry"), "{pruned}");
    let sessions = place.run(&["sessions"]).succeeded().stdout;
    assert!(sessions.lines().count() > 10, "{sessions}");
    node.signal(rustix::process::Signal::TERM);
    node.ended();
    wait_until("the node is gone", || !place.is_locked());
    place.verify();
    assert!(place.home.join("chain/minimum").exists());
}

#[test]
fn nothing_is_kept_for_less_than_the_floor() {
    let place = aged(3);
    place.run(&["run", "hi"]).succeeded();
    place.node_is_gone();
    let why = ["90 days are too few", "at least 180 days"];
    place.run(&["chain", "prune", "--keep", "90d"]).failed(&why);
    place.configure("[chain]\nkeep = \"90d\"\n");
    place.run(&["chain", "prune"]).failed(&why);
    place.run(&["run", "hi"]).failed(&why);
    place.configure("[chain]\nkeep = \"1y\"\n");
    place.run(&["run", "hi"]).failed(&["`1y` is no number of days"]);
    place.configure("[chain]\nkeep = \"365d\"\n");
    place.run(&["chain", "prune", "--keep", "200d"]).failed(&["kept for 365d", "`keep` under `[chain]`"]);
    place.run(&["chain", "prune", "--keep", "400d", "--before", "2026-01-01"]).failed(&["cannot be used with"]);
    let nothing = place.run(&["chain", "prune"]).succeeded().stdout;
    assert!(nothing.contains("kept for 365 days"), "{nothing}");
    Place::fresh().run(&["chain", "prune"]).failed(&["there is no chain yet"]);
}
