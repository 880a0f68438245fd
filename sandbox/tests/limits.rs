//! A guest that means harm reaches its limit, is told apart by it, and harms nobody else.

mod common;

use common::{Folder, HOSTILE, engine, hostile};
use ephor_base::Limits;
use ephor_sandbox::{
    Access, ComponentError, DEFAULT_LIMITS, Engine, GuestCall, GuestFailure, LimitReached, ToolFailure,
};
use serde_json::json;
use std::time::{Duration, Instant};

const ENDLESS: u64 = u64::MAX / 2;

/// After the misbehaviour, a good guest on the same engine still answers.
async fn still_works(folder: &Folder) {
    folder.write("after", "fine\n");
    assert_eq!(folder.answer("fs.read", json!({"path": "after"})).await.content, "fine\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_loops_runs_out_of_fuel() {
    let folder = Folder::new();
    let limits = Limits { fuel: 50_000_000, ..DEFAULT_LIMITS };
    let failure = folder.misbehave("loop", "", limits).await.unwrap_err();
    assert_eq!(failure, GuestFailure::Limit(LimitReached::Fuel { fuel: 50_000_000 }));
    assert!(failure.to_string().contains("50000000 units of fuel"));
    still_works(&folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_loops_with_fuel_to_burn_meets_its_deadline() {
    let folder = Folder::new();
    let limits = Limits { fuel: ENDLESS, deadline_ms: 200, ..DEFAULT_LIMITS };
    let start = Instant::now();
    let failure = folder.misbehave("loop", "", limits).await.unwrap_err();
    assert_eq!(failure, GuestFailure::Limit(LimitReached::Deadline { deadline_ms: 200 }));
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
    still_works(&folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deadline_holds_even_if_nobody_ticks() {
    let unticked = Engine::new().unwrap();
    let component = unticked.load(HOSTILE, None, None).unwrap();
    let folder = Folder::new();
    let limits = Limits { fuel: ENDLESS, deadline_ms: 200, ..DEFAULT_LIMITS };
    let call = GuestCall { limits, ..folder.call("loop", "") };
    let failure = unticked.run(&component, call, std::future::pending()).await.unwrap_err();
    assert_eq!(failure, GuestFailure::Limit(LimitReached::Deadline { deadline_ms: 200 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_sleeps_meets_its_deadline() {
    let folder = Folder::new();
    let limits = Limits { deadline_ms: 200, ..DEFAULT_LIMITS };
    let failure = folder.misbehave("sleep", "", limits).await.unwrap_err();
    assert_eq!(failure, GuestFailure::Limit(LimitReached::Deadline { deadline_ms: 200 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_allocates_without_end_meets_its_memory_limit() {
    let folder = Folder::new();
    let limits = Limits { memory_bytes: 16 << 20, ..DEFAULT_LIMITS };
    let failure = folder.misbehave("allocate", "", limits).await.unwrap_err();
    assert_eq!(failure, GuestFailure::Limit(LimitReached::Memory { memory_bytes: 16 << 20 }));
    let failure = folder.misbehave("allocate", "", Limits { memory_bytes: ENDLESS, ..DEFAULT_LIMITS }).await;
    let ceiling = LimitReached::Memory { memory_bytes: ephor_sandbox::MEMORY_CEILING };
    assert_eq!(failure.unwrap_err(), GuestFailure::Limit(ceiling));
    still_works(&folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_prints_without_end_meets_its_output_limit() {
    let folder = Folder::new();
    let limits = Limits { output_bytes: 100_000, ..DEFAULT_LIMITS };
    for way in ["print", "complain"] {
        let failure = folder.misbehave(way, "", limits).await.unwrap_err();
        assert_eq!(failure, GuestFailure::Limit(LimitReached::Output { output_bytes: 100_000 }), "{way}");
    }
    still_works(&folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_long_meets_the_output_limit() {
    let folder = Folder::new();
    let over = LimitReached::Output { output_bytes: DEFAULT_LIMITS.output_bytes };
    let failure = folder.misbehave("answer", "12", DEFAULT_LIMITS).await.unwrap_err();
    assert_eq!(failure, GuestFailure::Limit(over));
    assert_eq!(folder.misbehave("answer", "1", DEFAULT_LIMITS).await.unwrap().content.len(), 1_000_000);
    // Ten million empty strings are nothing in the guest's words and a quarter of a gigabyte in the host's.
    let limits = Limits { memory_bytes: 256 << 20, ..DEFAULT_LIMITS };
    let failure = folder.misbehave("list", "", limits).await.unwrap_err();
    assert!(matches!(failure, GuestFailure::Limit(_) | GuestFailure::Trap { .. }), "{failure}");
    still_works(&folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_hoards_handles_is_ended() {
    let folder = Folder::new();
    let failure = folder.misbehave("hoard", "", DEFAULT_LIMITS).await.unwrap_err();
    assert_eq!(failure, GuestFailure::Limit(LimitReached::Handles { handles: 256 }));
    still_works(&folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_breaks_says_how() {
    let folder = Folder::new();
    // WASI 0.2 tells success from failure and no more than that.
    for (way, words) in [("panic", "on purpose"), ("exit", "status 1"), ("recurse", "out of bounds")] {
        match folder.misbehave(way, "", DEFAULT_LIMITS).await.unwrap_err() {
            GuestFailure::Trap { reason } => assert!(reason.contains(words), "{way}: {reason}"),
            other => panic!("{way}: {other:?}"),
        }
    }
    still_works(&folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_guest_is_gone_when_the_call_returns() {
    let engine = Engine::new().unwrap();
    let component = engine.load(HOSTILE, None, None).unwrap();
    let ticking = engine.clone();
    let ticker = tokio::spawn(async move { ticking.ticker().await });
    let folder = Folder::new();
    for way in ["loop", "sleep"] {
        let limits = Limits { fuel: ENDLESS, ..DEFAULT_LIMITS };
        let call = GuestCall { limits, ..folder.call(way, "") };
        let start = Instant::now();
        let outcome = engine.run(&component, call, tokio::time::sleep(Duration::from_millis(100))).await;
        assert_eq!(outcome, Err(GuestFailure::Cancelled), "{way}");
        assert!(start.elapsed() < Duration::from_millis(600), "{way} {:?}", start.elapsed());
        assert_eq!(engine.running(), 0, "{way}");
    }
    ticker.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_leaves_no_guest_behind() {
    let engine = Engine::new().unwrap();
    let component = engine.load(HOSTILE, None, None).unwrap();
    let ticking = engine.clone();
    let ticker = tokio::spawn(async move { ticking.ticker().await });
    let folder = Folder::new();
    for way in ["loop", "sleep"] {
        let limits = Limits { fuel: ENDLESS, ..DEFAULT_LIMITS };
        let call = GuestCall { limits, ..folder.call(way, "") };
        let run = engine.run(&component, call, std::future::pending());
        assert!(tokio::time::timeout(Duration::from_millis(100), run).await.is_err(), "{way}");
        let start = Instant::now();
        while engine.running() > 0 {
            assert!(start.elapsed() < Duration::from_millis(500), "{way} is still running");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    ticker.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_loop_on_every_slot_do_not_keep_the_workers() {
    let folder = std::sync::Arc::new(Folder::new());
    let calls: Vec<_> = (0..Engine::SLOTS * 2)
        .map(|_| {
            let folder = folder.clone();
            let limits = Limits { fuel: ENDLESS, deadline_ms: 300, ..DEFAULT_LIMITS };
            tokio::spawn(async move { folder.misbehave("loop", "", limits).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let start = Instant::now();
    for _ in 0..100 {
        tokio::spawn(async {}).await.unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    for call in calls {
        assert!(matches!(call.await.unwrap(), Err(GuestFailure::Limit(LimitReached::Deadline { .. }))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_finds_nothing_but_its_workspace() {
    let folder = Folder::new();
    let seen = folder.misbehave("look", "", DEFAULT_LIMITS).await.unwrap().content;
    let (known, random) = seen.split_once(" random ").unwrap();
    assert_eq!(known, "environment [] arguments [] directory None preopened [\"/\"] seconds 0 nanoseconds 0");
    // The same seed gives the same, another seed another.
    assert_eq!(folder.misbehave("look", "", DEFAULT_LIMITS).await.unwrap().content, seen);
    let other = GuestCall { seed: [8; 32], ..folder.call("look", "") };
    let other = engine().run(hostile(), other, std::future::pending()).await.unwrap();
    assert!(!other.content.ends_with(random));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_opens_a_fifo_itself_gets_an_error_at_once() {
    let folder = Folder::new();
    folder.fifo("fifo").link("link", "fifo");
    for access in [Access::ReadOnly, Access::ReadWrite] {
        for (path, expected) in [("fifo", "unsupported"), ("link", "loop")] {
            let call = GuestCall { access, ..folder.call("open", path) };
            let run = engine().run(hostile(), call, std::future::pending());
            let answer = tokio::time::timeout(Duration::from_secs(5), run).await.unwrap().unwrap();
            assert_eq!(answer.content, expected, "{path} {access:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_changes_nothing_by_wasi_whatever_it_may() {
    let folder = Folder::new();
    folder.write("file", "old").link("out", folder.outside("")).fifo("fifo");
    for access in [Access::ReadOnly, Access::ReadWrite] {
        for way in ["open-write", "truncate", "create", "mkdir", "unlink", "rename", "link", "symlink"] {
            for path in ["new", "file", "fifo", "out/secret", "../secret"] {
                let call = GuestCall { access, ..folder.call(way, path) };
                let answer = engine().run(hostile(), call, std::future::pending()).await.unwrap();
                assert_eq!(answer.content, "read-only", "{way} {path}");
            }
        }
    }
    assert_eq!(folder.read("file"), "old");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 3);
    assert_eq!(std::fs::read_to_string(folder.outside("secret")).unwrap(), "TODO: keep secret\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_opens_nothing_outside_and_follows_no_link() {
    let folder = Folder::new();
    folder.write("file", "old").link("out", folder.outside("")).link("inside", "file").write("a/.secret/x", "hidden");
    for (path, expected) in [
        ("../secret", "not-permitted"),
        ("a/../file", "not-permitted"),
        ("/etc/passwd", "not-permitted"),
        ("out/secret", "loop"),
        ("out", "loop"),
        ("inside", "loop"),
        ("a/.secret", "not-permitted"),
        ("a/.secret/x", "not-permitted"),
        ("file", "done"),
    ] {
        let answer = folder.misbehave("open", path, DEFAULT_LIMITS).await.unwrap();
        assert_eq!(answer.content, expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_the_guest_does_not_have_is_its_own_answer() {
    let folder = Folder::new();
    match folder.misbehave("behave", "", DEFAULT_LIMITS).await {
        Err(GuestFailure::Tool { kind: ToolFailure::UnknownTool, message }) => assert_eq!(message, "behave"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_tool_component_is_refused_when_it_is_loaded() {
    let load = |text: &str| engine().load(&wat::parse_str(text).unwrap(), None, None).err();
    assert!(matches!(load("(module)"), Some(ComponentError::Invalid { .. })));
    assert!(matches!(load("(component)"), Some(ComponentError::Unfit { .. })));
    let network = r#"(component (import "wasi:sockets/instance-network@0.2.0" (instance
        (export "network" (type (sub resource))))))"#;
    match load(network) {
        Some(ComponentError::Unfit { reason, .. }) => assert!(reason.contains("wasi:sockets"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(engine().load(b"rubbish", None, None), Err(ComponentError::Invalid { .. })));
    let other = ephor_base::Digest::of(b"other");
    assert!(matches!(engine().load(HOSTILE, Some(other), None), Err(ComponentError::OtherDigest { .. })));
}
