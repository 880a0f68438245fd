//! The differential test: random supervision scenarios on the engine and on a real Erlang, whose accounts must agree.
//!
//! `cargo test -p ephor-kernel --test otp -- --scenarios 10000` runs so many; `--from N` begins elsewhere; `--brief` only counts;
//! `--seed N` runs one and shows both accounts. The same is done with the whole runtime in the engine's place, each thing after
//! the other; `--runtime` does only that, and with it `--seed`.
//! Without an Erlang (Debian: `erlang-base`) it says so aloud and passes, unless `EPHOR_REQUIRE_ERLANG` is set.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod erl;
mod generate;
mod scenario;
mod shrink;
mod sim;
mod trace;
mod whole;

use std::{process::ExitCode, time::Instant};

use crate::{erl::Judge, scenario::Scenario, trace::Trace};

/// What this is called for the test runner.
const NAME: &str = "the_engine_does_what_otp_does";
/// How many scenarios a plain run takes.
const SCENARIOS: u64 = 1000;
/// How often a scenario runs again that took too long to be judged.
const AGAIN: usize = 5;
/// How many divergences are made small and shown.
const SHOWN: usize = 5;

/// What is asked for on the command line.
struct Wanted {
    from: u64,
    scenarios: u64,
    seed: Option<u64>,
    /// Divergences are counted, not made small.
    is_brief: bool,
    /// Only the runtime is compared, or replayed.
    is_runtime: bool,
    is_listed: bool,
    is_left_out: bool,
}

impl Wanted {
    /// Knows its own options, and of the test runner's those that say which tests run.
    fn read() -> Self {
        let mut wanted = Self {
            from: 0,
            scenarios: SCENARIOS,
            seed: None,
            is_brief: false,
            is_runtime: false,
            is_listed: false,
            is_left_out: false,
        };
        let mut arguments = std::env::args().skip(1);
        let mut filters = Vec::new();
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number follows");
            match argument.as_str() {
                "--seed" => wanted.seed = Some(number()),
                "--from" => wanted.from = number(),
                "--scenarios" => wanted.scenarios = number(),
                "--brief" => wanted.is_brief = true,
                "--runtime" => wanted.is_runtime = true,
                "--list" => wanted.is_listed = true,
                "--ignored" => wanted.is_left_out = true,
                "--skip" => wanted.is_left_out |= arguments.next().is_some_and(|skipped| NAME.contains(&skipped)),
                "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                option if option.starts_with('-') => {}
                filter => filters.push(filter.to_owned()),
            }
        }
        wanted.is_left_out |= !filters.is_empty() && !filters.iter().any(|filter| NAME.contains(filter.as_str()));
        wanted
    }
}

