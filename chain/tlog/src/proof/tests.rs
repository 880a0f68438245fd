//! Proofs against the definition of RFC 6962, and every way to make them wrong.

use std::convert::Infallible;

use super::*;
use crate::tree::leaf_hash;

/// The largest log that is gone through whole.
const MOST: usize = 130;

/// RFC 6962, section 2.1, word for word.
fn mth(leaves: &[Digest]) -> Digest {
    match leaves {
        [] => Digest::of(&[]),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
            join(&mth(left), &mth(right))
        }
    }
}

/// RFC 6962, section 2.1.1, word for word.
fn path(m: usize, leaves: &[Digest]) -> Vec<Digest> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let k = leaves.len().next_power_of_two() / 2;
    let (left, right) = leaves.split_at(k);
    let (mut way, last) = if m < k { (path(m, left), mth(right)) } else { (path(m - k, right), mth(left)) };
    way.push(last);
    way
}

/// RFC 6962, section 2.1.2, word for word.
fn subproof(m: usize, leaves: &[Digest], known: bool) -> Vec<Digest> {
    if m == leaves.len() {
        return if known { Vec::new() } else { vec![mth(leaves)] };
    }
    let k = leaves.len().next_power_of_two() / 2;
    let (left, right) = leaves.split_at(k);
    let (mut way, last) =
        if m <= k { (subproof(m, left, known), mth(right)) } else { (subproof(m - k, right, false), mth(left)) };
    way.push(last);
    way
}

struct Leaves(Vec<Digest>);

impl Subtrees for Leaves {
    type Error = Infallible;
    fn subtree(&mut self, level: u8, index: u64) -> Result<Digest, Infallible> {
        let (length, index) = (1usize << level, usize::try_from(index).unwrap());
        Ok(mth(&self.0[index * length..(index + 1) * length]))
    }
}

/// Tiles made from the leaves, partial ones as they are at the size of the log.
struct Tiled<'a>(&'a [Digest], bool);

impl ReadTile for Tiled<'_> {
    type Error = Infallible;
    fn tile(&mut self, level: u8, index: u64, width: u16) -> Result<Vec<u8>, Infallible> {
        let (each, first) = (256usize.pow(level.into()), usize::try_from(index).unwrap() * 256);
        let width = if self.1 { ((self.0.len() / each) - first).min(256) } else { width.into() };
        let hash = |n| mth(&self.0[(first + n) * each..(first + n + 1) * each]).0;
        Ok((0..width).flat_map(hash).collect())
    }
}

fn leaves(count: usize) -> Vec<Digest> {
    (0..count).map(|n| leaf_hash(&n.to_be_bytes())).collect()
}

fn head(leaves: &[Digest]) -> Head {
    Head { size: leaves.len() as u64, root: mth(leaves) }
}

/// Every list of hashes that differs from this one a little.
fn spoilt(path: &[Digest]) -> Vec<Vec<Digest>> {
    let mut all = vec![[path, &[Digest([0; 32])]].concat(), [&[Digest([0; 32])], path].concat()];
    for at in 0..path.len() {
        all.push([&path[..at], &path[at + 1..]].concat());
        let mut other = path.to_vec();
        other.insert(at, path[at]);
        all.push(other);
        if at > 0 {
            let mut swapped = path.to_vec();
            swapped.swap(at - 1, at);
            all.push(swapped);
        }
    }
    all.retain(|other| other != path);
    all
}

/// The list with one bit changed, for every bit.
fn flipped(path: &[Digest]) -> impl Iterator<Item = Vec<Digest>> {
    (0..path.len() * 256).map(move |bit| {
        let mut other = path.to_vec();
        other[bit / 256].0[bit % 256 / 8] ^= 1 << (bit % 8);
        other
    })
}

#[test]
fn a_proof_of_inclusion_is_that_of_the_definition_and_proves_this_entry_in_this_place_alone() {
    let all = leaves(MOST);
    for size in 1..=MOST {
        let (log, head) = (&all[..size], head(&all[..size]));
        for (index, leaf) in log.iter().enumerate() {
            let at = index as u64;
            let made = inclusion(&mut Leaves(log.to_vec()), at, head.size).unwrap();
            assert_eq!(made, path(index, log), "{index} of {size}");
            check_inclusion(*leaf, at, &made, head).unwrap();
            for other in (0..size as u64 + 2).filter(|other| *other != at) {
                assert!(check_inclusion(*leaf, other, &made, head).is_err(), "{index} as {other} of {size}");
            }
            for other in spoilt(&made) {
                assert!(check_inclusion(*leaf, at, &other, head).is_err(), "{index} of {size}: {other:?}");
            }
            assert_eq!(check_inclusion(Digest([7; 32]), at, &made, head), Err(ProofError::Root));
        }
    }
}

