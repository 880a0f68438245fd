//! `ephor policy backtest`: what another constitution would have decided over the recorded past.

use std::{collections::BTreeMap, fmt::Write};

use ephor_base::{Decision, Seq};
use ephor_governance::{Constitution, Environment};
use ephor_kernel::Retrial;
use serde_json::{Value, json};

use super::{explain, name};
use crate::{home::Home, terminal::plain};

/// How many examples are given of each change.
const EXAMPLES: usize = 3;

/// One that comes out otherwise.
struct Example {
    seq: Seq,
    target: String,
    why: String,
}

/// What was decided, what would have been, and how often.
#[derive(Default)]
pub(super) struct Table {
    counts: BTreeMap<(Decision, Decision), u64>,
    examples: BTreeMap<(Decision, Decision), Vec<Example>>,
    unknown: BTreeMap<String, u64>,
}

pub(super) fn backtest(
    home: &Home,
    constitution: Constitution,
    environment: Option<Environment>,
) -> anyhow::Result<Table> {
    let mut table = Table::default();
    explain::again(home, Retrial::default().against(constitution, environment), |one| {
        let other = match one.again {
            Ok(again) => again.other,
            Err(why) => Some(Err(why)),
        };
        match other {
            Some(Ok(verdict)) => {
                let change = (one.recorded.decision, verdict.decision);
                *table.counts.entry(change).or_default() += 1;
                let examples = table.examples.entry(change).or_default();
                if change.0 != change.1 && examples.len() < EXAMPLES {
                    examples.push(Example { seq: one.seq, target: one.target, why: verdict.why() });
                }
            }
            Some(Err(why)) => *table.unknown.entry(why.to_string()).or_default() += 1,
            None => {}
        }
    })?;
    Ok(table)
}

impl Table {
    /// How many that changed so are not among the examples.
    fn left_out(&self, change: (Decision, Decision), count: u64) -> u64 {
        let shown = self.examples.get(&change).map_or(0, |examples| examples.len() as u64);
        if change.0 == change.1 { 0 } else { count.saturating_sub(shown) }
    }

    fn changed(&self) -> impl Iterator<Item = ((Decision, Decision), u64)> {
        self.counts.iter().filter(|((was, is), _)| was != is).map(|(change, count)| (*change, *count))
    }

    pub(super) fn as_json(&self) -> Value {
        let counts = self.counts.iter().map(|((was, is), count)| {
            let examples = self.examples.get(&(*was, *is)).into_iter().flatten();
            let examples = examples.map(|one| json!({"seq": one.seq, "target": one.target, "why": one.why}));
            let (examples, left_out) = (examples.collect::<Vec<_>>(), self.left_out((*was, *is), *count));
            json!({"recorded": name(*was), "new": name(*is), "count": count, "examples": examples, "left_out": left_out})
        });
        let total: u64 = self.counts.values().sum();
        let changed: u64 = self.changed().map(|(_, count)| count).sum();
        json!({"verdicts": total, "otherwise": changed, "table": counts.collect::<Vec<_>>(), "unknown": self.unknown})
    }

    pub(super) fn as_text(&self) -> String {
        const ALL: [Decision; 3] = [Decision::Permit, Decision::Defer, Decision::Deny];
        let total: u64 = self.counts.values().sum();
        let changed: u64 = self.changed().map(|(_, count)| count).sum();
        let mut out = format!("{total} verdicts; {changed} of them would have been others.\n\n");
        let _infallible = writeln!(out, "{:<12}{:>10}{:>10}{:>10}", "it was", "permit", "defer", "deny");
        for was in ALL {
            let _infallible = write!(out, "{:<12}", name(was));
            for is in ALL {
                let _infallible = write!(out, "{:>10}", self.counts.get(&(was, is)).copied().unwrap_or(0));
            }
            out.push('\n');
        }
        for ((was, is), count) in self.changed() {
            let _infallible = writeln!(out, "\n{} → {} ({count})", name(was), name(is));
            for Example { seq, target, why } in self.examples.get(&(was, is)).into_iter().flatten() {
                let _infallible = writeln!(out, "  entry {seq} on {}: {}", plain(target), plain(why));
            }
            let left_out = self.left_out((was, is), count);
            if left_out > 0 {
                let _infallible = writeln!(out, "  and {left_out} more");
            }
        }
        for (why, count) in &self.unknown {
            let _infallible = writeln!(out, "\n{count}: {why}");
        }
        out
    }
}
