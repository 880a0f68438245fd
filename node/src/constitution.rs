//! Where the constitution of a node comes from.

use std::{collections::BTreeSet, path::Path};

use anyhow::Context;
use ephor_base::{Digest, Seq};
use ephor_chain::Entries;
use ephor_governance::{Constitution, Environment};
use ephor_record::{Fact, Wanted};

use crate::{
    files,
    home::Home,
    projections::{Answering, Filter},
    terminal::plain,
};

/// The constitution of a home: `constitution.cedar`, or the default of its environment if there is no such file.
pub(crate) fn of_home(home: &Home, environment: Environment) -> anyhow::Result<Constitution> {
    let path = home.constitution();
    match files::of_home(&path)? {
        Some(text) => parsed(&text, &path),
        None => default_of(environment),
    }
}

/// The constitution that the record says is in force, by the digest of its text. The file of the home only repeats it: where it
/// says something else, that is said, and the file is not used.
pub(crate) fn enacted(home: &Home, law: Digest, entries: impl FnOnce() -> Entries) -> anyhow::Result<Constitution> {
    let path = home.constitution();
    let repeated = files::of_home(&path)?;
    if let Some(text) = repeated.as_ref().filter(|text| Digest::of(text.as_bytes()) == law) {
        return parsed(text, &path);
    }
    if repeated.is_some() {
        let (file, short) = (plain(&path.display().to_string()), law.short());
        tracing::warn!(
            "`{file}` is not the constitution in force ({short}) and is not used: `ephor policy apply FILE` puts one in force, and \
             `ephor policy show` prints the one that is"
        );
    }
    let text = document(entries(), law)?.with_context(|| {
        format!("the text of the constitution in force ({}) is not on the record any more", law.short())
    })?;
    Constitution::parse(&text).context("the constitution in force cannot be read by this version of Ephor")
}

/// The constitution that the record of a home says is in force, if it says one. Only the entries that put one in force are read, if
/// there is an index.
pub(crate) fn on_record(
    home: &Home,
    entries: impl Fn() -> anyhow::Result<Entries>,
) -> anyhow::Result<Option<Constitution>> {
    let mut law = None;
    let all: Box<dyn Iterator<Item = _>> = match enactments(home) {
        Some(places) => Box::new(entries()?.at(places)),
        None => Box::new(entries()?),
    };
    for stored in all {
        match stored.context("see `ephor chain verify`")?.entry.fact {
            Fact::Enacted { terms, .. } => law = Some(terms.constitution),
            Fact::Inherited(part) => law = part.law.map(|law| law.constitution).or(law),
            _ => {}
        }
    }
    let Some(law) = law else { return Ok(None) };
    let entries = entries()?;
    enacted(home, law, || entries).map(Some)
}

/// The entries that put a constitution in force, as the index has them.
fn enactments(home: &Home) -> Option<BTreeSet<Seq>> {
    let mut answering = Answering::at_once(home).ok()?;
    let mut places = BTreeSet::new();
    for kind in ["enacted", "inherited"] {
        let of = Filter { kind: Some(kind.to_owned()), ..Filter::default() };
        places.extend(answering.entries(&of, usize::MAX).ok()?);
    }
    Some(places)
}

/// A text that stands on the record in parts.
fn document(entries: Entries, wanted: Digest) -> anyhow::Result<Option<String>> {
    let mut parts = Wanted::new(wanted);
    for stored in entries {
        if let Some(text) = parts.take(stored.context("see `ephor chain verify`")?.entry.fact) {
            return Ok(String::from_utf8(text).ok());
        }
    }
    Ok(None)
}

/// The constitution in a file.
pub(crate) fn of_file(path: &Path) -> anyhow::Result<Constitution> {
    parsed(&files::named(path, files::MOST_TEXT)?, path)
}

/// The one that comes with Ephor.
pub(crate) fn default_of(environment: Environment) -> anyhow::Result<Constitution> {
    let text = Constitution::default_text(environment);
    Constitution::parse(text).with_context(|| format!("the default constitution for {}", environment.name()))
}

fn parsed(text: &str, path: &Path) -> anyhow::Result<Constitution> {
    Constitution::parse(text)
        .with_context(|| format!("`{}` is not a constitution; nothing was changed", path.display()))
}
