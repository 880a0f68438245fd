//! An operator accepts the loss of a chain that is not whole.
//!
//! The old chain is moved aside whole and never overwritten, with its public keys and its pinned head; its signing keys are
//! destroyed. A new one begins under new
//! keys, and its first entry names the last head of the old one that can still be trusted. Behind that stands what stood on the old
//! one up to there and does not end with it: operators and their roles, the law, and what is stopped or suspended.
//!
//! The new chain is made ready under `quarantine/N/draft`, renamed to `quarantine/N/new`, and then swapped in: pinned
//! head, chain, keys. The sealed contents of the old chain move aside with it, because those of the new one take their
//! names; the keys of the sessions stay in the vault and still open them. Between any two of these steps the home does not open, because head, chain and keys are not of one
//! log; accepting again goes on where it was interrupted.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::{
    Clock, Digest, Random,
    files::{Files, Open},
};
use ephor_record::{Damage, Fact, Finding, Follows, Minimum, Rules, ScanError, Standing, Wanted};
use ephor_signatures::Signatures;
use ephor_tlog::{Checkpoint, Head, VerifierKeys, tile::WIDTH};
use ephor_verify::Folder;
use ephor_verify::folder;
use ephor_verify::{
    Published,
    history::{self, History, begin_of},
};

use crate::minimum;
use crate::{
    durable,
    error::OpenError,
    keys::{KeyError, SigningKeys},
    log::Config,
    marks,
    open::{self, Before, Looked, World},
    read::read,
    restore,
    rotation::{KeyFile, Signers},
    scan::Scan,
    vault::{Vault, VaultKey},
    verify::{self as verifier, Against, verify},
};

/// The public keys of the old chain, below the place it was moved to: two lines, as a verifier is given them.
pub const PUBLIC: &str = "verifier";

/// The new chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Where the old chain lies now.
    pub moved_to: PathBuf,
    /// What the new chain says of the old one.
    pub follows: Follows,
}

/// The loss was not accepted. Nothing is lost by it: the old chain is whole where it was, or already moved aside.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// Nothing is wrong with the chain. Nothing was changed.
    #[error("there is no loss to accept: the chain is whole")]
    NothingWrong,
    /// The keys of the old chain cannot be used. Nothing was changed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The old chain cannot be read. Nothing was changed.
    #[error(transparent)]
    Scan(ScanError),
    /// The new chain could not be made. The old one is where it was.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The system would not do it. Accepting again goes on from here.
    #[error("{doing} failed: {source}; accept again to go on")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Moves a chain that is not whole aside and begins a new one. `signing` is the file of the signing keys; it holds the
/// new ones afterwards. If it is lost or damaged, the chain cannot go on, and `public` serves to say what can be trusted
/// of it. The caller holds the lock of the home.
///
/// # Errors
/// [`AcceptError`]. A chain that is whole is left alone.
#[expect(clippy::too_many_arguments, reason = "each is a thing of the world that the caller injects")]
pub fn accept(
    config: &Config,
    signing: impl Into<KeyFile>,
    public: Option<&VerifierKeys>,
    vault: Arc<VaultKey>,
    files: &Arc<dyn Files>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    version: &str,
) -> Result<Accepted, AcceptError> {
    restore::check_restored(config, &**files)?;
    let signing = &signing.into();
    let home = Home { config, signing, files, quarantine: durable::parent(&config.folder).join("quarantine") };
    let place = match home.interrupted()? {
        Some(place) => place,
        None => {
            let signers = match (signing.signers(&**files), public) {
                (Err(KeyError::Missing(_) | KeyError::Damaged(_)), Some(_)) => None,
                (loaded, _) => Some(loaded?),
            };
            let given = signers.as_ref().map(Signers::verifier).or(public);
            let old = given.cloned().ok_or_else(|| KeyError::Missing(signing.path.clone()))?;
            let finding = home.find(&old, signers.as_ref(), &vault)?;
            home.begin(&old, finding.to_string(), vault, clock, random, version)?
        }
    };
    home.finish(place)
}

