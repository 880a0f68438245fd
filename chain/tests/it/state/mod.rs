//! Projections: whatever happens to their folder, they answer what the chain says.

mod attacks;
mod model;
mod processes;

use std::path::Path;

use ephor_chain::state::{CaughtUp, List, Order, Page, Reason, Source, State, View};
use proptest::prelude::*;

use model::{History, Step};

const ORIGIN: &str = "example.org/log";

/// Waits until sled has let go of a map that was dropped: it does so on a thread of its own, when that comes to it.
fn let_go(lock: &Path) {
    let Ok(file) = std::fs::File::open(lock) else { return };
    for _ in 0..1000 {
        if file.try_lock().is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn open(folder: &Path) -> State {
    let_go(&folder.join("state/map/db"));
    State::open(&folder.join("state"), ORIGIN)
}

fn catch_up(state: &mut State, chain: &dyn Source) -> CaughtUp {
    state.catch_up(chain, &mut |_| ()).unwrap()
}

/// Asks everything and compares it with the model. Says what the first catch-up did.
#[track_caller]
fn answers_as_the_chain(state: &mut State, chain: &History) -> CaughtUp {
    let caught_up = catch_up(state, chain);
    assert_eq!(caught_up.size, chain.entries.len() as u64);
    let answers = state.ask(chain, &mut |_| (), |view| chain.asked(view)).unwrap();
    assert_eq!(answers, chain.answers());
    caught_up
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), 0u16..2000), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_history_applied_in_any_parts_is_answered_as_the_chain_says(
        steps in steps(400),
        cuts in proptest::collection::vec((0usize..400, any::<bool>()), 0..4),
    ) {
        let (folder, chain) = (tempfile::tempdir().unwrap(), History::new(&steps));
        let mut cuts: Vec<_> = cuts.into_iter().map(|(cut, again)| (cut.min(steps.len()), again)).collect();
        cuts.sort_unstable();
        let mut state = open(folder.path());
        for (cut, again) in cuts {
            catch_up(&mut state, &chain.up_to(cut));
            if again {
                drop(state);
                state = open(folder.path());
            }
        }
        answers_as_the_chain(&mut state, &chain);
        let rebuilt = state.rebuild(&chain, &mut |_| ()).unwrap();
        prop_assert_eq!(rebuilt.rebuilt, Some(Reason::Asked));
        answers_as_the_chain(&mut state, &chain);
    }
}

#[test]
fn nothing_is_written_before_the_first_question() {
    let folder = tempfile::tempdir().unwrap();
    let state = open(folder.path());
    assert_eq!(state.figures().applied, 0);
    drop(state);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_was_applied_is_not_read_again() {
    let (folder, chain) = (tempfile::tempdir().unwrap(), History::of(10_000, 1));
    let mut state = open(folder.path());
    let mut seen = Vec::new();
    state.catch_up(&chain.up_to(9000), &mut |progress| seen.push((progress.applied, progress.of))).unwrap();
    assert_eq!(seen, [(4096, 9000), (8192, 9000), (9000, 9000)]);
    drop(state);
    let mut state = open(folder.path());
    let caught_up = catch_up(&mut state, &chain);
    assert_eq!(caught_up, CaughtUp { applied: 1000, size: 10_000, rebuilt: None });
    assert_eq!(chain.read.get(), 1000);
    assert_eq!(catch_up(&mut state, &chain), CaughtUp { applied: 0, size: 10_000, rebuilt: None });
    assert_eq!(chain.read.get(), 1000);
    let figures = state.figures();
    assert!(figures.on_disk && figures.applied == 10_000 && figures.bytes > 0);
}

#[test]
fn what_waits_is_found_without_reading_the_chain() {
    let (folder, chain) = (tempfile::tempdir().unwrap(), History::of(5000, 4));
    let is_asked = |stored: &ephor_chain::Stored| matches!(stored.entry.fact, ephor_record::Fact::Ticket { .. });
    let chain = chain.up_to(chain.entries.iter().rposition(is_asked).unwrap() + 1);
    catch_up(&mut open(folder.path()), &chain);
    let (mut state, read) = (open(folder.path()), chain.read.get());
    let waiting = state.ask(&chain, &mut |_| (), |view| view.waiting()?.collect::<Result<Vec<_>, _>>()).unwrap();
    assert!(!waiting.is_empty());
    assert_eq!(chain.read.get(), read);
}

#[test]
fn a_time_is_found_by_its_day() {
    let (folder, chain) = (tempfile::tempdir().unwrap(), History::of(2000, 2));
    let mut state = open(folder.path());
    let entries = || chain.entries.iter().map(|stored| &stored.entry);
    let first = entries().next().unwrap().time.0;
    for hours in (0..2000).step_by(7) {
        let time = ephor_base::Timestamp(first - model::DAY + hours * 3_600_000_000);
        let since = state.ask(&chain, &mut |_| (), |view| view.since(time)).unwrap();
        let of_day = |entry: &&ephor_record::Entry| entry.time.0 / model::DAY >= time.0 / model::DAY;
        let expected = entries().find(of_day).map_or(2000, |entry| entry.seq.0);
        assert_eq!(since.0, expected);
    }
}

#[test]
#[ignore = "prints figures; run it alone"]
fn figures() {
    let (folder, chain) = (tempfile::tempdir().unwrap(), History::of(300_000, 9));
    let timed = |what: &str, work: &mut dyn FnMut()| {
        let began = std::time::Instant::now();
        work();
        println!("{what}: {:.1} ms", began.elapsed().as_secs_f64() * 1000.0);
    };
    let mut state = open(folder.path());
    timed("300,000 entries applied", &mut || drop(catch_up(&mut state, &chain)));
    println!("{} KiB", state.figures().bytes / 1024);
    drop(state);
    let mut state = open(folder.path());
    timed("opened, every row read", &mut || drop(catch_up(&mut state, &chain)));
    let page = Page { order: Order::Newest, behind: None, most: 20 };
    let session = List::Session(ephor_base::SessionId([1; 16]));
    timed("newest 20 of a session and a kind", &mut || {
        let lists = [session.clone(), List::Kind("verdict".into())];
        let ask = |view: &View<'_>| view.entries(&lists, page)?.collect::<Result<Vec<_>, _>>();
        assert_eq!(state.ask(&chain, &mut |_| (), ask).unwrap().len(), 20);
    });
}
