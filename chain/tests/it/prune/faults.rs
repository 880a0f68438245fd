//! A fault at every operation of a pruning: the log opens, goes on with it by itself, and nothing else is lost.

use ephor_chain::{PruneError, read};
use ephor_record::Fact;

use super::{aged, asked, left_below, minimum, plan};
use crate::common::{
    OPERATOR, World, block_on,
    memory::{After, Fault, Memory},
};

/// What is known from outside when the fault comes.
#[derive(Default, Debug)]
struct Known {
    /// How many operations there were before the pruning: reading, which is faulted elsewhere.
    before: u64,
    recorded: bool,
    acknowledged: bool,
}

fn script(memory: &Memory, world: &World, known: &mut Known) -> Result<(), ()> {
    let world = &world.with_files(memory.files());
    let (log, _) = world.open().map_err(drop)?;
    block_on(log.publish()).map_err(drop)?;
    let planned = log.plan_pruning(Default::default(), |_, _| ()).map_err(drop)?;
    known.before = memory.operations();
    match block_on(log.prune(&planned, OPERATOR)) {
        Ok(_) => known.recorded = true,
        Err(PruneError::Unfinished { .. }) => known.recorded = true,
        Err(_) => return Err(()),
    }
    block_on(log.append(asked(5000))).map_err(drop)?;
    known.acknowledged = true;
    block_on(log.close()).map_err(drop)
}

fn check(left: &Memory, world: &World, whole: &[Vec<u8>], known: &Known, what: &str) {
    let world = world.with_files(left.files());
    let report = world.verify(world.pinned()).unwrap_or_else(|error| panic!("{what}: before reopening: {error}"));
    let first = |expected: u64| {
        let entries: Vec<_> = read(&world.config.folder, &world.files).map(|stored| stored.unwrap().entry).collect();
        assert_eq!(entries[0].seq.0, expected, "{what}");
        for (entry, seq) in entries.iter().zip(expected..) {
            assert_eq!(entry.seq.0, seq, "{what}");
            if let Some(bytes) = whole.get(usize::try_from(seq).unwrap()) {
                assert!(entry.to_bytes() == *bytes, "{what}: entry {seq} is another");
            }
        }
        entries
    };
    first(report.minimum);
    let (log, _) = world.open().unwrap_or_else(|error| panic!("{what}: {error}"));
    block_on(log.close()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let report = world.verify(world.pinned()).unwrap_or_else(|error| panic!("{what}: after reopening: {error}"));
    let entries = first(report.minimum);
    let recorded = entries.iter().find_map(|entry| match &entry.fact {
        Fact::Prune(pruning) => Some(pruning.minimum),
        _ => None,
    });
    assert!(recorded.is_some() || !known.recorded, "{what}: the record does not say so");
    assert_eq!(minimum(left).map(|minimum| minimum.index), recorded, "{what}");
    assert_eq!(left_below(left, recorded.unwrap_or(0)), Vec::<std::path::PathBuf>::new(), "{what}");
    let acknowledged = entries.iter().any(|entry| matches!(entry.fact, Fact::Message { id, .. } if id.0 == 5000));
    assert!(acknowledged || !known.acknowledged, "{what}");
}

fn every_operation(fault: Fault, after: impl Fn(u64) -> After) {
    let (memory, world) = aged(300);
    let whole: Vec<_> =
        read(&world.config.folder, &world.files).map(|stored| stored.unwrap().entry.to_bytes()).collect();
    let mut known = Known::default();
    script(&memory.copy(), &world, &mut known).unwrap();
    let (first, mut pruned) = (known.before, 0);
    for operation in first.. {
        let copy = memory.copy();
        copy.fail_at(operation, fault);
        let mut known = Known::default();
        let ended = script(&copy, &world, &mut known);
        let what = format!("{fault:?} at operation {operation}, {:?}", after(operation));
        check(&copy.after(after(operation)), &world, &whole, &known, &what);
        pruned += u64::from(known.recorded);
        if copy.operations() < operation {
            let count = operation - first;
            assert!(ended.is_ok() && count > 80 && pruned > 10, "{count} operations, {pruned} pruned");
            return;
        }
    }
}

#[test]
fn a_kill_at_every_operation_of_a_pruning_is_survived() {
    every_operation(Fault::Crash, |_| After::Kill);
}

#[test]
fn a_power_cut_at_every_operation_of_a_pruning_is_survived() {
    every_operation(Fault::Crash, |operation| match operation % 2 {
        0 => After::PowerCut,
        _ => After::Mixed(operation),
    });
}

#[test]
fn an_input_or_output_error_at_every_operation_of_a_pruning_is_survived() {
    every_operation(
        Fault::Eio,
        |operation| if operation.is_multiple_of(2) { After::Kill } else { After::Mixed(operation) },
    );
}

#[test]
fn a_full_disk_at_every_operation_of_a_pruning_is_survived() {
    every_operation(Fault::Enospc, |_| After::Kill);
}

#[test]
fn a_torn_write_at_every_operation_of_a_pruning_is_survived() {
    every_operation(Fault::Torn, After::Mixed);
}

#[test]
fn readers_go_on_behind_what_is_pruned_while_they_read() {
    let (_, world) = aged(400);
    let (log, _) = world.open().unwrap();
    block_on(log.publish()).unwrap();
    let mut entries = log.entries();
    assert_eq!(entries.next().unwrap().unwrap().entry.seq.0, 0);
    let planned = plan(&log);
    block_on(log.prune(&planned, OPERATOR)).unwrap();
    let seqs: Vec<_> = entries.map(|stored| stored.unwrap().entry.seq.0).collect();
    let (first, later): (Vec<u64>, Vec<u64>) = seqs.iter().partition(|seq| **seq < planned.minimum);
    assert!(first.is_sorted() && first.len() <= 256, "{}", first.len());
    assert_eq!(later[0], planned.minimum);
    assert!(later.windows(2).all(|pair| pair[1] == pair[0] + 1));
}
