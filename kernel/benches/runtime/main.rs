//! The runtime of processes beside a real Erlang and ractor, alternating in one run: starts, restarts, storms, memory; with
//! the chain; and beside agents that misbehave.
//!
//! `just bench-kernel` runs it. `--rounds N` takes another number of rounds than 5; `--only WORD` prints the tables whose
//! name holds it: `runtime`, `storm`, `memory`, `chain`, `stop`, `neighbours`; `--evil NAME` has only one of those misbehave.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a bench may stop at the first surprise"
)]

mod chained;
mod erlang;
mod ours;
mod ractors;

use std::future::Future;

use ephor_runtime::LOST_THREADS;
use tokio::runtime::Runtime;

use crate::{
    chained::Evil,
    erlang::{Erlang, STORM},
};

/// How much is measured in one round.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) starts: usize,
    pub(crate) kills: usize,
    pub(crate) idle: usize,
    pub(crate) storm: usize,
}

const SIZES: Sizes = Sizes { starts: 30_000, kills: 4000, idle: 200, storm: 30_000 };
const MILLION: usize = 1_000_000;
/// How much more a child may cost in a storm of ten times as many: less would be noise, and what grows with the square is ten times that.
const LINEAR: f64 = 1.5;

/// What one round comes to: children a second, microseconds, milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) start: f64,
    pub(crate) kill: f64,
    pub(crate) panic: f64,
    pub(crate) kill_idle: f64,
    pub(crate) panic_idle: f64,
    pub(crate) storm: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().position(|one| one == name).and_then(|at| arguments.get(at + 1));
    // Others have no hook of their own, and are not to pay for a trace.
    std::panic::set_hook(Box::new(|_| {}));
    ephor_runtime::install_panic_hook();
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match after("--bytes-of").map(String::as_str) {
        Some("ours") => return println!("{}", on(&threads, ours::bytes(MILLION))),
        Some(_) => return println!("{}", on(&threads, ractors::bytes(MILLION))),
        None => {}
    }
    let rounds = after("--rounds").map_or(5, |text| text.parse().unwrap());
    let is_wanted = |name: &str| after("--only").is_none_or(|word| name.contains(word.as_str()));
    let erlang = Erlang::find();
    if erlang.is_none() {
        println!("!! Erlang (erlang-base) is not installed: nothing is compared with it");
    }
    if is_wanted("runtime") {
        runtime(&threads, erlang.as_ref(), rounds);
    }
    if is_wanted("storm") {
        storms(&threads, rounds);
    }
    if is_wanted("memory") {
        memories(erlang.as_ref());
    }
    if is_wanted("chain") {
        let times = (0..rounds).map(|_| on(&threads, chained::storm(SIZES.storm))).collect();
        head();
        row("storm of 30,000 with the chain, ms", median(times), None, None, Bar::AtMost(400.0));
    }
    if is_wanted("stop") {
        let times = (0..rounds).map(|_| on(&threads, chained::stop_all(1000))).collect();
        head();
        row("stop of all with 1,000 calls at work, ms", median(times), None, None, Bar::AtMost(100.0));
    }
    if is_wanted("neighbours") {
        neighbours(after("--evil").map(String::as_str));
    }
}

/// Runs a measurement on a thread of the runtime, as any process runs.
fn on<T: Send + 'static>(threads: &Runtime, work: impl Future<Output = T> + Send + 'static) -> T {
    threads.block_on(async { tokio::spawn(work).await.unwrap() })
}

fn runtime(threads: &Runtime, erlang: Option<&Erlang>, rounds: usize) {
    let (mut ours, mut theirs, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        theirs.extend(erlang.map(|erlang| erlang.figures(SIZES)));
        ours.push(on(threads, ours::figures(SIZES)));
        others.push(on(threads, ractors::figures(SIZES)));
    }
    let of = |figures: &[Figures], one: fn(&Figures) -> f64| -> Option<f64> {
        (!figures.is_empty()).then(|| median(figures.iter().map(one).collect()))
    };
    let compare = |name: &str, one: fn(&Figures) -> f64, bar: Bar| {
        row(name, of(&ours, one).unwrap(), of(&theirs, one), of(&others, one), bar);
    };
    let erlang = |one| of(&theirs, one).unwrap_or(f64::NAN);
    let (start, kill, idle) = (erlang(|f| f.start), erlang(|f| f.kill), erlang(|f| f.kill_idle));
    head();
    compare("starts, supervised and acknowledged, a second", |f| f.start, Bar::AtLeast(3.0 * start));
    compare("kill to running, back to back, p50 us", |f| f.kill, Bar::AtMost(kill / 2.0));
    compare("kill to running, idle, p50 us", |f| f.kill_idle, Bar::AtMost(idle));
    compare("panic to running, back to back, p50 us", |f| f.panic, Bar::AtMost(kill));
    compare("panic to running, idle, p50 us", |f| f.panic_idle, Bar::AtMost(2.0 * idle));
    compare("storm of 30,000, ms", |f| f.storm, Bar::AtMost(100.0));
    println!("(Erlang's storm is one of {STORM}: its cost grows with the square.)");
}

