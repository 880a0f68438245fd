//! What a command changed, while it waits to be applied.

use std::path::PathBuf;

use ephor_base::{
    Difference, Failure, FailureKind, Form, Kept, Leads, Located, MOST_KEPT, Makes, SessionId, ToolAnswer,
};
use ephor_confine::overlay::{Act, After, ApplyError, Before, Change, Changes, Kind, Protection};
use ephor_kernel::Found;

use super::said;
use crate::{
    foresee::difference,
    locate::{Held, follow, on_the_spot, shown},
    workspace::OpenWorkspace,
};

/// The most paths that are applied at once. They stand on the record.
const MOST_PATHS: usize = 4_096;
/// The most bytes of them together.
const MOST_PATH_BYTES: usize = 1 << 20;
/// The most bytes that are kept of what they replace: they stand in one entry. With more, the call cannot be undone.
const MOST_KEPT_TOGETHER: u64 = 8 * MOST_KEPT;
/// Of how many files the difference is worked out. A person is not shown more.
const MOST_SHOWN: usize = 20;

pub(super) const NOTHING_WAITS: &str = "no changes of a command wait to be applied by this call";

/// The changes of one command.
pub(super) struct Pending {
    session: SessionId,
    workspace: PathBuf,
    upper: PathBuf,
    changes: Changes,
    /// What the call to apply them names, each with its place in the list.
    named: Vec<(String, usize)>,
    folders: usize,
}

impl Pending {
    /// The changes of a command of this session. A folder that comes or goes with the files in it is not named.
    ///
    /// # Errors
    /// They cannot be applied: a sentence.
    pub(super) fn new(
        session: SessionId,
        (workspace, upper): (PathBuf, PathBuf),
        changes: Changes,
    ) -> Result<Self, String> {
        let is_folder = |change: &Change| {
            let folder = |kind: &Kind| *kind == Kind::Folder;
            let (before, after) = (change.before.as_ref(), change.after.as_ref());
            before.is_none_or(|before| folder(&before.kind))
                && after.is_none_or(|after| folder(&after.kind))
                && change.act() != Act::Mode
        };
        let list = || changes.list().iter().enumerate();
        let mut chosen: Vec<_> = list().filter(|(_, change)| !is_folder(change)).collect();
        let folders = changes.list().len().saturating_sub(chosen.len());
        if chosen.is_empty() {
            chosen = list().collect();
        }
        let bytes: usize = chosen.iter().map(|(_, change)| change.path.as_os_str().len()).sum();
        if chosen.len() > MOST_PATHS || bytes > MOST_PATH_BYTES {
            return Err(format!(
                "it changed {} files, and {MOST_PATHS} are the most that are applied at once; let it write what it builds to a \
                 folder that the operator declares under `[shell]`, or to /tmp",
                chosen.len()
            ));
        }
        let name = |(at, change): (usize, &Change)| match change.path.to_str() {
            Some("") => Ok((".".to_owned(), at)),
            Some(path) => Ok((path.to_owned(), at)),
            None => Err(format!("it made a name that is not UTF-8: `{}`", shown(&change.path.to_string_lossy()))),
        };
        let named = chosen.into_iter().map(name).collect::<Result<_, _>>()?;
        Ok(Self { session, workspace, upper, changes, named, folders })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.list().is_empty()
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|(path, _)| path.as_str())
    }

    pub(super) fn is_of<'a>(&self, session: SessionId, paths: impl Iterator<Item = &'a str>) -> bool {
        self.session == session && self.paths().eq(paths)
    }

    /// What applying them makes of each path. Blocks.
    pub(super) fn places(&self, paths: &[(String, String)]) -> Vec<Found> {
        let open = |path: &PathBuf| OpenWorkspace::open(path).map_err(|error| error.to_string());
        let trees = open(&self.workspace).and_then(|workspace| Ok((workspace, open(&self.upper)?)));
        let mut left = MOST_KEPT_TOGETHER;
        let places = paths.iter().zip(&self.named).enumerate().map(|(at, ((argument, _), (path, index)))| {
            let place = trees.as_ref().map_err(Clone::clone).and_then(|(workspace, upper)| {
                let change = self.changes.list().get(*index).ok_or(NOTHING_WAITS)?;
                let mut held = before(workspace, path, change)?;
                let new = if at < MOST_SHOWN { after(upper, path, change) } else { None };
                held.place.makes = Some(makes(&held, change, new));
                let fits = |kept: &Kept| kept.held.as_ref().is_none_or(|held| left >= held.len() as u64);
                let kept = held.kept().filter(|kept| is_undone_by_content(change) && fits(kept));
                match &kept {
                    Some(kept) => left = left.saturating_sub(kept.held.as_ref().map_or(0, |held| held.len() as u64)),
                    None => held.place.keeps = None,
                }
                Ok((held.place, kept))
            });
            let (leads, kept) = match place {
                Ok((place, kept)) => (Leads::To(place), kept),
                Err(why) => (Leads::Nowhere(why), None),
            };
            Found { located: Located { argument: argument.clone(), leads }, kept }
        });
        places.collect()
    }

    /// Applies them, all or none. Blocks.
    pub(super) fn apply(&self) -> Result<ToolAnswer, Failure> {
        let applied = self.changes.apply(&|_| Protection::Open, &mut |_, _, _| Ok(()));
        let unknown = |why: String| Failure::new(FailureKind::Crashed, why);
        match applied {
            Ok(()) | Err(ApplyError::Staging { .. }) => {}
            Err(error @ ApplyError::Torn { .. }) => return Err(unknown(said(&error))),
            Err(error) => return Err(Failure::new(FailureKind::Workspace, said(&error))),
        }
        let synced = OpenWorkspace::open(&self.workspace).map_err(|error| error.to_string());
        let synced = synced.and_then(|open| rustix::fs::syncfs(open.root()).map_err(|error| error.to_string()));
        synced.map_err(|why| unknown(format!("its changes were applied, and may not be on the disk: {why}")))?;
        Ok(ToolAnswer { text: format!("[{}]\n", self.summary()), failed: false })
    }

    /// What changed, in one line.
    pub(super) fn summary(&self) -> String {
        let one = |(path, index): &(String, usize)| {
            let act = self.changes.list().get(*index).map(Change::act);
            let letter = match act {
                Some(Act::Created) => 'A',
                Some(Act::Removed) => 'D',
                _ => 'M',
            };
            format!("{letter} {}", shown(path))
        };
        let names: Vec<String> = self.named.iter().take(MOST_SHOWN).map(one).collect();
        let more = match self.named.len().saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let folders = if self.folders > 0 && self.named.len() > self.folders { ", with their folders" } else { "" };
        format!("changed {}{folders}: {}{more}", count(self.named.len()), names.join(", "))
    }
}

