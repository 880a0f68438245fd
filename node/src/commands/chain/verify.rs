//! `ephor chain verify`: needs nothing but the files and the public keys.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, bail};
use ephor_base::files::Files;
use ephor_chain::{
    PinnedHead,
    disk::Disk,
    verify::{self as verifier, Against, Report},
};
use ephor_record::{Damage, Finding, ScanError};
use ephor_tlog::{Checkpoint, VerifierKeys};
use ephor_verify::{Folder, TileSource, Verified};
use serde_json::json;

use super::{keys, place::check_is_chain, web};
use crate::{
    cli::Verify,
    failure::NoChain,
    files,
    home::Home,
    progress::Bar,
    terminal::{self, plain},
};

/// What is verified against what.
struct Given {
    folder: PathBuf,
    /// Where the sealed contents are, if they were copied too.
    vault: Option<PathBuf>,
    keys: VerifierKeys,
    head: Option<PinnedHead>,
}

pub(super) fn verify(home: &Home, mut args: Verify) -> anyhow::Result<ExitCode> {
    args.directory = args.directory.map(of_home).transpose()?;
    let files: Arc<dyn Files> = Arc::new(Disk);
    if let Some(source) = published_alone(args.directory.as_deref(), &files)? {
        return published(&source, &args);
    }
    let (json, from) = (args.json, args.from.clone());
    let mut contents = false;
    let verified = match given(home, args, &*files)? {
        Ok(given) => {
            contents = given.vault.is_some();
            let from = from.map(|file| trusted(&file, &given.keys)).transpose()?;
            verified(&given, from.as_ref(), &files)
        }
        Err(finding) => Err(finding.into()),
    };
    let status = if verified.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let text = match verified {
        Ok(report) if json => json!({"ok": true, "contents": contents, "report": report}).to_string(),
        Ok(report) => told(&report, contents).join("\n"),
        Err(error) => untold(error, json)?,
    };
    terminal::write(&format!("{text}\n")).context(terminal::UNWRITTEN)?;
    Ok(status)
}

/// The home, where its chain is named: what lies beside that counts.
fn of_home(folder: PathBuf) -> anyhow::Result<PathBuf> {
    let Ok(whole) = folder.canonicalize() else { return Ok(folder) };
    let Some(around) = whole.parent() else { return Ok(folder) };
    let home = Home::find(Some(around.into()))?;
    Ok(if home.signing_keys().exists() && home.chain() == whole { around.to_owned() } else { folder })
}

/// Whether it is a URL, by its scheme in whatever case.
fn is_url(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, _)| ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// Where a chain is published of which there is nothing else: a URL, or a copied folder without a journal.
fn published_alone(directory: Option<&Path>, files: &Arc<dyn Files>) -> anyhow::Result<Option<Arc<dyn TileSource>>> {
    let Some(directory) = directory else { return Ok(None) };
    let text = directory.to_str().unwrap_or_default();
    if is_url(text) {
        return web::source(text).map(Some);
    }
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    Ok((has("checkpoint") && !has("journal")).then(|| Folder::source(directory, files)))
}

/// Verifies what is published, and says so.
fn published(source: &Arc<dyn TileSource>, args: &Verify) -> anyhow::Result<ExitCode> {
    // Beside a URL there is nothing.
    let folder = args.directory.as_deref().filter(|folder| !folder.to_str().is_some_and(is_url));
    let keys = match (&args.key[..], folder.and_then(Path::parent)) {
        ([], None) => bail!("name the keys of the log with --key, as `ephor chain key` prints them"),
        ([], Some(around)) => keys::beside(around)?,
        (named, _) => keys::pair(named)?,
    };
    let head = args.head.as_deref().map(named_head).transpose()?.map(|pinned| pinned.head);
    let from = args.from.as_deref().map(|file| trusted(file, &keys)).transpose()?;
    let against = ephor_verify::Against { keys: &keys, head, from: from.as_ref() };
    let mut bar = Bar::new("entries verified");
    let verified = ephor_verify::verify(source, against, |entries, total| bar.show(entries, total));
    drop(bar);
    let status = if verified.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let text = match verified {
        Ok(report) if args.json => json!({"ok": true, "contents": false, "published": report}).to_string(),
        Ok(report) => told_of_published(&report).join("\n"),
        Err(error) => untold(error, args.json)?,
    };
    terminal::write(&format!("{text}\n")).context(terminal::UNWRITTEN)?;
    Ok(status)
}

fn checkpoints(count: u64) -> String {
    if count == 1 { "1 checkpoint".to_owned() } else { format!("{count} checkpoints") }
}

fn told_of_published(report: &Verified) -> Vec<String> {
    let mut lines = vec![
        format!(
            "OK: {} published entries verified, under {} with both signatures each.",
            report.head.size,
            checkpoints(report.checkpoints)
        ),
        format!("  log     {}", report.origin),
        format!("  root    {}", report.head.root),
    ];
    if report.minimum > 0 {
        lines.push(format!("  begins  at entry {}; what lay before it was pruned, as the record says", report.minimum));
    }
    if report.since > report.minimum {
        lines.push(format!("  since   entry {}; what lies before it was verified earlier", report.since));
    }
    lines.push("  there is no journal: what is not published yet was not seen, nor any sealed content".to_owned());
    if !report.against_head {
        let what = "a log that was cut back to an older checkpoint looks like this too";
        lines.push(format!("  not held against a head: {what}; name one with --head"));
    }
    lines
}

