//! `ephor budget`: what an agent may use and has used.

use std::{fmt::Write as _, process::ExitCode};

use anyhow::{Context, bail};
use ephor_base::Resource;

use super::no_node;
use crate::{
    cli::BudgetOf,
    client::Client,
    home::Home,
    operation::{AccountView, Changes, Done, Operation},
    terminal,
};

/// How many characters the bar of a budget has.
const BAR: u64 = 20;

pub(crate) async fn budget(home: &Home, args: BudgetOf) -> anyhow::Result<ExitCode> {
    let BudgetOf { target, tokens, usd, wall_seconds, tool_calls, messages, note, json } = args;
    let changes = Changes { tokens, micro_usd: usd, wall_ms: wall_seconds, tool_calls, messages };
    let mut client = Client::reach_running(home).await?.with_context(|| no_node(home))?;
    let done = client.operate(Operation::Budget { target, changes, note }).await?;
    let Done::Budget { seat, account, seq } = &done else { bail!("the node answered something else") };
    let text = if json {
        serde_json::to_string(&done)? + "\n"
    } else {
        let place = seq.map_or_else(String::new, |seq| format!(", set by entry {seq}"));
        format!("{seat}{place}\n{}{}", table(account), spent(account))
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

/// A line for each thing that runs out, with a bar of what is used and set aside.
pub(super) fn table(account: &AccountView) -> String {
    let AccountView { limit, used, reserved } = account;
    let mut text = String::new();
    let amounts = limit.amounts().into_iter().zip(used.amounts()).zip(reserved.amounts());
    for (((resource, limit), (_, used)), (_, reserved)) in amounts {
        if resource == Resource::Depth || limit == 0 && used == 0 {
            continue;
        }
        let _: Result<(), _> = writeln!(
            text,
            "  {:<12} {}  {}{}",
            resource.name(),
            bar(limit, used, reserved),
            amount(resource, used),
            // Nobody set a limit to what is as great as can be counted.
            if limit == u64::MAX { ", no limit".to_owned() } else { format!(" of {}", amount(resource, limit)) }
        );
    }
    text
}

/// Of what nothing is left, if there is such a thing: it is not said that the agent goes on.
fn spent(account: &AccountView) -> String {
    let amounts = account.limit.amounts().into_iter().zip(account.used.amounts());
    let spent = amounts.filter(|((resource, limit), (_, used))| is_bound(*resource) && used >= limit);
    let names: Vec<&str> = spent.map(|((resource, _), _)| resource.name()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "  spent: {}. What needs more of it is refused, and ends the turn, until there is more.\n",
        names.join(", ")
    )
}

/// Whether it is something that is used up, and not a bound on the tree below.
const fn is_bound(resource: Resource) -> bool {
    !matches!(resource, Resource::Depth | Resource::Children)
}

/// What is used and set aside of a limit, in characters that need no colour.
pub(super) fn bar(limit: u64, used: u64, reserved: u64) -> String {
    let part = |amount: u64| {
        let part = u128::from(amount) * u128::from(BAR) / u128::from(limit.max(1));
        usize::try_from(part).unwrap_or(usize::MAX).min(20)
    };
    let (used, both) = (part(used), part(used.saturating_add(reserved)));
    let held = both.saturating_sub(used);
    format!("[{}{}{}]", "#".repeat(used), "+".repeat(held), " ".repeat(20usize.saturating_sub(used + held)))
}

/// The fullest of the things that run out, of a hundred.
pub(super) fn fullest(account: &AccountView) -> u64 {
    let parts = account.limit.amounts().into_iter().zip(account.used.amounts());
    let parts = parts.filter(|((resource, limit), (_, used))| is_bound(*resource) && (*limit > 0 || *used > 0));
    parts.map(|((_, limit), (_, used))| used.saturating_mul(100).checked_div(limit).unwrap_or(100)).max().unwrap_or(0)
}

fn amount(resource: Resource, amount: u64) -> String {
    match resource {
        Resource::Cost => format!("${}.{:06}", amount / 1_000_000, amount % 1_000_000),
        Resource::WallTime => format!("{} s", amount / 1000),
        _ => amount.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn a_bar_is_as_long_as_it_is_however_much_is_overdrawn() {
        assert_eq!(bar(100, 50, 25), "[##########+++++     ]");
        for (limit, used, reserved) in [(0, 0, 0), (1, u64::MAX, u64::MAX), (u64::MAX, 1, u64::MAX), (3, 2, 9)] {
            assert_eq!(bar(limit, used, reserved).len(), 22);
        }
    }
}
