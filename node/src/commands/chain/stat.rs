//! `ephor chain stat`: what the record holds, what it costs, and how fast it grows.

use std::{
    collections::BTreeMap,
    fs,
    io::{IsTerminal, stdout},
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, bail};
use ephor_base::{Seq, Timestamp, files::Files};
use ephor_chain::{
    Config as ChainConfig, Space,
    disk::Disk,
    figures::{self, Journal},
    quota, read,
    state::Day,
};
use ephor_verify::Folder;
use ephor_verify::Prover;
use serde::Serialize;

use super::{super::ps::unpublished, used};
use crate::{
    bytes::{amount, of_quota},
    config::Config,
    home::Home,
    projections::{Answering, Found, Question, Statistics},
    terminal,
};

const HOUR: u64 = 3_600_000_000;
const DAY: u64 = 24 * HOUR;
/// How many columns the picture has.
const COLUMNS: u64 = 48;
/// Up to so many entries are read for a picture by the hour; that takes a fraction of a second.
const MOST_READ: u64 = 50_000;

/// Everything that is told.
#[derive(Serialize)]
struct Stat {
    entries: u64,
    /// The first that is still there: 0 unless the chain was pruned.
    minimum: u64,
    /// How many of them are published.
    published: u64,
    kinds: BTreeMap<String, u64>,
    sessions: u64,
    open_intents: u64,
    head: Option<String>,
    oldest: Option<Timestamp>,
    newest: Option<Timestamp>,
    journal: Journal,
    /// Entries a batch, in what the journal still holds.
    mean_batch: f64,
    bytes: Bytes,
    /// What the chain and the vault may have, and have of it; nothing where there is no quota.
    space: Option<Space>,
    /// Why the node that runs cannot publish the chain; nothing while it can.
    trouble: Option<String>,
    growth: Growth,
    /// Entries of the latest hours or days, oldest first.
    latest: Latest,
}

/// The bytes of the files of a home.
#[derive(Serialize)]
struct Bytes {
    journal: u64,
    tiles: u64,
    checkpoints: u64,
    vault: u64,
    state: u64,
}

/// What a day adds, on the mean of the days from the first entry to the last.
#[derive(Serialize)]
struct Growth {
    days: u64,
    entries_per_day: u64,
    bytes_per_day: u64,
}

#[derive(Serialize)]
struct Latest {
    /// `hour` or `day`.
    unit: &'static str,
    /// When the first column begins.
    since: Timestamp,
    entries: Vec<u64>,
}

pub(super) fn stat(home: &Home, json: bool) -> anyhow::Result<ExitCode> {
    let home = used(home)?;
    let mut answering = Answering::find(home)?;
    let Found::Statistics { statistics } = answering.ask(Question::Statistics {})? else {
        bail!("the node answered something else");
    };
    let stat = Stat { trouble: answering.trouble()?, ..gather(home, statistics)? };
    let text = if json { serde_json::to_string(&stat)? + "\n" } else { told(&stat) };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

fn gather(
    home: &Home,
    Statistics { entries, kinds, sessions, open_intents, days }: Statistics,
) -> anyhow::Result<Stat> {
    let (files, chain): (Arc<dyn Files>, _) = (Arc::new(Disk), home.chain());
    let broken = "the chain cannot be read; see `ephor chain verify`";
    let journal = figures::journal(&chain, &files).context(broken)?;
    let minimum = ephor_chain::minimum::load(&chain, &files).context(broken)?.map_or(0, |minimum| minimum.index);
    let published = Prover::open(&Folder::source(&chain, &files))
        .context(broken)?
        .map_or(0, |prover| prover.checkpoint().head.size);
    let time = |seq: u64| -> anyhow::Result<Option<Timestamp>> {
        let entry = read(&chain, &files).from(Seq(seq)).up_to(seq.saturating_add(1)).next();
        Ok(entry.transpose().context(broken)?.map(|stored| stored.entry.time))
    };
    let (oldest, newest) = (time(minimum)?, time(entries.saturating_sub(1))?);
    let bytes = Bytes {
        journal: size(&chain.join("journal")),
        tiles: size(&chain.join("tile")),
        checkpoints: size(&chain.join("checkpoints")).saturating_add(size(&chain.join("checkpoint"))),
        vault: size(&home.vault()),
        state: size(&home.state()),
    };
    let space = space(home, &*files, journal.bytes)?;
    let growth = growth(&days, entries.saturating_sub(minimum), &bytes);
    let latest = latest(&chain, &files, &days, entries, newest.unwrap_or(Timestamp(0)))?;
    let mean_batch = mean(journal.entries, journal.batches);
    let head = (journal.head.size > 0).then(|| journal.head.root.to_string());
    Ok(Stat {
        entries,
        minimum,
        published,
        kinds,
        sessions,
        open_intents,
        head,
        oldest,
        newest,
        journal,
        mean_batch,
        bytes,
        space,
        trouble: None,
        growth,
        latest,
    })
}

/// How much of its quota a home has used on the disk.
fn space(home: &Home, files: &dyn Files, journal: u64) -> anyhow::Result<Option<Space>> {
    let Some(quota) = Config::load(&home.config())?.quota() else { return Ok(None) };
    let used = quota::used(&ChainConfig::in_home(home.path()), files, journal).context("the home cannot be read")?;
    Ok(Some(Space { used, quota }))
}

/// The bytes of a file, or of all files in a folder. What cannot be read, or goes meanwhile, counts nothing.
fn size(path: &Path) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.fold(0, |sum, entry| sum.saturating_add(size(&entry.path())))
}

