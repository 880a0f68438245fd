//! How fast a log is verified on one core, beside what the hash and the signature checks of the same machine cost.
//!
//! `just bench-chain`.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a measurement may stop at the first surprise"
)]

mod common;
#[expect(dead_code, reason = "the tests forge more than the benchmark")]
#[path = "../tests/it/common/forge.rs"]
mod forge;
#[path = "common/published.rs"]
mod published;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use aws_lc_rs::signature::{ED25519, ML_DSA_65, ParsedPublicKey};
use ed25519_dalek::Signer as _;
use ephor_base::Digest;
use ephor_chain::{Against, Log, Report, disk::Disk};
use ephor_tlog::VerifierKeys;
use pqcrypto_mldsa::mldsa65;
use pqcrypto_traits::sign::{DetachedSignature as _, PublicKey as _};

use common::{ENTRY, Home, SEALED, TEXT, Times, record};

/// How many hashes one measurement of them takes.
const HASHES: usize = 100;

fn main() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return verify_alone(Path::new(&folder));
    }
    let hashing = hash_probe();
    println!("probe: SHA-256 of {ENTRY} bytes, {HASHES} times      {}", hashing.line());
    let checking = check_probe();
    println!("probe: check of both signatures          {}\n", checking.line());
    let (hash, check) = (hashing.at(50).as_secs_f64() / HASHES as f64, checking.at(50).as_secs_f64());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for with_content in [false, true] {
        match with_content {
            false => println!("entries of {ENTRY} bytes alone"),
            true => println!("entries of {ENTRY} bytes, each with a sealed content of {SEALED}"),
        }
        for (batch, batches) in [(256, 400), (64, 1000), (1, 2000)] {
            let mut home = Home::new();
            home.publish_every = Duration::MAX;
            let log = home.open();
            runtime.block_on(fill(&log, batch, batches, with_content));
            // Without a clean stop only the first batch is published.
            drop(log);
            measure("in the journal", &home, batch, with_content, hash, check);
            runtime.block_on(async { home.open().close().await.unwrap() });
            measure("published", &home, batch, with_content, hash, check);
        }
    }
    println!("(at least 500,000/s are wanted at a mean batch of 256, entries alone)");
    drop(runtime);
    published_alone();
}

/// Which folder a process of its own is to verify: what a process took at most cannot be read of one that did other things.
const FOLDER: &str = "EPHOR_BENCH_FOLDER";

/// Ten million entries, or as many as `EPHOR_BENCH_ENTRIES` says, out of tiles and bundles alone.
fn published_alone() {
    let size = std::env::var("EPHOR_BENCH_ENTRIES").ok().and_then(|size| size.parse().ok()).unwrap_or(10_000_000);
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    println!("\n{size} published entries of {ENTRY} bytes without content");
    let began = Instant::now();
    let keys = published::write(&home.path().join("chain"), size);
    println!("  written by the format, not by the log, in {:.0} s", began.elapsed().as_secs_f64());
    std::fs::write(home.path().join("keys"), keys.to_string()).unwrap();
    let own = std::env::current_exe().unwrap();
    let status = std::process::Command::new(own).arg("--bench").env(FOLDER, home.path()).status().unwrap();
    assert!(status.success(), "{status}");
    println!("(at least 500,000/s and at most 100 MB are wanted)");
}

/// Verifies one folder, and says how fast that was and what this process took at most.
fn verify_alone(home: &Path) {
    let keys: VerifierKeys = std::fs::read_to_string(home.join("keys")).unwrap().parse().unwrap();
    let against = Against { keys: &keys, head: None, vault: None, from: None };
    let (began, before) = (Instant::now(), on_core());
    let report = ephor_chain::verify(&home.join("chain"), &(Arc::new(Disk) as _), against, |_| ()).unwrap();
    let took = on_core().zip(before).map_or(began.elapsed(), |(now, then)| now - then);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map_or("unknown", str::trim);
    let rate = report.head.size as f64 / took.as_secs_f64();
    println!(
        "  verified at {rate:.0}/s on one core ({:.1} s in all); peak memory {most}",
        began.elapsed().as_secs_f64()
    );
}

/// A log of batches of exactly this many records.
async fn fill(log: &Log, batch: u64, batches: u64, with_content: bool) {
    for number in 0..batches {
        // Whoever does not wait rides along with the one that does.
        for other in 1..batch {
            log.note(record(0, number * batch + other, with_content)).await.unwrap();
        }
        log.append(record(0, number * batch, with_content)).await.unwrap();
    }
}

fn measure(place: &str, home: &Home, batch: u64, with_content: bool, hash: f64, check: f64) {
    let mut report = verify(home, with_content);
    // The files are in memory by now.
    let runs: Vec<_> = (0..3)
        .map(|_| {
            let (began, on_core) = (Instant::now(), on_core());
            report = verify(home, with_content);
            self::on_core().zip(on_core).map_or(began.elapsed(), |(now, then)| now - then)
        })
        .collect();
    let took = runs.iter().min().unwrap().as_secs_f64();
    let (entries, checkpoints) = (report.head.size as f64, report.checkpoints as f64);
    let least = entries * hash + checkpoints * check;
    println!(
        "  batches of {batch:>3}, {place:<14}: {:>9.0}/s  ({:.0} entries, mean batch {:.1}; {:.2} times the probes' sum)",
        entries / took,
        entries,
        entries / checkpoints,
        took / least
    );
}

fn verify(home: &Home, with_content: bool) -> Report {
    let vault = Some(home.config().vault).filter(|_| with_content);
    let against = Against { keys: home.keys.verifier(), head: None, vault: vault.as_deref(), from: None };
    ephor_chain::verify(&home.config().folder, &home.files(), against, |_| ()).unwrap()
}

/// How long this thread has been on a core, where the system says it: what else runs on the machine does not count then.
fn on_core() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// The hashes of so many leaves.
fn hash_probe() -> Times {
    let bytes = [7; ENTRY];
    Times::of(1000, || (0..HASHES).for_each(|_| _ = std::hint::black_box(Digest::of(&bytes))))
}

/// The check of a checkpoint: Ed25519 with two implementations, ML-DSA-65 with one.
fn check_probe() -> Times {
    let ed25519 = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let again = ParsedPublicKey::new(&ED25519, ed25519.verifying_key().as_bytes()).unwrap();
    let (public, secret) = mldsa65::keypair();
    let ml_dsa = ParsedPublicKey::new(&ML_DSA_65, public.as_bytes()).unwrap();
    let (first, second) = (ed25519.sign(TEXT), mldsa65::detached_sign(TEXT, &secret));
    Times::of(1000, || {
        ed25519.verifying_key().verify_strict(TEXT, &first).unwrap();
        again.verify_sig(TEXT, &first.to_bytes()).unwrap();
        ml_dsa.verify_sig(TEXT, second.as_bytes()).unwrap();
    })
}