fn main() -> ExitCode {
    let wanted = Wanted::read();
    if wanted.is_listed {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    if wanted.is_left_out {
        return closing(0, 0, 1);
    }
    let Some(judge) = Judge::find() else {
        if std::env::var_os("EPHOR_REQUIRE_ERLANG").is_some() {
            println!("!! Erlang is not installed, and EPHOR_REQUIRE_ERLANG says it must be");
            return closing(0, 1, 0);
        }
        println!("!! Erlang (erlang-base) is not installed: that supervision is OTP's was NOT checked against it");
        return closing(0, 0, 1);
    };
    let accounts = if wanted.is_runtime { &[RUNTIME][..] } else { &[ENGINE, RUNTIME] };
    if let Some(seed) = wanted.seed {
        return replay(&judge, accounts[0], seed);
    }
    let failed: u32 = accounts.iter().map(|account| u32::from(!judged(&judge, *account, &wanted))).sum();
    closing(u32::try_from(accounts.len()).unwrap() - failed, failed, 0)
}

/// An account of ours, to be held against the judge's.
#[derive(Clone, Copy)]
struct Account {
    name: &'static str,
    scenario: fn(u64) -> Scenario,
    run: fn(&Scenario) -> Trace,
}

const ENGINE: Account = Account { name: "the engine", scenario: generate::scenario, run: sim::run };
const RUNTIME: Account =
    Account { name: "the runtime", scenario: |seed| generate::scenario(seed).unrolled(), run: whole::run };

/// Holds an account against the judge's; true if they agree.
fn judged(judge: &Judge, account: Account, wanted: &Wanted) -> bool {
    let began = Instant::now();
    let divergent = compare(judge, account, wanted.from, wanted.scenarios);
    println!(
        "{}: {} scenarios against {}: {} divergences, {:.0} s",
        account.name,
        wanted.scenarios,
        judge.version(),
        divergent.len(),
        began.elapsed().as_secs_f64()
    );
    let shown = if wanted.is_brief { 0 } else { SHOWN };
    for (scenario, how) in divergent.iter().take(shown) {
        let (small, how) = shrink::shrink(judge, account.run, scenario.clone(), how.clone());
        println!("\nDIVERGENCE, --seed {}: {how}\n  smallest: {}", scenario.seed, small.term(0));
    }
    divergent.is_empty()
}

fn closing(passed: u32, failed: u32, ignored: u32) -> ExitCode {
    let (word, code) = if failed == 0 { ("ok", ExitCode::SUCCESS) } else { ("FAILED", ExitCode::FAILURE) };
    println!("test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out");
    code
}

/// The scenarios on which the accounts differ, and how.
fn compare(judge: &Judge, account: Account, from: u64, scenarios: u64) -> Vec<(Scenario, String)> {
    let mut left: Vec<Scenario> = (from..from + scenarios).map(account.scenario).collect();
    let mut divergent = Vec::new();
    let mut figures = Figures::default();
    for round in 0..AGAIN {
        let judged = judge.traces(&left);
        let mut slow = Vec::new();
        for (scenario, judged) in left.into_iter().zip(judged) {
            if judged.is_slow && scenario.has_waits() {
                slow.push(scenario);
                continue;
            }
            let ours = (account.run)(&scenario);
            figures.count(&judged, &ours);
            if let Some(how) = ours.divergence(&judged) {
                divergent.push((scenario, how));
            }
        }
        if !slow.is_empty() {
            println!("{} scenarios took too long to be judged (round {})", slow.len(), round + 1);
        }
        left = slow;
        if left.is_empty() {
            break;
        }
    }
    figures.show();
    divergent.extend(left.into_iter().map(|scenario| (scenario, "never quick enough to be judged".to_owned())));
    divergent
}

/// How much the scenarios hold, so that a generator that tests nothing is seen.
#[derive(Default)]
struct Figures {
    starts: usize,
    stops: usize,
    exits: usize,
    answers: usize,
    stillborn: usize,
    steps: usize,
    racy: usize,
}

impl Figures {
    fn count(&mut self, trace: &Trace, ours: &Trace) {
        self.steps += ours.steps.len();
        let compared = ours.steps.iter().take_while(|step| !step.is_racy).count();
        self.racy += ours.steps.len() - compared;
        for step in &trace.steps {
            let starts = step.order.iter().filter(|event| event.starts_with('+')).count();
            self.starts += starts;
            self.stops += step.order.len() - starts;
            self.exits += step.exits.len();
            self.answers += step.answers.len();
        }
        self.stillborn += usize::from(trace.steps.get(1).is_none_or(|step| step.shape.is_empty()));
    }

    fn show(&self) {
        println!(
            "{} starts, {} orders to stop, {} exits, {} answers; {} trees that never stood; {} of {} steps not compared, \
             where Erlang may do either",
            self.starts, self.stops, self.exits, self.answers, self.stillborn, self.racy, self.steps
        );
    }
}

/// Shows both accounts of one scenario.
fn replay(judge: &Judge, account: Account, seed: u64) -> ExitCode {
    let scenario = (account.scenario)(seed);
    println!("{}\n", scenario.term(0));
    let judged = judge.traces(std::slice::from_ref(&scenario)).remove(0);
    let ours = (account.run)(&scenario);
    for (at, (our, their)) in ours.steps.iter().zip(&judged.steps).enumerate() {
        let done = at.checked_sub(1).and_then(|at| scenario.steps.get(at));
        println!(
            "{at}: {}\n  ours:  {our:?}\n  judge: {their:?}",
            done.map_or("start".to_owned(), ToString::to_string)
        );
    }
    match ours.divergence(&judged) {
        None => closing(1, 0, 0),
        Some(how) => {
            let (small, small_how) = shrink::shrink(judge, account.run, scenario, how.clone());
            println!("DIVERGENCE: {how}\n\n  smallest: {}\n{small_how}", small.term(0));
            closing(0, 1, 0)
        }
    }
}