fn growth(days: &[Day], entries: u64, bytes: &Bytes) -> Growth {
    let (newest, oldest) = (days.first().map_or(0, |day| day.day), days.last().map_or(0, |day| day.day));
    let days = newest.saturating_sub(oldest).saturating_add(1);
    let kept = [bytes.journal, bytes.tiles, bytes.checkpoints, bytes.vault].iter().sum::<u64>();
    Growth { days, entries_per_day: entries.div_ceil(days), bytes_per_day: kept.div_ceil(days) }
}

/// The latest hours if those are few entries, or else the latest days.
fn latest(
    chain: &Path,
    files: &Arc<dyn Files>,
    days: &[Day],
    entries: u64,
    newest: Timestamp,
) -> anyhow::Result<Latest> {
    let begin = |unit: u64| (newest.0 / unit).saturating_add(1).saturating_sub(COLUMNS);
    let column = |at: u64, begin: u64| usize::try_from(at.saturating_sub(begin)).unwrap_or(usize::MAX);
    let mut counts = vec![0u64; usize::try_from(COLUMNS).unwrap_or(0)];
    let mut count = |at: usize, more: u64| {
        if let Some(count) = counts.get_mut(at) {
            *count = count.saturating_add(more);
        }
    };
    let hours = begin(HOUR);
    let recent = days.iter().take_while(|day| day.day >= hours.saturating_mul(HOUR) / DAY);
    let first = recent.map(|day| day.first.0).min().unwrap_or(0);
    if entries.saturating_sub(first) > MOST_READ {
        let since = begin(DAY);
        for day in days.iter().filter(|day| day.day >= since) {
            count(column(day.day, since), day.last.0.saturating_sub(day.first.0).saturating_add(1));
        }
        return Ok(Latest { unit: "day", since: Timestamp(since.saturating_mul(DAY)), entries: counts });
    }
    for stored in read(chain, files).from(Seq(first)).up_to(entries) {
        let at = stored.context("the chain cannot be read; see `ephor chain verify`")?.entry.time.0 / HOUR;
        if at >= hours {
            count(column(at, hours), 1);
        }
    }
    Ok(Latest { unit: "hour", since: Timestamp(hours.saturating_mul(HOUR)), entries: counts })
}

fn told(stat: &Stat) -> String {
    let time = |time: Option<Timestamp>| time.map_or_else(|| "-".to_owned(), super::super::sessions::short);
    let mut kinds: Vec<_> = stat.kinds.iter().collect();
    kinds.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    let kinds: Vec<String> = kinds.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let Bytes { journal, tiles, checkpoints, vault, state } = stat.bytes;
    let pruned = if stat.minimum > 0 { format!("; those before {} were pruned", stat.minimum) } else { String::new() };
    let lines = [
        format!("entries    {}, of which {} are published{pruned}", stat.entries, stat.published),
        format!("           {}", kinds.join(", ")),
        format!("sessions   {}", stat.sessions),
        format!("open       {} intents without an outcome", stat.open_intents),
        format!("oldest     {}", time(stat.oldest)),
        format!("newest     {}", time(stat.newest)),
        format!("root       {}", stat.head.as_deref().unwrap_or("-")),
        format!(
            "batches    {:.1} entries each, over the {} batches that the journal still holds",
            stat.mean_batch, stat.journal.batches
        ),
        format!("journal    {}", amount(journal)),
        format!("published  {}, and {} of checkpoints", amount(tiles), amount(checkpoints)),
        format!("vault      {}", amount(vault)),
        format!("state      {}; it can be deleted at any time", amount(state)),
        format!(
            "growth     {} entries and {} a day, in the mean of {} d",
            stat.growth.entries_per_day,
            amount(stat.growth.bytes_per_day),
            stat.growth.days
        ),
    ];
    let mut text = lines.join("\n") + "\n";
    if let Some(space) = stat.space {
        text.push_str(&format!("quota      {}\n", of_quota(space)));
    }
    if let Some(why) = &stat.trouble {
        text.push_str(&format!("trouble    {}\n", unpublished(why)));
    }
    if stdout().is_terminal() {
        let since = super::super::sessions::short(stat.latest.since);
        let most = stat.latest.entries.iter().max().copied().unwrap_or(0);
        let (unit, picture) = (stat.latest.unit, picture(&stat.latest.entries));
        text.push_str(&format!("\n{picture}\nentries by the {unit} since {since} UTC, {most} at most\n"));
    }
    text
}

/// A column for each count, as high as it is beside the highest. What is not nothing can be seen.
fn picture(counts: &[u64]) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().max().copied().unwrap_or(0);
    let block = |count: &u64| {
        let height = count.saturating_mul(8).div_ceil(most.max(1));
        BLOCKS.get(usize::try_from(height).unwrap_or(8)).copied().unwrap_or('█')
    };
    counts.iter().map(block).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people, with one digit behind the point")]
fn mean(entries: u64, batches: u64) -> f64 {
    if batches == 0 { 0.0 } else { entries as f64 / batches as f64 }
}

#[cfg(test)]
mod tests {
    use super::picture;

    #[test]
    fn the_highest_column_is_full_and_a_single_entry_can_be_seen() {
        assert_eq!(picture(&[0, 1, 50, 100, 0]), " ▁▄█ ");
        assert_eq!(picture(&[0, 0]), "  ");
        assert_eq!(picture(&[u64::MAX]).chars().count(), 1);
    }
}
