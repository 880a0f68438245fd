//! The minimum index of a pruned log (C2SP tlog-tiles, "Pruning"): the first entry it still has.
//!
//! `chain/minimum` says it in the open, with the place of the pruning on the record that allows it: two decimal numbers, one a
//! line. It follows from the record, so a file that says less than that is only late, and one that says more is forged.

use std::{io, path::Path};

use ephor_base::{Seq, files::Files};
use ephor_tlog::tile::WIDTH;
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{
    damage::{Damage, ScanError},
    durable,
    entry::Entry,
    marks,
    pruning::Pruning,
    record::Fact,
    rules::Rules,
};

/// The name of the file, below the folder of the chain.
pub(crate) const NAME: &str = "minimum";

/// Two numbers of twenty digits, and their line ends.
const MOST: usize = 42;

/// Where a log begins that was pruned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Minimum {
    /// The first entry that is still there; a multiple of 256, and not 0.
    #[n(0)]
    pub index: u64,
    /// The pruning that moved it there: its first part.
    #[n(1)]
    pub record: Seq,
}

impl Minimum {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        format!("{}\n{}\n", self.index, self.record).into_bytes()
    }

    /// What `Minimum::to_bytes` wrote, and nothing else.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (index, record) = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split_once('\n')?;
        let minimum = Self { index: index.parse().ok()?, record: Seq(record.parse().ok()?) };
        let Self { index, record } = minimum;
        let sound = index > 0 && index.is_multiple_of(WIDTH) && record.0 >= index;
        (sound && minimum.to_bytes() == bytes).then_some(minimum)
    }

    /// What is published in the folder of a chain. Whether the record allows it is not looked at here.
    ///
    /// # Errors
    /// [`ScanError`] if the file is there and cannot be read.
    pub fn load(chain: &Path, files: &dyn Files) -> Result<Option<Self>, ScanError> {
        let path = chain.join(NAME);
        let damaged = || finding("it cannot be read");
        match durable::read_whole(files, &path, MOST) {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => Self::parse(&bytes).map(Some).ok_or_else(damaged),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(damaged()),
            Err(source) => Err(ScanError::Io { path, source }),
        }
    }

    /// The first entry that is still there, pruned or not.
    pub(crate) fn index_of(chain: &Path, files: &dyn Files) -> Result<u64, ScanError> {
        Ok(Self::load(chain, files)?.map_or(0, |minimum| minimum.index))
    }

    /// Holds what is published against what the record says.
    pub(crate) fn check(published: Option<Self>, recorded: Option<Self>) -> Result<(), ScanError> {
        let Some(published) = published else { return Ok(()) };
        let Some(recorded) = recorded else { return Err(finding("no pruning is on the record")) };
        if published.index > recorded.index {
            return Err(finding("the last pruning on the record is of fewer entries"));
        }
        if published.index == recorded.index && published.record != recorded.record {
            return Err(finding("the pruning on the record stands in another place"));
        }
        Ok(())
    }

    /// What the record says of where the log begins. `entries` are those from the record on.
    pub(crate) fn begin(self, entries: impl Iterator<Item = Result<Entry, ScanError>>) -> Result<Begin, ScanError> {
        let mut parts: Vec<Pruning> = Vec::new();
        for entry in entries {
            let Fact::Prune(pruning) = entry?.fact else { break };
            let of = pruning.state.of as usize;
            parts.push(pruning);
            if parts.len() >= of {
                break;
            }
        }
        let Some(first) = parts.first().filter(|first| first.minimum == self.index) else {
            return Err(finding("the record has no such pruning where it says"));
        };
        let before = first.newest;
        let rules = Rules::from_pruning(&parts).map_err(finding)?;
        Ok(Begin { minimum: self, before, rules })
    }
}

/// Something wrong with the file.
pub(crate) fn finding(what: &'static str) -> ScanError {
    marks::finding(NAME, 0, None, Damage::Minimum(what))
}

/// What is known where a pruned log begins.
#[derive(Clone, Debug)]
pub(crate) struct Begin {
    pub(crate) minimum: Minimum,
    /// The time of the last entry that was pruned.
    pub(crate) before: ephor_base::Timestamp,
    /// What the entries that were pruned amount to.
    pub(crate) rules: Rules,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_reads_back_and_no_other_form_is_one() {
        let minimum = Minimum { index: 512, record: Seq(9000) };
        assert_eq!(Minimum::parse(&minimum.to_bytes()), Some(minimum));
        for other in [
            "",
            "512\n",
            "512\n9000",
            "0512\n9000\n",
            "512\n9000\n\n",
            "0\n9000\n",
            "513\n9000\n",
            "512\n511\n",
            "+512\n9000\n",
        ] {
            assert_eq!(Minimum::parse(other.as_bytes()), None, "{other:?}");
        }
    }
}
