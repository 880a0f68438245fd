//! The figures of the sandbox, measured: `just bench-sandbox`. The ordinary run only checks the answer on 20,000 files.

mod common;

use common::{Folder, engine, files, hostile};
use ephor_base::Limits;
use ephor_sandbox::{CompiledCache, DEFAULT_LIMITS, Engine, FILES};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
#[ignore = "a measurement; just bench-sandbox"]
fn compiled_code_is_loaded_many_times_faster_than_it_is_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::new().unwrap();
    let cache = CompiledCache::new(folder.path().join("tools"), ephor_base::Secret::new([1; 32]));
    let start = Instant::now();
    engine.load(FILES, None, Some(&cache)).unwrap();
    let compiled = start.elapsed();
    let start = Instant::now();
    engine.load(FILES, None, Some(&cache)).unwrap();
    let loaded = start.elapsed();
    println!("compiled in {compiled:?}, loaded in {loaded:?}");
    assert!(loaded * 5 < compiled);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement; just bench-sandbox"]
async fn a_call_takes_milliseconds() {
    let folder = Folder::new();
    folder.write("a.txt", "one\ntwo\n");
    folder.answer("fs.read", json!({"path": "a.txt"})).await;
    let mut times = Vec::new();
    for _ in 0..200 {
        let start = Instant::now();
        folder.answer("fs.read", json!({"path": "a.txt"})).await;
        times.push(start.elapsed());
    }
    times.sort();
    println!("a call: median {:?}, slowest {:?}", times[100], times[199]);
    assert!(times[100] < Duration::from_millis(50));
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_files_are_searched_whole() {
    let folder = Folder::new();
    let filler = "fn nothing() { let value = 1; }\n".repeat(100);
    for directory in 0..200 {
        std::fs::create_dir(folder.path(&format!("d{directory:03}"))).unwrap();
        for file in 0..100 {
            let todo = if file == 42 { "// TODO: here\n" } else { "" };
            std::fs::write(folder.path(&format!("d{directory:03}/f{file:02}.rs")), format!("{filler}{todo}")).unwrap();
        }
    }
    files();
    let start = Instant::now();
    let answer = engine()
        .run(files(), folder.call("fs.search", json!({"pattern": "TODO"})), std::future::pending())
        .await
        .unwrap();
    let elapsed = start.elapsed();
    println!("20,000 files in {elapsed:?}, {} units of fuel", answer.fuel);
    let expected: String = (0..200).map(|d| format!("d{d:03}/f42.rs:101: // TODO: here\n")).collect();
    assert_eq!(answer.content, expected);
    assert_eq!(answer.summary, "200 matches in 200 files, 20000 searched");
    assert_eq!(answer.omitted, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement; just bench-sandbox"]
async fn a_deadline_is_overrun_by_a_few_ticks_at_most() {
    let folder = Folder::new();
    let limits = Limits { fuel: u64::MAX / 2, deadline_ms: 50, ..DEFAULT_LIMITS };
    hostile();
    let mut overruns = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        assert!(folder.misbehave("loop", "", limits).await.is_err());
        overruns.push(start.elapsed().saturating_sub(limits.deadline()));
    }
    overruns.sort();
    println!("a deadline is overrun by: median {:?}, most {:?}", overruns[10], overruns[19]);
    assert!(overruns[10] < Engine::TICK * 5);
}