fn storms(threads: &Runtime, rounds: usize) {
    let mut sizes = [30_000, 100_000, 300_000].map(|many| (many, Vec::new()));
    // In turn, so that what else the machine does falls on all.
    for _ in 0..rounds {
        sizes.iter_mut().for_each(|(many, times)| times.push(on(threads, ours::storm(*many, false))));
    }
    head();
    let mut first = None;
    for (many, times) in sizes {
        let took = median(times);
        let each = took * 1e6 / many as f64;
        let bar = LINEAR * *first.get_or_insert(each);
        row(&format!("storm of {many}, ms"), took, None, None, Bar::None);
        row(&format!("storm of {many}, ns each (linear)"), each, None, None, Bar::AtMost(bar));
    }
    let panics = median((0..rounds).map(|_| on(threads, ours::storm(30_000, true))).collect());
    row("storm of 30,000 panics, ms", panics, None, None, Bar::None);
}

fn memories(erlang: Option<&Erlang>) {
    let own = |whose: &str| -> f64 {
        let output = std::process::Command::new(std::env::current_exe().unwrap());
        let output = { output }.args(["--bytes-of", whose]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    };
    head();
    let theirs = erlang.map(|erlang| erlang.bytes(MILLION));
    row(
        "bytes of an idle supervised process at 1,000,000",
        own("ours"),
        theirs,
        Some(own("ractor")),
        Bar::AtMost(1000.0),
    );
}

fn neighbours(only: Option<&str>) {
    let is_meant = |evil: &Evil| only.is_none_or(|only| format!("{evil:?}").eq_ignore_ascii_case(only));
    let evils: Vec<_> = Evil::ALL.into_iter().filter(is_meant).collect();
    // As many threads as `ephor up` has.
    let threads = std::thread::available_parallelism().map_or(1, usize::from) + LOST_THREADS;
    let threads = &tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap();
    let mut ratios = Vec::new();
    for run in 1..=7 {
        let alone = on(threads, chained::p99(1000, 3000, Vec::new()));
        let beside = on(threads, chained::p99(1000, 3000, evils.clone()));
        println!("run {run}: p99 {alone:.2} ms undisturbed, {beside:.2} ms beside {evils:?}");
        ratios.push(beside / alone);
    }
    head();
    row("p99 of 1,000 agents beside those that misbehave, ratio", median(ratios), None, None, Bar::AtMost(1.5));
}

/// What a figure has to reach.
enum Bar {
    AtLeast(f64),
    AtMost(f64),
    None,
}

fn head() {
    println!("\n{:<55} {:>12} {:>12} {:>12} {:>8} {:>12}  met?", "", "ours", "erlang", "ractor", "ratio", "bar");
}

fn row(name: &str, ours: f64, erlang: Option<f64>, ractor: Option<f64>, bar: Bar) {
    let text = |figure: Option<f64>| figure.map_or("-".to_owned(), |figure| format!("{figure:.*}", decimals(figure)));
    let (bar, met) = match bar {
        Bar::AtLeast(bar) => (Some(bar), if ours >= bar { "yes" } else { "NO" }),
        Bar::AtMost(bar) => (Some(bar), if ours <= bar { "yes" } else { "NO" }),
        Bar::None => (None, ""),
    };
    let ratio = erlang.map(|erlang| ours / erlang);
    println!(
        "{name:<55} {:>12} {:>12} {:>12} {:>8} {:>12}  {met}",
        text(Some(ours)),
        text(erlang),
        text(ractor),
        text(ratio),
        text(bar)
    );
}

fn decimals(figure: f64) -> usize {
    if figure < 100.0 { 2 } else { 0 }
}

pub(crate) fn median(of: Vec<f64>) -> f64 {
    percentile(of, 50)
}

pub(crate) fn percentile(mut of: Vec<f64>, which: usize) -> f64 {
    of.sort_by(f64::total_cmp);
    of[(of.len() * which / 100).min(of.len() - 1)]
}

/// The bytes of this process that are in memory.
pub(crate) fn memory() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0
}
