//! How fast a log takes records, beside what the disk and the signers of the same machine do at the same time.
//!
//! Every append is durable and under both signatures: a 400-byte entry and 1 kB of sealed content. `just bench-chain`.
#![expect(clippy::unwrap_used, reason = "a measurement may stop at the first surprise")]

mod common;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use aws_lc_rs::signature::{ED25519, ML_DSA_65, ParsedPublicKey};
use ed25519_dalek::Signer as _;
use ephor_base::files::{Files as _, Open};
use ephor_chain::{Against, Log, disk::Disk};
use pqcrypto_mldsa::mldsa65;
use pqcrypto_traits::sign::{DetachedSignature as _, PublicKey as _};
use tokio::runtime::Runtime;

use common::{ENTRY, Home, SEALED, TEXT, Times, record, session};

/// Bytes of a frame with one record: header, entry with its length, content, checkpoint, checksum.
const ALONE: usize = 36 + 2 + ENTRY + SEALED + 4680 + 4;
/// Bytes of a frame with 256.
const CROWD: usize = ALONE + 255 * (2 + ENTRY + SEALED);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    // A number alone is for a profiler: only a run with so many appenders.
    if let Some(appenders) = std::env::args().find_map(|word| word.parse().ok()) {
        return measure(&runtime, appenders, (200_000 / appenders).min(4000)).print();
    }
    println!("each append: an entry of {ENTRY} bytes and a sealed content of {SEALED}; durable, two signatures\n");
    let probe = Home::new();
    let disk = sync_probe(probe.path(), ALONE, 1000);
    println!("probe: write and fdatasync of {ALONE} bytes     {}", disk.line());
    let crowd = sync_probe(probe.path(), CROWD, 300);
    println!("probe: write and fdatasync of {CROWD} bytes   {}", crowd.line());
    let signing = signature_probe(1000);
    println!("probe: both signatures and their check        {}", signing.line());
    println!(
        "limit of the disk: {:.0} records/s in batches of 256, nothing signed\n",
        256.0 / crowd.at(50).as_secs_f64()
    );

    let alone = measure(&runtime, 1, 3000);
    alone.print();
    let sum = disk.at(50) + signing.at(50);
    let ratio = alone.times.at(50).as_secs_f64() / sum.as_secs_f64();
    println!("  p50 is {ratio:.2} times the sum of the probes' (at most 1.5 is wanted)");
    for (appenders, each) in [(16, 1500), (64, 800), (256, 400), (256, 400), (256, 400)] {
        measure(&runtime, appenders, each).print();
    }
    println!("(at least 50,000/s and p99 of 20 ms at most are wanted with 256)");
}

/// One run: a new log, everybody appending at once, then all of it verified.
struct Run {
    appenders: u64,
    count: u64,
    times: Times,
    took: Duration,
    /// Nothing if segments were recycled meanwhile.
    batches: Option<u64>,
}

impl Run {
    fn print(&self) {
        let count = self.count as f64;
        println!(
            "{:>4} appenders  {:>8.0}/s  {} mean batch {}",
            self.appenders,
            count / self.took.as_secs_f64(),
            self.times.line(),
            self.batches.map_or("unknown: recycled".into(), |batches| format!("{:.1}", count / batches as f64))
        );
    }
}

fn measure(runtime: &Runtime, appenders: u64, each: u64) -> Run {
    let home = Home::new();
    let log = home.open();
    check_size(runtime, &log);
    // The keys of the sessions are made once, and are no part of an append.
    runtime.block_on(async {
        for appender in 0..appenders {
            log.append(record(appender, 0, true)).await.unwrap();
        }
    });
    // As the door has it: the keys of its sessions stay in memory.
    let _used: Vec<_> = (0..appenders).map(|appender| log.in_use(session(appender)).unwrap()).collect();
    let before = batches(&home);
    let start = Arc::new(tokio::sync::Barrier::new(usize::try_from(appenders).unwrap() + 1));
    let (times, took) = runtime.block_on(async {
        let tasks: Vec<_> = (0..appenders)
            .map(|appender| {
                let (log, start) = (log.clone(), Arc::clone(&start));
                tokio::spawn(async move {
                    start.wait().await;
                    append(&log, appender, each).await
                })
            })
            .collect();
        start.wait().await;
        let began = Instant::now();
        let mut times = Times::default();
        for task in tasks {
            times.extend(task.await.unwrap());
        }
        (times, began.elapsed())
    });
    let batches = batches(&home).zip(before).map(|(after, before)| after - before);
    runtime.block_on(log.close()).unwrap();
    Run { appenders, count: appenders * each, times, took, batches }
}

async fn append(log: &Log, appender: u64, each: u64) -> Vec<Duration> {
    let mut times = Vec::with_capacity(usize::try_from(each).unwrap());
    for number in 0..each {
        let record = record(appender, number, true);
        let began = Instant::now();
        log.append(record).await.unwrap();
        times.push(began.elapsed());
    }
    times
}

/// How many batches the log has, as long as its journal holds all of them; it is verified on the way.
fn batches(home: &Home) -> Option<u64> {
    let against = Against { keys: home.keys.verifier(), head: None, vault: None, from: None };
    ephor_chain::verify(&home.config().folder, &home.files(), against, |_| ()).unwrap();
    let journal = ephor_chain::figures::journal(&home.config().folder, &home.files()).unwrap();
    (journal.first == 0).then_some(journal.batches)
}

/// The figures are about entries and contents of exactly these sizes.
fn check_size(runtime: &Runtime, log: &Log) {
    let seq = runtime.block_on(log.append(record(0, 0, true))).unwrap().seq;
    let entry = log.entries().map(|stored| stored.unwrap().entry).find(|entry| entry.seq == seq).unwrap();
    assert_eq!((entry.to_bytes().len(), entry.content.unwrap().length as usize), (ENTRY, SEALED));
}

/// What the libraries alone take for a checkpoint, one after another on one core: to sign with both keys, and to check
/// Ed25519 with two implementations and ML-DSA-65 with the one that did not sign.
fn signature_probe(count: usize) -> Times {
    let ed25519 = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let ed25519_again = ParsedPublicKey::new(&ED25519, ed25519.verifying_key().as_bytes()).unwrap();
    let (public, secret) = mldsa65::keypair();
    let ml_dsa = ParsedPublicKey::new(&ML_DSA_65, public.as_bytes()).unwrap();
    Times::of(count, || {
        let first = ed25519.sign(TEXT);
        let second = mldsa65::detached_sign(TEXT, &secret);
        ed25519.verifying_key().verify_strict(TEXT, &first).unwrap();
        ed25519_again.verify_sig(TEXT, &first.to_bytes()).unwrap();
        ml_dsa.verify_sig(TEXT, second.as_bytes()).unwrap();
    })
}

/// Writing `size` bytes into disk that is reserved and primed as the journal's is, one piece after another, and waiting
/// for each.
fn sync_probe(folder: &Path, size: usize, count: usize) -> Times {
    let path = folder.join("probe");
    let file = Disk.open(&path, Open::Create).unwrap();
    file.allocate((size * count) as u64).unwrap();
    file.prime(0, (size * count) as u64).unwrap();
    file.sync_data().unwrap();
    let bytes: Vec<u8> = (0..size).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let mut offset = 0;
    let times = Times::of(count, || {
        assert_eq!(file.write_at(&bytes, offset).unwrap(), size);
        file.sync_data().unwrap();
        offset += size as u64;
    });
    Disk.remove(&path).unwrap();
    times
}