/// What is said of a chain that does not hold; an error where nothing is known about it.
fn untold(error: ScanError, json: bool) -> anyhow::Result<String> {
    match error {
        ScanError::Damaged(finding) if json => Ok(json!({"ok": false, "finding": finding}).to_string()),
        ScanError::Damaged(finding) => Ok(format!("NOT OK: {}", plain(&finding.to_string()))),
        error @ ScanError::Pruned { .. } => {
            let why = "the head or checkpoint to hold the chain against is from before that; take a later one";
            Err(error).context(why)
        }
        // Its words have those of its cause.
        error => Err(anyhow::anyhow!("{error}").context("nothing is known about the chain")),
    }
}

/// A checkpoint up to which the log was verified before. It must be one of this log; whose signatures it must carry, the
/// record says.
fn trusted(file: &Path, keys: &VerifierKeys) -> anyhow::Result<Checkpoint> {
    let show = file.display();
    let bytes = files::named_bytes(file, files::MOST_TEXT).context("the checkpoint cannot be read")?;
    let checkpoint = Checkpoint::parse(&bytes).with_context(|| {
        format!("`{show}` is not a checkpoint; keep a copy of `chain/checkpoint` whenever you have verified a log")
    })?;
    if checkpoint.origin != keys.origin() {
        bail!(
            "the checkpoint `{show}` is one of the log `{}`, and these keys are of `{}`",
            checkpoint.origin,
            keys.origin()
        );
    }
    Ok(checkpoint)
}

fn verified(given: &Given, from: Option<&Checkpoint>, files: &Arc<dyn Files>) -> Result<Report, ScanError> {
    let Given { folder, vault, keys, head } = given;
    let mut bar = Bar::new("entries verified");
    let against = Against { keys, head: head.clone(), vault: vault.as_deref(), from };
    verifier::verify(folder, files, against, |progress| bar.show(progress.entries, progress.total))
}

fn told(report: &Report, contents: bool) -> Vec<String> {
    let mut lines = vec![
        format!(
            "OK: {} entries verified, under {} with both signatures each.",
            report.head.size,
            checkpoints(report.checkpoints)
        ),
        format!("  log     {}", report.origin),
        format!("  root    {}", report.head.root),
        format!(
            "  boots   {}{}",
            report.boots,
            if report.stopped { ", stopped cleanly" } else { ", running or crashed" }
        ),
    ];
    if report.minimum > 0 {
        lines.push(format!("  begins  at entry {}; what lay before it was pruned, as the record says", report.minimum));
    }
    if report.since > report.minimum {
        lines.push(format!("  since   entry {}; what lies before it was verified earlier", report.since));
    }
    if !contents {
        lines.push("  the sealed contents were not held against it".to_owned());
    }
    if report.open_intents > 0 {
        lines.push(format!("  intents {} without an outcome yet", report.open_intents));
    }
    if report.torn_bytes > 0 {
        let bytes = report.torn_bytes;
        lines.push(format!("  torn    {bytes} bytes of a batch that was never acknowledged; the next boot trims them"));
    }
    if !report.against_head {
        let what = "a log that was cut back to an older checkpoint looks like this too";
        lines.push(format!("  not held against a pinned head: {what}"));
    }
    lines
}

/// A head, or a checkpoint, in a file that was named.
fn named_head(file: &Path) -> anyhow::Result<PinnedHead> {
    let bytes = files::named_bytes(file, files::MOST_TEXT).context("there is no head that can be read")?;
    PinnedHead::parse(&bytes).with_context(|| format!("the head `{}`", file.display()))
}

/// A home, or a copied folder of a chain with keys beside it or named. In a home, what is missing is a finding.
fn given(home: &Home, args: Verify, disk: &dyn Files) -> anyhow::Result<Result<Given, Finding>> {
    let Verify { directory, key, head, without_contents, .. } = args;
    let is_named = directory.is_some();
    let root = directory.unwrap_or_else(|| home.path().to_owned());
    let home = Home::find(Some(root.clone().into()))?;
    let lacks = |file: &str, damage| Finding { file: file.into(), offset: 0, seq: None, damage };
    // Only a home has signing keys, and they are there before the chain is.
    let begun = home.signing_keys().exists();
    let (folder, around) = match home.chain() {
        chain if chain.is_dir() => (chain, root),
        _ if begun => return Ok(Err(lacks("journal", Damage::JournalMissing))),
        _ if home.exists() || !is_named => bail!(NoChain(root)),
        _ => (root.clone(), root.parent().map(Path::to_owned).unwrap_or_default()),
    };
    // A home keeps to its record: what is missing there is damage.
    if !begun {
        check_is_chain(&folder)?;
    }
    let keys = if key.is_empty() { keys::beside(&around)? } else { keys::pair(&key)? };
    let head = match head {
        Some(file) => Some(named_head(&file)?),
        // Whatever lies there and is no head is a finding: only where there is nothing may a copy be without one.
        None => match PinnedHead::load(&around.join("head"), disk) {
            Ok(None) if begun => return Ok(Err(lacks("head", Damage::HeadMissing))),
            Ok(found) => found,
            Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::InvalidInput) => {
                return Ok(Err(lacks("head", Damage::Head)));
            }
            Err(error) => return Err(error).context("the head beside the chain cannot be read"),
        },
    };
    // Of a home, contents that are not there are missing.
    let vault = Some(around.join("vault")).filter(|vault| begun || vault.join("content").is_dir());
    let vault = vault.filter(|_| !without_contents);
    Ok(Ok(Given { folder, vault, keys, head }))
}
