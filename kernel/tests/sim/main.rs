//! The runtime of processes and the budgets of their seats in simulation: random things happen in a random order on a clock that jumps,
//! and whatever happens, certain things must be true. From a seed follows everything.
//!
//! `cargo test -p ephor-kernel --test sim -- --seeds 10000` runs so many; `--from N` begins elsewhere; `--seed N` plays one and
//! shows its steps. Each is played twice, and must come out the same.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod books;
mod model;
mod plan;
mod play;
mod world;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use crate::{
    books::Tally,
    play::{Played, play, shrink},
};

/// What this is called for the test runner.
const NAME: &str = "whatever_happens_what_must_be_true_is_true";
/// How many seeds a plain run takes.
const SEEDS: u64 = 200;
/// How much of a trace is shown.
const SHOWN: usize = 60;

struct Wanted {
    seeds: std::ops::Range<u64>,
    is_shown: bool,
    is_listed: bool,
    is_left_out: bool,
}

impl Wanted {
    /// Knows its own options, and of the test runner's those that say which tests run.
    fn read() -> Self {
        let (mut from, mut many, mut is_shown) = (0, SEEDS, false);
        let (mut is_listed, mut is_left_out, mut filters) = (false, false, Vec::new());
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number follows");
            match argument.as_str() {
                "--seeds" => many = number(),
                "--from" => from = number(),
                "--seed" => (from, many, is_shown) = (number(), 1, true),
                "--list" => is_listed = true,
                "--ignored" => is_left_out = true,
                "--skip" => is_left_out |= arguments.next().is_some_and(|skipped| NAME.contains(&skipped)),
                "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                option if option.starts_with('-') => {}
                filter => filters.push(filter.to_owned()),
            }
        }
        is_left_out |= !filters.is_empty() && !filters.iter().any(|filter| NAME.contains(filter.as_str()));
        Self { seeds: from..from + many, is_shown, is_listed, is_left_out }
    }
}

fn main() -> ExitCode {
    let wanted = Wanted::read();
    if wanted.is_listed {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    if wanted.is_left_out {
        println!("\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out");
        return ExitCode::SUCCESS;
    }
    // Panics of workers are a part of it.
    ephor_runtime::install_panic_hook();
    println!("\nrunning 1 test");
    let (mut said, began, mut lines, mut tally) = (Instant::now(), Instant::now(), 0, Tally::default());
    for seed in wanted.seeds.clone() {
        let steps = plan::of(seed);
        let (played, again) = (play(seed, &steps), play(seed, &steps));
        lines += played.trace.len();
        tally.add(&played.tally);
        if wanted.is_shown {
            played.trace.iter().for_each(|line| println!("{line}"));
        }
        if played.wrong.is_some() || played.digest != again.digest {
            tell(seed, &played, &again);
            println!(
                "\ntest {NAME} ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out"
            );
            return ExitCode::FAILURE;
        }
        if said.elapsed() > Duration::from_secs(1) {
            said = Instant::now();
            println!("  seed {seed} of {}, {lines} lines", wanted.seeds.end);
        }
    }
    let (many, took) = (wanted.seeds.end - wanted.seeds.start, began.elapsed());
    println!("{many} seeds, each twice, {lines} lines of trace, {took:.1?}\n{tally}");
    println!("test {NAME} ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
    ExitCode::SUCCESS
}

/// Says what went wrong, made small.
fn tell(seed: u64, played: &Played, again: &Played) {
    let Some(wrong) = &played.wrong else {
        let differs = played.trace.iter().zip(&again.trace).position(|(one, other)| one != other);
        println!("seed {seed} came out in two ways, from line {differs:?} on:");
        for trace in [&played.trace, &again.trace] {
            let from = differs.unwrap_or(0);
            trace.iter().skip(from).take(3).for_each(|line| println!("    {line}"));
        }
        return;
    };
    println!("seed {seed}: {wrong}");
    let steps = shrink(seed, plan::of(seed));
    let small = play(seed, &steps);
    println!("{} steps are left, and then: {}", steps.len(), small.wrong.unwrap_or_default());
    steps.iter().for_each(|step| println!("    {step:?}"));
    let from = small.trace.len().saturating_sub(SHOWN);
    println!("the end of its trace:");
    small.trace.iter().skip(from).for_each(|line| println!("    {line}"));
}
