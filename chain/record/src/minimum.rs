//! The minimum index of a pruned log (C2SP tlog-tiles, "Pruning"): the first entry it still has.
//!
//! `chain/minimum` says it in the open, with the place of the pruning on the record that allows it: two decimal numbers, one a
//! line. It follows from the record, so a file that says less than that is only late, and one that says more is forged.

use ephor_base::{Seq, Timestamp};
use ephor_tlog::tile::WIDTH;
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{damage::ScanError, entry::Entry, fact::Fact, pruning::Pruning, rules::Rules};

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
    /// The name of the file, below the folder of the chain.
    pub const FILE: &str = "minimum";
    /// The most bytes the file has: two numbers of twenty digits, and their line ends.
    pub const MAX_BYTES: usize = 42;

    /// The file: two decimal numbers, one a line.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
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

    /// Holds what is published against what the record says.
    ///
    /// # Errors
    /// A finding in the file, if it says more than the record.
    pub fn check(published: Option<Self>, recorded: Option<Self>) -> Result<(), ScanError> {
        let Some(published) = published else { return Ok(()) };
        let Some(recorded) = recorded else { return Err(ScanError::minimum("no pruning is on the record")) };
        if published.index > recorded.index {
            return Err(ScanError::minimum("the last pruning on the record is of fewer entries"));
        }
        if published.index == recorded.index && published.record != recorded.record {
            return Err(ScanError::minimum("the pruning on the record stands in another place"));
        }
        Ok(())
    }

    /// What the record says of where the log begins. `entries` are those from the record on.
    ///
    /// # Errors
    /// A finding in the file, if the record has no such pruning; else what reading the entries said.
    pub fn begin(self, entries: impl Iterator<Item = Result<Entry, ScanError>>) -> Result<Begin, ScanError> {
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
            return Err(ScanError::minimum("the record has no such pruning where it says"));
        };
        let before = first.newest;
        let rules = Rules::from_pruning(&parts).map_err(ScanError::minimum)?;
        Ok(Begin { minimum: self, before, rules })
    }
}

/// What is known where a pruned log begins.
#[derive(Clone, Debug)]
pub struct Begin {
    /// Where.
    pub minimum: Minimum,
    /// The time of the last entry that was pruned.
    pub before: Timestamp,
    /// What the entries that were pruned amount to.
    pub rules: Rules,
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