/// Gives up a chain that is whole, for `reason`: a new one begins under new keys. The old one is the chain of `old`, whose
/// signing keys are not there. Goes on where it was interrupted, and does nothing more once it is done.
#[expect(clippy::too_many_arguments, reason = "each is a thing of the world that the caller injects")]
pub(crate) fn follow(
    config: &Config,
    signing: &KeyFile,
    old: &VerifierKeys,
    reason: String,
    vault: Arc<VaultKey>,
    files: &Arc<dyn Files>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    version: &str,
) -> Result<Accepted, AcceptError> {
    let home = Home { config, signing, files, quarantine: durable::parent(&config.folder).join("quarantine") };
    let begun = folder::open_existing(&**files, &signing.path, Open::Read).map_err(io("looking for the new keys"))?;
    let place = match home.interrupted()? {
        Some(place) => place,
        None if begun.is_some() => home.quarantine.join(home.numbers()?.last().copied().unwrap_or(0).to_string()),
        None => home.begin(old, reason, vault, clock, random, version)?,
    };
    home.finish(place)
}

/// What can be trusted of a chain that is not whole.
struct Trusted {
    head: Head,
    rules: Rules,
    /// Whether keys of the home signed any of it. Others that name ours could be anybody's.
    vouched: bool,
}

impl Default for Trusted {
    fn default() -> Self {
        Self { head: Head::empty(), rules: Rules::default(), vouched: false }
    }
}

struct Home<'a> {
    config: &'a Config,
    signing: &'a KeyFile,
    files: &'a Arc<dyn Files>,
    quarantine: PathBuf,
}

