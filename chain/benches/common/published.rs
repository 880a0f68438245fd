//! A published log of any size, written by the format and not by the crate: millions of entries need seconds then, and not
//! minutes. An empty segment stands where the journal would go on.

use std::path::{Path, PathBuf};

use ephor_base::{Seq, Timestamp};
use ephor_record::{Entry, Fact, entry::ENTRY_VERSION};
use ephor_tlog::VerifierKeys;

use crate::{
    common::{SystemRandom, record},
    forge::{self, Forge, Tiles},
};

/// Writes a log of `size` entries of the usual length; gives its keys.
pub(crate) fn write(chain: &Path, size: u64) -> VerifierKeys {
    let forge = Forge::new(&SystemRandom);
    let [ed25519, ml_dsa_65] = forge.lines();
    let keys = format!("{ed25519}\n{ml_dsa_65}\n");
    let mut tiles = Tiles::new(|path: PathBuf, bytes: &[u8]| forge::write(&chain.join(path), bytes));
    let boot = Fact::Boot { number: 1, version: "bench".into(), clean: true, trimmed_bytes: 0, vault: None };
    let first = [Fact::Origin { ed25519, ml_dsa_65, follows: None }, boot];
    for seq in 0..size {
        let mut record = record(0, seq, false);
        if let Some(fact) = first.get(usize::try_from(seq).unwrap()) {
            record.fact = fact.clone();
        }
        // Like the numbers, it takes the same room whatever it is.
        let (version, time) = (ENTRY_VERSION, Timestamp((1 << 40) + seq));
        let entry = Entry { version, seq: Seq(seq), time, subject: record.subject, fact: record.fact, content: None };
        tiles.push(&entry.to_bytes());
    }
    let head = tiles.finish();
    forge::write(&chain.join("checkpoint"), &forge.checkpoint(head));
    let segment = forge.segment(head, &[], &[], &[]);
    // Only the header: a log may stop right behind the beginning of a segment.
    forge::write(&chain.join(format!("journal/{size:020}.seg")), segment.get(..128).unwrap());
    keys.parse().unwrap()
}
