//! Entry bundles (C2SP tlog-tiles): up to 256 entries, each after its length in two bytes, big-endian.

/// The entries of a bundle, if it holds exactly `width`, whole, and nothing else.
#[must_use]
pub fn parse(bytes: &[u8], width: u16) -> Option<Vec<&[u8]>> {
    let mut entries = Vec::with_capacity(usize::from(width));
    let mut rest = bytes;
    while !rest.is_empty() {
        let (entry, after) = take(rest)?;
        entries.push(entry);
        rest = after;
    }
    (entries.len() == usize::from(width)).then_some(entries)
}

/// Takes the first entry off.
#[must_use]
pub fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// Adds an entry at the end; nothing is added if it is longer than two bytes can say.
pub fn push(bundle: &mut Vec<u8>, entry: &[u8]) -> Option<()> {
    let length = u16::try_from(entry.len()).ok()?;
    bundle.extend_from_slice(&length.to_be_bytes());
    bundle.extend_from_slice(entry);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_reads_back_and_nothing_less_or_more_is_one() {
        let entries: [&[u8]; 3] = [b"first", b"", &[7; 65_535]];
        let mut bytes = Vec::new();
        for entry in entries {
            push(&mut bytes, entry).unwrap();
        }
        assert_eq!(parse(&bytes, 3).unwrap(), entries);
        assert!(parse(&bytes, 2).is_none() && parse(&bytes, 4).is_none());
        for cut in [1, 2, 6, 8, 9, bytes.len() - 1] {
            assert!(parse(bytes.get(..cut).unwrap(), 3).is_none(), "cut at {cut}");
        }
        assert!(parse(bytes.get(..6).unwrap(), 1).is_none());
        assert!(push(&mut bytes, &[0; 65_536]).is_none());
        assert_eq!(parse(&[], 0), Some(vec![]));
    }
}