#[test]
fn a_proof_of_inclusion_holds_for_no_other_size_of_another_shape() {
    // RFC 6962 gives some sizes the same path for an entry; the root is then what tells them apart.
    let all = leaves(MOST);
    let heads: Vec<_> = (0..=MOST).map(|size| head(&all[..size])).collect();
    for size in 1..=MOST {
        for (index, leaf) in all.iter().enumerate().take(size) {
            let made = path(index, &all[..size]);
            for other in (1..=MOST).filter(|other| *other != size) {
                assert!(check_inclusion(*leaf, index as u64, &made, heads[other]).is_err());
            }
        }
    }
}

#[test]
fn a_proof_of_consistency_is_that_of_the_definition_and_holds_for_these_two_alone() {
    let all = leaves(MOST);
    let heads: Vec<_> = (0..=MOST).map(|size| head(&all[..size])).collect();
    for new in 0..=MOST {
        for old in 0..=new {
            let made = consistency(&mut Leaves(all[..new].to_vec()), old as u64, new as u64).unwrap();
            let defined = if old == 0 { Vec::new() } else { subproof(old, &all[..new], true) };
            assert_eq!(made, defined, "{old} to {new}");
            check_consistency(heads[old], heads[new], &made).unwrap();
            for other in spoilt(&made) {
                assert!(check_consistency(heads[old], heads[new], &other).is_err(), "{old} to {new}: {other:?}");
            }
            let forged = |head: Head| Head { root: Digest([9; 32]), ..head };
            assert!(check_consistency(forged(heads[old]), heads[new], &made).is_err(), "{old} to {new}");
            if old > 0 {
                assert!(check_consistency(heads[old], forged(heads[new]), &made).is_err(), "{old} to {new}");
            }
            for other in (1..=MOST).filter(|other| *other != old && old > 0) {
                assert!(check_consistency(heads[other], heads[new], &made).is_err() || other == new && old == new);
            }
        }
    }
}

#[test]
fn one_flipped_bit_in_a_proof_is_found() {
    let all = leaves(MOST);
    for size in [2, 3, 7, 8, 9, 100, 130] {
        let head = head(&all[..size]);
        for index in [0, size / 2, size - 1] {
            let made = path(index, &all[..size]);
            for other in flipped(&made) {
                assert_eq!(check_inclusion(all[index], index as u64, &other, head), Err(ProofError::Root));
            }
        }
        for old in [1, size / 2, size - 1] {
            let (made, older) = (subproof(old, &all[..size], true), self::head(&all[..old]));
            for other in flipped(&made) {
                assert_eq!(check_consistency(older, head, &other), Err(ProofError::Root));
            }
        }
    }
}

#[test]
fn an_honest_proof_against_another_past_says_that_the_past_differs() {
    let (all, mut other) = (leaves(20), leaves(20));
    other[3] = Digest([1; 32]);
    for old in 4..20 {
        let made = subproof(old, &all, true);
        let found = check_consistency(head(&other[..old]), head(&all), &made);
        // The old root of a power of two is not in the proof, so that nothing can be said of it.
        let said = if old.is_power_of_two() { ProofError::Root } else { ProofError::OldRoot };
        assert_eq!(found, Err(said), "{old}");
        let prefix = prefix_root(head(&other[..old]), head(&all), &made);
        assert_eq!(prefix, (!old.is_power_of_two()).then(|| mth(&all[..old])));
    }
}

#[test]
fn tiles_give_the_same_proofs_and_few_are_read() {
    let all = leaves(70_000);
    for size in [1usize, 255, 256, 257, 511, 65_535, 65_536, 65_537, 70_000] {
        for full in [false, true] {
            let log = &all[..size];
            assert_eq!(root(&mut TileSubtrees::new(Tiled(log, full), size as u64), size as u64).unwrap(), mth(log));
            for index in [0, size / 3, size / 2, size - 1] {
                let mut source = TileSubtrees::new(Tiled(log, full), size as u64);
                assert_eq!(inclusion(&mut source, index as u64, size as u64).unwrap(), path(index, log));
                assert!(source.tiles_read() <= 6, "{} tiles for {index} of {size}", source.tiles_read());
                let mut source = TileSubtrees::new(Tiled(log, full), size as u64);
                let made = consistency(&mut source, index as u64 + 1, size as u64).unwrap();
                assert_eq!(made, subproof(index + 1, log, true));
                assert!(source.tiles_read() <= 6, "{} tiles for {index} to {size}", source.tiles_read());
            }
        }
    }
}

