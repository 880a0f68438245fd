//! The runtime of processes beside a real Erlang and ractor, alternating in one run: starts, restarts, storms, memory.
//!
//! `just bench-kernel` runs it. `-- --rounds N` takes more than the usual rounds; `-- --ours` leaves the others out.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a bench may stop at the first surprise"
)]

mod ours;

fn main() {
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    ephor_kernel::runtime::install_panic_hook();
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|one| one == "--bytes") {
        println!("{}", threads.block_on(async { tokio::spawn(ours::bytes(1_000_000)).await.unwrap() }));
        return;
    }
    if arguments.iter().any(|one| one == "--storm") {
        for _ in 0..10 {
            println!("{}", threads.block_on(async { tokio::spawn(ours::storm(30_000, false)).await.unwrap() }));
        }
        return;
    }
    let sizes = Sizes { starts: 50_000, kills: 20_000, idle: 500, storm: 30_000 };
    for _ in 0..3 {
        let f = threads.block_on(async move { tokio::spawn(async move { ours::figures(&sizes).await }).await.unwrap() });
        println!("{f:?}");
    }
    for n in [30_000, 100_000, 300_000] {
        let took = threads.block_on(async move { tokio::spawn(ours::storm(n, false)).await.unwrap() });
        println!("{n}: {took}");
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    starts: usize,
    kills: usize,
    idle: usize,
    storm: usize,
}

#[derive(Debug)]
pub(crate) struct Figures {
    start: f64,
    kill: f64,
    panic: f64,
    kill_idle: f64,
    panic_idle: f64,
    storm: f64,
}

pub(crate) fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The bytes of this process that are in memory.
pub(crate) fn memory() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0
}