impl Home<'_> {
    /// Makes the new chain ready beside the old one, which is given up for `reason`.
    fn begin(
        &self,
        old: &VerifierKeys,
        reason: String,
        vault: Arc<VaultKey>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        version: &str,
    ) -> Result<PathBuf, AcceptError> {
        let before = self.before(old, reason, &vault, &*random)?;
        let place = self.free()?;
        let world = World { config: &self.staged(&place), files: self.files, clock, random };
        self.stage(&place, world, vault, version, (old, before))?;
        Ok(place)
    }

    /// Swaps the new chain in.
    fn finish(&self, place: PathBuf) -> Result<Accepted, AcceptError> {
        self.swap(&place)?;
        Ok(Accepted { follows: self.read_follows()?, moved_to: place })
    }

    /// What is wrong.
    fn find(&self, keys: &VerifierKeys, own: Option<&Signers>, vault: &VaultKey) -> Result<Finding, AcceptError> {
        let other = |looked: &Looked| own.is_some_and(|own| !open::is_ours(looked, own));
        match open::look(self.config, self.files, keys) {
            // The keys were never without a journal but for a moment of the first start, and that moment needs no help.
            Ok(looked) if looked.scan.tree.size() == 0 => Ok(open::journal_missing()),
            Ok(looked) if other(&looked) => Ok(looked.scan.end_finding(Damage::Keys)),
            Ok(looked) if own.is_none() => Ok(looked.scan.end_finding(Damage::SigningKeysLost)),
            Ok(looked) if open::is_other_vault(&looked.scan.rules, vault.name()) => {
                Ok(looked.scan.end_finding(Damage::VaultKey))
            }
            Ok(looked) => self.find_published(keys, looked.scan.start.size),
            Err(ScanError::Damaged(finding)) => Ok(finding),
            Err(error) => Err(AcceptError::Scan(error)),
        }
    }

    /// What is wrong with what lies before the journal. What the journal still holds is published again by opening.
    fn find_published(&self, keys: &VerifierKeys, journal: u64) -> Result<Finding, AcceptError> {
        let against = Against { keys, head: None, vault: Some(&self.config.vault), from: None };
        match verify(&self.config.folder, self.files, against, |_| ()) {
            Err(ScanError::Damaged(finding)) if finding.seq.is_some_and(|seq| seq.0 < journal) => Ok(finding),
            Ok(_) | Err(ScanError::Damaged(_)) => Err(AcceptError::NothingWrong),
            Err(error) => Err(AcceptError::Scan(error)),
        }
    }

    /// What can be trusted of the published part: up to where, what the entries up to there amount to, and whether our keys
    /// vouch for any of it.
    fn published(&self, keys: &VerifierKeys) -> Result<Trusted, ScanError> {
        let (folder, files) = (&self.config.folder, self.files);
        let published = marks::read_published(folder, files)?;
        let Some((_, published)) = published else { return Ok(Trusted::default()) };
        let source = Folder::source(folder, files);
        let mut history = History::new(&source, keys, None);
        history.expect(history::kept_sizes(&*source)?);
        // What the record says counts, whatever was made of the file.
        let minimum = match verifier::recorded_minimum(folder, files) {
            Ok(recorded) if minimum::load(folder, files).is_ok_and(|there| Minimum::check(there, recorded).is_ok()) => {
                minimum::load(folder, files)?
            }
            Ok(recorded) => recorded,
            Err(_) => minimum::load(folder, files)?,
        };
        if let Some(minimum) = minimum {
            let begin = begin_of(&source, minimum, published.head.size)?;
            history.begin(begin, published.head.size)?;
        }
        match history.run(&published, |_| ()) {
            Ok(()) | Err(ScanError::Damaged(_)) => {}
            Err(error) => return Err(error),
        }
        let vouched = history.vouched;
        Ok(history.trusted.map_or_else(Trusted::default, |(head, rules)| Trusted { head, rules, vouched }))
    }

    /// What of the old chain follows from whole entries under good signatures, for which our keys vouch.
    fn trusted(&self, keys: &VerifierKeys) -> Result<Trusted, AcceptError> {
        let mut trusted = match self.published(keys) {
            Ok(published) => published,
            Err(ScanError::Damaged(_)) => Trusted::default(),
            Err(error) => return Err(AcceptError::Scan(error)),
        };
        let scanned = Scan::open(&self.config.folder, self.files).and_then(|mut scan| {
            if scan.start.size == trusted.head.size {
                scan.rules = trusted.rules.clone();
            } else if scan.start.size > trusted.head.size {
                return Ok(());
            }
            while let Some(batch) = scan.next()? {
                if batch.signers.origin() != keys.origin()
                    || batch.checkpoint.check(&batch.signers, &Signatures).is_err()
                {
                    break;
                }
                trusted.vouched |= *batch.signers == *keys;
                if batch.checkpoint.head.size >= trusted.head.size {
                    (trusted.head, trusted.rules) = (batch.checkpoint.head, scan.rules.clone());
                }
            }
            Ok(())
        });
        match scanned {
            Ok(()) | Err(ScanError::Damaged(_)) => {}
            Err(error) => return Err(AcceptError::Scan(error)),
        }
        Ok(if trusted.vouched { trusted } else { Trusted::default() })
    }

    /// What the new chain says of the old one. What a crash left of the keys of erased sessions is destroyed: the new chain
    /// knows nothing of them.
    fn before(
        &self,
        keys: &VerifierKeys,
        reason: String,
        vault: &Arc<VaultKey>,
        random: &dyn Random,
    ) -> Result<Before, AcceptError> {
        let Trusted { head: Head { size, root }, rules, .. } = self.trusted(keys)?;
        let old = Vault::new(&self.config.vault, Arc::clone(vault), Arc::clone(self.files));
        old.destroy_all(rules.erased(), random).map_err(io("destroying the key of an erased session"))?;
        // What cannot be read any more has used up numbers as well.
        let used = rules.used().after(self.promised(keys, &rules).saturating_sub(size));
        let follows = Follows { origin: keys.origin().to_owned(), size, root, reason, used };
        Ok(Before { follows, heritage: self.heritage(size, rules.standing()) })
    }

    /// What stood on the old chain, as far as it can be trusted, and stands on; with the text of the law, which the new one could not
    /// find anywhere else. A law whose text cannot be read any more is inherited without it.
    fn heritage(&self, size: u64, standing: &Standing) -> Vec<Fact> {
        let text = standing.operators().law().and_then(|law| self.document(size, law.constitution));
        let documents = text.iter().flat_map(|text| Fact::document(text));
        documents.chain(standing.heritage().into_iter().map(Fact::Inherited)).collect()
    }

    /// A document among the entries of the old chain before `size`, as the journal leads to them or as they were published.
    fn document(&self, size: u64, wanted: Digest) -> Option<Vec<u8>> {
        let (folder, files) = (&self.config.folder, self.files);
        let read = read(folder, files).up_to(size).map_while(Result::ok);
        let mut parts = Wanted::new(wanted);
        if let Some(text) = read.map(|stored| stored.entry.fact).find_map(|fact| parts.take(fact)) {
            return Some(text);
        }
        let (_, published) = marks::read_published(folder, files).ok().flatten()?;
        let published = Published::in_folder(folder, files, published.head.size);
        let first = minimum::index_of(folder, files).unwrap_or(0) / WIDTH;
        let bundles = (first..published.size().div_ceil(WIDTH)).map(|bundle| bundle.saturating_mul(WIDTH));
        let entries = bundles.filter_map(|from| published.entries(from).ok()).flatten();
        let entries = entries.map(|(entry, _)| entry).filter(|entry| entry.seq.0 < size);
        let mut parts = Wanted::new(wanted);
        entries.map(|entry| entry.fact).find_map(|fact| parts.take(fact))
    }

    /// How many entries the old chain had at least, as far as its marks can still be read.
    fn promised(&self, keys: &VerifierKeys, rules: &Rules) -> u64 {
        let pinned = marks::load_head(&self.config.head, &**self.files).ok().flatten();
        let pinned = pinned.filter(|pinned| pinned.origin == keys.origin()).map(|pinned| pinned.head.size);
        let published = marks::read_published(&self.config.folder, self.files).ok().flatten();
        let known = [Some(keys), rules.keys().map(|keys| &**keys), rules.signers().map(|keys| &**keys)];
        let counts =
            |published: &Checkpoint| known.into_iter().flatten().any(|keys| published.check(keys, &Signatures).is_ok());
        let published = published.filter(|(_, published)| counts(published));
        pinned.max(published.map(|(_, published)| published.head.size)).unwrap_or(0)
    }

    /// A place that was made ready and not swapped in completely.
    fn interrupted(&self) -> Result<Option<PathBuf>, AcceptError> {
        for number in self.numbers()?.into_iter().rev() {
            let place = self.quarantine.join(number.to_string());
            let left = folder::list(&**self.files, &place.join("new")).map_err(io("reading the quarantine"))?;
            if !left.is_empty() {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn free(&self) -> Result<PathBuf, AcceptError> {
        let last = self.numbers()?.last().copied().unwrap_or(0);
        Ok(self.quarantine.join(last.saturating_add(1).to_string()))
    }

    fn numbers(&self) -> Result<Vec<u64>, AcceptError> {
        let names = folder::list(&**self.files, &self.quarantine).map_err(io("reading the quarantine"))?;
        let mut numbers: Vec<_> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Where the new chain is made ready. The vault stays where it is: it still opens what the old chain holds.
    fn staged(&self, place: &Path) -> Config {
        let draft = place.join("draft");
        Config { folder: draft.join("chain"), head: draft.join("head"), ..self.config.clone() }
    }

    fn stage(
        &self,
        place: &Path,
        world: World<'_>,
        vault: Arc<VaultKey>,
        version: &str,
        (old, before): (&VerifierKeys, Before),
    ) -> Result<(), AcceptError> {
        let (files, draft) = (&**self.files, place.join("draft"));
        files.create_folder(&world.config.folder).map_err(io("making the new chain"))?;
        let keys = SigningKeys::generate(&*world.random);
        keys.save_with(&draft.join("signing"), files, &self.signing.protection, &*world.random)?;
        let (mut writer, _) = open::open(world, keys.into(), vault, version, Some(before))?;
        writer.stop_at_once().map_err(OpenError::from)?;
        let kept = durable::replace(files, &place.join(PUBLIC), old.to_string().as_bytes());
        kept.map_err(io("keeping the old public keys"))?;
        self.keep(&self.config.head, &place.join("head"))?;
        self.shift(&draft, &place.join("new"))?;
        [place, &self.quarantine, durable::parent(&self.quarantine)]
            .iter()
            .try_for_each(|folder| files.sync_folder(folder))
            .map_err(io("making the new chain"))
    }

    /// Keeps a copy of a small file.
    fn keep(&self, from: &Path, to: &Path) -> Result<(), AcceptError> {
        let copy = || match folder::read_whole(&**self.files, from, 1 << 20)? {
            Some(bytes) => durable::replace(&**self.files, to, &bytes),
            None => Ok(()),
        };
        copy().map_err(io("keeping a copy of the old head"))
    }

    /// Each step leaves the home unopenable until the last is done.
    fn swap(&self, place: &Path) -> Result<(), AcceptError> {
        let new = place.join("new");
        let left = folder::list(&**self.files, &new).map_err(io("reading the quarantine"))?;
        let has = |name: &str| left.iter().any(|left| left == Path::new(name));
        if has("head") {
            self.shift(&new.join("head"), &self.config.head)?;
        }
        if has("chain") {
            let (contents, kept) = (self.config.vault.join("content"), place.join("content"));
            if self.exists(&contents)? && !self.exists(&kept)? {
                self.shift(&contents, &kept)?;
            }
            let aside = place.join("chain");
            if self.exists(&self.config.folder)? && !self.exists(&aside)? {
                self.shift(&self.config.folder, &aside)?;
            }
            self.shift(&new.join("chain"), &self.config.folder)?;
        }
        if has("signing") {
            let old = folder::open_existing(&**self.files, &self.signing.path, Open::Write);
            let old = old.map_err(io("opening the old signing keys"))?;
            self.shift(&new.join("signing"), &self.signing.path)?;
            // The old chain is never signed again, and its seeds could only forge it.
            old.map_or(Ok(()), |old| durable::blank(&*old)).map_err(io("destroying the old signing keys"))?;
        }
        Ok(())
    }

    fn exists(&self, folder: &Path) -> Result<bool, AcceptError> {
        match self.files.list(folder) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(io("reading the old chain")(error)),
        }
    }

    /// Renames, and waits until both folders have it on the disk.
    fn shift(&self, from: &Path, to: &Path) -> Result<(), AcceptError> {
        let shift = || {
            self.files.rename(from, to)?;
            self.files.sync_folder(durable::parent(to))?;
            self.files.sync_folder(durable::parent(from))
        };
        shift().map_err(io("moving the chains"))
    }

    fn read_follows(&self) -> Result<Follows, AcceptError> {
        let first = read(&self.config.folder, self.files).next();
        match first.and_then(Result::ok).map(|stored| stored.entry.fact) {
            Some(Fact::Origin { follows: Some(follows), .. }) => Ok(follows),
            _ => Err(io("reading the new chain")(io::ErrorKind::InvalidData.into())),
        }
    }
}

fn io(doing: &'static str) -> impl FnOnce(io::Error) -> AcceptError {
    move |source| AcceptError::Io { doing, source }
}