#[test]
fn a_tile_of_another_length_is_damage() {
    struct Cut(usize);
    impl ReadTile for Cut {
        type Error = Infallible;
        fn tile(&mut self, _: u8, _: u64, _: u16) -> Result<Vec<u8>, Infallible> {
            Ok(vec![0; self.0])
        }
    }
    for bytes in [0, 31, 32 * 69, 32 * 70 - 1, 32 * 71, 8191, 8193, 8192 * 2] {
        let made = inclusion(&mut TileSubtrees::new(Cut(bytes), 70), 0, 70);
        let bad = BadTile { level: 0, index: 0, width: 70, bytes };
        assert_eq!(made, Err(MakeError::Source(TileError::Bad(bad))));
    }
    assert!(inclusion(&mut TileSubtrees::new(Cut(32 * 70), 70), 0, 70).is_ok());
    // Asked for more than there is: the caller gave two different sizes.
    assert!(inclusion(&mut TileSubtrees::new(Cut(32 * 70), 70), 100, 200).is_err());
}

#[test]
fn the_largest_numbers_neither_overflow_nor_panic() {
    struct Same;
    impl Subtrees for Same {
        type Error = Infallible;
        fn subtree(&mut self, level: u8, index: u64) -> Result<Digest, Infallible> {
            assert!(level < 64 && index.checked_shl(level.into()).is_some());
            Ok(Digest([level; 32]))
        }
    }
    let edges = [0, 1, 2, 3, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
    let lists: Vec<_> =
        [0, 1, 2, 62, 63, 64, 65, 66, 200].iter().map(|length| vec![Digest([3; 32]); *length]).collect();
    for size in edges {
        for index in edges {
            let made = inclusion(&mut Same, index, size);
            assert_eq!(made.is_ok(), index < size);
            let proof = consistency(&mut Same, index, size);
            assert_eq!(proof.is_ok(), index <= size);
            for path in lists.iter().chain(made.iter()).chain(proof.iter()) {
                let head = Head { size, root: Digest([4; 32]) };
                assert!(check_inclusion(Digest([5; 32]), index, path, head).is_err());
                let old = Head { size: index, root: Digest([6; 32]) };
                assert!(check_consistency(old, head, path).is_err());
            }
            let longest = made.iter().chain(proof.iter()).map(Vec::len).max().unwrap_or(0);
            assert!(longest <= MAX_PROOF_HASHES, "{longest}");
        }
    }
}

#[test]
fn a_log_without_entries_has_one_root_and_no_proof() {
    let (empty, one) = (Head::empty(), head(&leaves(1)));
    let other = Head { size: 1, root: Digest([1; 32]) };
    assert_eq!(check_consistency(one, other, &[]), Err(ProofError::OldRoot));
    check_consistency(empty, empty, &[]).unwrap();
    check_consistency(empty, one, &[]).unwrap();
    assert_eq!(check_consistency(empty, one, &[one.root]), Err(ProofError::Length));
    let forged = Head { size: 0, root: one.root };
    assert_eq!(check_consistency(forged, one, &[]), Err(ProofError::EmptyRoot));
    assert_eq!(check_consistency(empty, forged, &[]), Err(ProofError::EmptyRoot));
    assert_eq!(check_consistency(one, empty, &[]), Err(ProofError::NotGrown { old: 1, new: 0 }));
    assert_eq!(check_inclusion(one.root, 0, &[], empty), Err(ProofError::NoSuchEntry { index: 0, size: 0 }));
}

fn unhex(text: &str) -> Digest {
    text.parse().unwrap()
}

#[test]
fn the_published_proofs_of_certificate_transparency_hold() {
    let inputs: [&[u8]; 8] = [
        &[],
        &[0x00],
        &[0x10],
        &[0x20, 0x21],
        &[0x30, 0x31],
        &[0x40, 0x41, 0x42, 0x43],
        &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
        &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
    ];
    let all: Vec<_> = inputs.iter().map(|input| leaf_hash(input)).collect();
    let roots = [
        (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
        (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
        (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
        (5, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"),
        (6, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"),
        (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
    ];
    let head_of = |size: u64| Head { size, root: unhex(roots.iter().find(|(s, _)| *s == size).unwrap().1) };
    let inclusions: [(u64, u64, &[&str]); 4] = [
        (
            0,
            8,
            &[
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            5,
            8,
            &[
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (2, 3, &["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
        (
            1,
            5,
            &[
                "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ];
    for (index, size, path) in inclusions {
        let path: Vec<_> = path.iter().map(|hash| unhex(hash)).collect();
        check_inclusion(all[usize::try_from(index).unwrap()], index, &path, head_of(size)).unwrap();
    }
    let consistencies: [(u64, u64, &[&str]); 4] = [
        (1, 1, &[]),
        (
            1,
            8,
            &[
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            6,
            8,
            &[
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (
            2,
            5,
            &[
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ];
    for (old, new, path) in consistencies {
        let path: Vec<_> = path.iter().map(|hash| unhex(hash)).collect();
        check_consistency(head_of(old), head_of(new), &path).unwrap();
    }
}
