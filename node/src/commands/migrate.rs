//! `ephor migrate`: brings a home to the format that is written here.

use std::process::ExitCode;

use anyhow::{Context, bail};
use ephor_chain::{migrate::Migrated, segment::FORMAT_VERSION};
use serde_json::json;

use crate::{cli::Migrate, failure::NoChain, home::Home, passphrase, progress::Bar, serving, terminal};

pub(crate) fn migrate(home: &Home, args: &Migrate) -> anyhow::Result<ExitCode> {
    if !home.exists() {
        bail!(NoChain(home.path().to_owned()));
    }
    if !home.chain().is_dir() {
        bail!("there is no chain in `{}`; `ephor chain verify` says what is missing", home.path().display());
    }
    let _lock = home.lock()?;
    let mut bar = Bar::new("entries verified");
    let migrated = serving::migrate_chain(home, &passphrase::unlock(home)?.protection, |progress| {
        bar.show(progress.entries, progress.total)
    });
    drop(bar);
    let aside = home.path().join("migrated");
    let migrated = migrated.with_context(|| match aside.is_dir() {
        true => format!("the home is not migrated; its old segments lie in `{}`", aside.display()),
        false => "the home is not migrated".to_owned(),
    })?;
    let text = match migrated {
        Migrated::Nothing if args.json => json!({"migrated": false, "format": FORMAT_VERSION}).to_string(),
        Migrated::Nothing => {
            format!("nothing to do: the home is in format {FORMAT_VERSION}, which this version writes")
        }
        Migrated::Done(report) if args.json => {
            json!({"migrated": true, "format": FORMAT_VERSION, "report": *report}).to_string()
        }
        Migrated::Done(report) => format!(
            "migrated to format {FORMAT_VERSION}: all {} entries were carried over and verified, root {}.\nThe old segments \
             lay in `{}` until then, and are gone.",
            report.head.size,
            report.head.root,
            aside.display()
        ),
    };
    terminal::write(&format!("{text}\n")).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}