fn count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

/// What is at a path, which has to be what the list of changes was made from.
fn before(workspace: &OpenWorkspace, path: &str, change: &Change) -> Result<Held, String> {
    let held = match change.before.as_ref().map(|before| &before.kind) {
        None | Some(Kind::File(_)) => follow(workspace, path, true, &|| true)?,
        Some(Kind::Folder | Kind::Link(_) | Kind::Special) => on_the_spot(workspace, path)?,
    };
    if held.place.path == path && held.place.exists == change.before.is_some() {
        return Ok(held);
    }
    Err(format!("`{}` was changed while the command ran", shown(path)))
}

/// What the command left in a file, as far as it can be shown.
fn after(upper: &OpenWorkspace, path: &str, change: &Change) -> Option<Held> {
    let is_file = matches!(change.after, Some(After { kind: Kind::File(_), .. }));
    is_file.then(|| follow(upper, path, true, &|| true).ok()).flatten()
}

/// Whether what was there is all there again once its content is: a file or nothing before and after, with the same permissions.
fn is_undone_by_content(change: &Change) -> bool {
    let same = |(before, after): (&Before, &After)| before.mode == after.mode;
    is_file(change) && change.before.as_ref().zip(change.after.as_ref()).is_none_or(same)
}

/// Whether there is a file or nothing, before and after.
fn is_file(change: &Change) -> bool {
    let file = |kind: &Kind| matches!(kind, Kind::File(_));
    change.before.as_ref().is_none_or(|before| file(&before.kind))
        && change.after.as_ref().is_none_or(|after| file(&after.kind))
}

fn makes(held: &Held, change: &Change, new: Option<Held>) -> Makes {
    let (content, form) = match &change.after {
        None => (None, None),
        Some(After { kind: Kind::Link(to), .. }) => (None, Some(Form::Link(shown(&to.to_string_lossy())))),
        Some(After { kind: Kind::Folder, mode, .. }) => (None, Some(Form::Folder(*mode))),
        Some(After { digest, mode, .. }) => {
            let same = change
                .before
                .as_ref()
                .is_some_and(|before| before.mode == *mode && matches!(before.kind, Kind::File(_)));
            (*digest, (!same).then_some(Form::File(*mode)))
        }
    };
    let new = new.filter(|new| new.place.content == content);
    let known = change.after.is_none() || new.is_some();
    let difference = if known && is_file(change) && (held.content.is_some() || !held.place.exists) {
        difference(held, new.as_ref().and_then(|new| new.content.as_deref()))
    } else {
        Difference::default()
    };
    Makes { content, difference, form }
}
