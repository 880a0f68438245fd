//! The other side: a log that asks a witness for its cosignature.

use ephor_base::Digest;
use ephor_signatures::Signatures;
use ephor_tlog::{
    Cosignature, CosignatureFault, CosignerKey, Head, Note, SignatureLine,
    checkpoint::known::{decimal, read_text},
};

use super::{SIZE_TYPE, request};

/// One checkpoint that is submitted to one witness. It goes out as the body of `POST <submission prefix>/add-checkpoint`.
#[derive(Clone, Debug)]
pub struct Submission {
    note: Note,
    head: Head,
    old: u64,
    path: Vec<Digest>,
}

/// What a witness added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cosigned {
    /// The signature lines of known keys, all of which hold. They can stand below the log's own on its checkpoint.
    pub lines: Vec<SignatureLine>,
    /// What they say, in the same order.
    pub said: Vec<Cosignature>,
}

/// A witness did not cosign, or not in a way that counts. The checkpoint is as good as before.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SubmissionError {
    /// The note is no checkpoint, the old size is beyond it, or the proof has more than 63 hashes. The caller's bug.
    #[error("this cannot be submitted: {0}")]
    Unfit(&'static str),
    /// The witness has seen another size: try again with a proof from there (409).
    #[error("the witness has seen `{seen}` entries; submit a proof from there")]
    Retry {
        /// The size to begin the proof at.
        seen: u64,
    },
    /// The witness has seen more than is submitted (409): this node was cut back, or another one has its keys.
    #[error("the witness has already seen `{seen}` entries of this log, more than the `{ours}` that are submitted")]
    Ahead {
        /// What the witness has seen.
        seen: u64,
        /// What was submitted.
        ours: u64,
    },
    /// The witness could not read the request (400). A bug on one side.
    #[error("the witness calls the request malformed")]
    Malformed,
    /// The witness does not accept the log's signatures (403): it has other keys of this log.
    #[error("the witness does not accept the signatures of this log")]
    Signatures,
    /// The witness does not know the log (404).
    #[error("the witness does not know this log")]
    UnknownLog,
    /// The witness says that this log does not continue what it saw (422). If the proof is right, the log has two histories.
    #[error("the witness says that this log does not continue the one it saw")]
    Inconsistent,
    /// Any other status. The witness's fault, or that of something before it.
    #[error("the witness answered with status `{0}`")]
    Status(u16),
    /// The answer is not one of this protocol. The witness's fault.
    #[error("the witness's answer cannot be read")]
    Answer,
    /// A cosignature of a known key does not hold. The witness's fault.
    #[error(transparent)]
    Cosignature(#[from] CosignatureFault),
    /// No key of this witness has cosigned with a time.
    #[error("the answer holds no cosignature of a key that is known")]
    NoCosignature,
}

impl Submission {
    /// The checkpoint, the size the witness is thought to have seen last (0 if unknown), and the proof of consistency from
    /// there, which is empty for 0 and for the same size.
    ///
    /// # Errors
    /// [`SubmissionError::Unfit`] if no witness could take it.
    pub fn new(checkpoint: &[u8], old: u64, path: Vec<Digest>) -> Result<Self, SubmissionError> {
        let note = Note::parse(checkpoint).map_err(|_| SubmissionError::Unfit("it is no signed note"))?;
        let (_, head, _) = read_text(&note.text).ok_or(SubmissionError::Unfit("it is no checkpoint"))?;
        if old > head.size {
            return Err(SubmissionError::Unfit("the old size is beyond it"));
        }
        if path.len() > request::MAX_LINES {
            return Err(SubmissionError::Unfit("the proof has more than 63 hashes"));
        }
        Ok(Self { note, head, old, path })
    }

    /// The body of the request.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        request::write(self.old, &self.path, &self.note)
    }

    /// Reads the answer of the witness with these keys.
    ///
    /// # Errors
    /// [`SubmissionError`] for every answer but cosignatures that hold.
    pub fn read_answer(
        &self,
        status: u16,
        content_type: &str,
        body: &[u8],
        witness: &[CosignerKey],
    ) -> Result<Cosigned, SubmissionError> {
        match status {
            200 => self.read_cosignatures(body, witness),
            400 => Err(SubmissionError::Malformed),
            403 => Err(SubmissionError::Signatures),
            404 => Err(SubmissionError::UnknownLog),
            409 => Err(self.read_size(content_type, body).unwrap_or(SubmissionError::Answer)),
            422 => Err(SubmissionError::Inconsistent),
            other => Err(SubmissionError::Status(other)),
        }
    }

    fn read_cosignatures(&self, body: &[u8], witness: &[CosignerKey]) -> Result<Cosigned, SubmissionError> {
        let text = std::str::from_utf8(body).map_err(|_| SubmissionError::Answer)?;
        let all = SignatureLine::parse_all(text).map_err(|_| SubmissionError::Answer)?;
        let mut cosigned = Cosigned { lines: Vec::new(), said: Vec::new() };
        for line in all {
            let said = witness.iter().find_map(|key| key.check(&self.note.text, &line, &Signatures).transpose());
            // Without a time it does not say that nothing larger was seen.
            if let Some(said) = said.transpose()?.filter(|said| said.seconds > 0) {
                cosigned.lines.push(line);
                cosigned.said.push(said);
            }
        }
        if cosigned.lines.is_empty() { Err(SubmissionError::NoCosignature) } else { Ok(cosigned) }
    }

    fn read_size(&self, content_type: &str, body: &[u8]) -> Option<SubmissionError> {
        let seen = decimal(std::str::from_utf8(body).ok()?.strip_suffix('\n')?)?;
        let typed = content_type.split(';').next().is_some_and(|kind| kind.trim() == SIZE_TYPE);
        let ours = self.head.size;
        match (typed, seen > ours, seen == self.old) {
            (false, ..) | (true, false, true) => None,
            (true, true, _) => Some(SubmissionError::Ahead { seen, ours }),
            (true, false, false) => Some(SubmissionError::Retry { seen }),
        }
    }
}
