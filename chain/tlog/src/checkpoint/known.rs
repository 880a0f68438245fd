//! Logs of other owners: as a witness, a peer, or an auditor with one proof in the hand knows them.
//!
//! The rules are those of C2SP signed-note: lines of unknown keys say nothing and are passed over, so that witnesses can
//! add theirs; a line of a known key must hold; and each key of the log must have signed.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ephor_base::Digest;

use super::{
    Head,
    keys::{ED25519_TYPE, ML_DSA_65_IDENTIFIER, OTHER_TYPE, VerifierKeys},
};
use crate::{
    note::{self, Note, SignatureLine},
    signature::{Algorithm, Checks, PublicKey},
};

/// The longest origin line: a cosignature has one byte for its length.
pub const MAX_ORIGIN_BYTES: usize = 255;

/// A note verifier key of a log: Ed25519 (type 0x01) or ML-DSA-65 (type 0xff with our identifier).
#[derive(Clone, Debug)]
pub struct LogKey {
    line: String,
    name: String,
    id: [u8; 4],
    key: PublicKey,
}

/// A text that is not a verifier key of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a log's key is one line `name+keyid+base64`, for Ed25519 or ML-DSA-65")]
pub struct NotALogKey;

impl FromStr for LogKey {
    type Err = NotALogKey;
    fn from_str(text: &str) -> Result<Self, NotALogKey> {
        let (name, typed) = note::parse_verifier_key(text).ok_or(NotALogKey)?;
        let (kind, rest) = typed.split_first().ok_or(NotALogKey)?;
        let key = match (*kind, rest.strip_prefix(ML_DSA_65_IDENTIFIER)) {
            (ED25519_TYPE, _) => PublicKey::new(Algorithm::Ed25519, rest),
            (OTHER_TYPE, Some(key)) => PublicKey::new(Algorithm::MlDsa65, key),
            _ => None,
        };
        let key = key.ok_or(NotALogKey)?;
        Ok(Self { line: text.to_owned(), name: name.to_owned(), id: note::key_id(name, &typed), key })
    }
}

impl fmt::Display for LogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl LogKey {
    fn made(&self, line: &SignatureLine) -> bool {
        line.name == self.name && line.id == self.id
    }

    fn check(&self, note: &Note, checks: &dyn Checks) -> Result<(), NoteFault> {
        let algorithm = self.key.algorithm();
        let mut lines = note.signatures.iter().filter(|line| self.made(line)).peekable();
        if lines.peek().is_none() {
            return Err(NoteFault::Missing(algorithm));
        }
        let all = lines.all(|line| self.key.accepts(note.text.as_bytes(), &line.signature, checks));
        if all { Ok(()) } else { Err(NoteFault::Wrong(algorithm)) }
    }
}

/// What is wrong with a checkpoint of a known log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoteFault {
    /// It is no checkpoint (C2SP tlog-checkpoint), or not one of this log.
    #[error("it is not a checkpoint of this log")]
    Text,
    /// A key of the log has not signed it.
    #[error("it has no {0} signature of the log")]
    Missing(Algorithm),
    /// A signature line is that of a key of the log and does not hold.
    #[error("its {0} signature is wrong")]
    Wrong(Algorithm),
}

/// A log: its origin line, and the keys that must all have signed its checkpoints.
#[derive(Clone, Debug)]
pub struct KnownLog {
    origin: String,
    keys: Vec<LogKey>,
    extensions: bool,
}

impl KnownLog {
    /// A log of Ephor. Its checkpoints have three lines and must carry both signatures.
    ///
    /// # Errors
    /// [`NotALogKey`] never for keys that were read or made as [`VerifierKeys`].
    pub fn of(keys: &VerifierKeys) -> Result<Self, NotALogKey> {
        let both = vec![keys.ed25519().parse()?, keys.ml_dsa_65().parse()?];
        Ok(Self { origin: keys.origin().to_owned(), keys: both, extensions: false })
    }

    /// Any log with C2SP checkpoints, by its origin line and one key. Extension lines are passed over.
    ///
    /// # Errors
    /// [`NotALogKey`] if the origin is empty, has a line feed or more than 255 bytes.
    pub fn plain(origin: &str, key: LogKey) -> Result<Self, NotALogKey> {
        let fits = !origin.is_empty() && origin.len() <= MAX_ORIGIN_BYTES && !origin.contains('\n');
        let log = Self { origin: origin.to_owned(), keys: vec![key], extensions: true };
        if fits { Ok(log) } else { Err(NotALogKey) }
    }

    /// The origin line.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Checks a checkpoint of this log and says what it states.
    ///
    /// # Errors
    /// [`NoteFault`] says what is wrong.
    pub fn check(&self, note: &Note, checks: &dyn Checks) -> Result<Head, NoteFault> {
        let (origin, head, extended) = read_text(&note.text).ok_or(NoteFault::Text)?;
        if origin != self.origin || (extended && !self.extensions) {
            return Err(NoteFault::Text);
        }
        // A wrong signature says more than a missing one.
        let faults: Vec<_> = self.keys.iter().filter_map(|key| key.check(note, checks).err()).collect();
        let worst = faults.iter().find(|fault| matches!(fault, NoteFault::Wrong(_))).or(faults.first());
        worst.map_or(Ok(head), |fault| Err(*fault))
    }

    /// Whether a key of this log made the line, by its name and id.
    pub fn made(&self, line: &SignatureLine) -> bool {
        self.keys.iter().any(|key| key.made(line))
    }
}

/// Checks a checkpoint against all that is known of its log. A log that has changed its keys is known several times.
pub fn check_any<'a>(
    logs: impl Iterator<Item = &'a KnownLog>,
    note: &Note,
    checks: &dyn Checks,
) -> Option<Result<Head, NoteFault>> {
    let (origin, ..) = read_text(&note.text)?;
    let mut last = None;
    for log in logs.filter(|log| log.origin == origin) {
        match log.check(note, checks) {
            Ok(head) => return Some(Ok(head)),
            Err(fault) => last = last.filter(|last| matches!(last, NoteFault::Wrong(_))).or(Some(fault)),
        }
    }
    last.map(Err)
}

/// Origin and head of the text of a checkpoint, and whether extension lines follow.
pub fn read_text(text: &str) -> Option<(&str, Head, bool)> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    let (origin, size, root) = (lines.next()?, decimal(lines.next()?)?, hash(lines.next()?)?);
    let rest: Vec<_> = lines.collect();
    let whole = !origin.is_empty() && rest.iter().all(|line| !line.is_empty());
    whole.then_some((origin, Head { size, root }, !rest.is_empty()))
}

/// A number in the one form: without sign and leading zeros.
pub fn decimal(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

/// 32 bytes in the one form of base64.
pub fn hash(text: &str) -> Option<Digest> {
    BASE64.decode(text).ok()?.try_into().ok().map(Digest)
}

/// The line of a hash, with its line feed.
pub fn write_hash(hash: &Digest, into: &mut String) {
    BASE64.encode_string(hash.0, into);
    into.push('\n');
}
