//! What can happen to the folder of the projections.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ephor_chain::state::{Reason, Source, State, StateError};
use tempfile::TempDir;

use super::{answers_as_the_chain, catch_up, model::History, open};

/// A folder with projections of this chain, in rows that were rewritten some times. Another process might have made it: what
/// sled still holds of a map that was dropped, it does not hold of the copy.
fn built(chain: &History) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for part in 1..=5 {
        catch_up(&mut open(folder.path()), &chain.up_to((chain.entries.len() * part).div_ceil(5)));
    }
    let copied = tempfile::tempdir().unwrap();
    copy(folder.path(), copied.path());
    copied
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The files below a folder, as paths from it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = PathBuf::from(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|below| name.join(below)));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

#[test]
fn a_folder_that_was_deleted_is_built_again() {
    let chain = History::of(500, 1);
    let folder = built(&chain);
    fs::remove_dir_all(folder.path().join("state")).unwrap();
    let caught_up = answers_as_the_chain(&mut open(folder.path()), &chain);
    assert_eq!(caught_up.rebuilt, Some(Reason::Missing));
}

#[test]
fn a_folder_that_is_deleted_under_a_node_is_built_again_at_the_next_start() {
    let chain = History::of(900, 1);
    let folder = tempfile::tempdir().unwrap();
    let mut state = open(folder.path());
    catch_up(&mut state, &chain.up_to(500));
    fs::remove_dir_all(folder.path().join("state")).unwrap();
    answers_as_the_chain(&mut state, &chain);
    drop(state);
    answers_as_the_chain(&mut open(folder.path()), &chain);
}

#[test]
fn an_older_copy_goes_on_from_where_it_stands() {
    let chain = History::of(500, 1);
    let folder = built(&chain.up_to(300));
    let caught_up = answers_as_the_chain(&mut open(folder.path()), &chain);
    assert_eq!((caught_up.applied, caught_up.rebuilt), (200, None));
}

#[test]
fn a_copy_that_is_ahead_of_a_restored_chain_is_built_again() {
    let chain = History::of(500, 1);
    let folder = built(&chain);
    let caught_up = answers_as_the_chain(&mut open(folder.path()), &chain.up_to(300));
    assert_eq!(caught_up.rebuilt, Some(Reason::Ahead));
    // Also in a process that goes on.
    let mut state = open(folder.path());
    catch_up(&mut state, &chain);
    assert_eq!(answers_as_the_chain(&mut state, &chain.up_to(200)).rebuilt, Some(Reason::Ahead));
}

#[test]
fn a_copy_of_another_history_is_built_again() {
    let (chain, other) = (History::of(500, 1), History::of(500, 2));
    for size in [1, 300, 500] {
        let folder = built(&other.up_to(size));
        assert_eq!(answers_as_the_chain(&mut open(folder.path()), &chain).rebuilt, Some(Reason::Root));
    }
}

#[test]
fn a_copy_of_another_home_is_built_again() {
    let chain = History::of(500, 1);
    let folder = tempfile::tempdir().unwrap();
    catch_up(&mut State::open(&folder.path().join("state"), "example.org/other"), &chain);
    assert_eq!(answers_as_the_chain(&mut open(folder.path()), &chain).rebuilt, Some(Reason::Origin));
}

#[test]
fn a_process_that_ended_while_it_opened_does_not_do_so_again() {
    let chain = History::of(500, 1);
    let folder = built(&chain);
    fs::write(folder.path().join("state/opening"), []).unwrap();
    assert_eq!(answers_as_the_chain(&mut open(folder.path()), &chain).rebuilt, Some(Reason::Interrupted));
    assert_eq!(answers_as_the_chain(&mut open(folder.path()), &chain).rebuilt, None);
}

#[test]
fn a_file_in_the_place_of_the_folder_is_taken_away() {
    let chain = History::of(50, 1);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("state"), "a file").unwrap();
    answers_as_the_chain(&mut open(folder.path()), &chain);
    fs::remove_dir_all(folder.path().join("state/map")).unwrap();
    fs::write(folder.path().join("state/map"), "a file").unwrap();
    answers_as_the_chain(&mut open(folder.path()), &chain);
}

#[test]
fn a_folder_that_cannot_be_written_is_answered_from_memory() {
    let chain = History::of(500, 1);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), []).unwrap();
    // Below a file, and where nobody makes folders: root may write a folder whose mode says otherwise.
    for place in [folder.path().join("file"), PathBuf::from("/proc/self")] {
        let mut state = open(&place);
        catch_up(&mut state, &chain.up_to(100));
        answers_as_the_chain(&mut state, &chain);
        assert!(!state.figures().on_disk);
    }
}

#[test]
fn a_chain_that_does_not_amount_to_its_head_is_no_reason_to_answer() {
    struct Lying(History, ephor_tlog::Head);
    impl Source for Lying {
        fn head(&self) -> ephor_tlog::Head {
            self.1
        }
        fn entries(
            &self,
            from: ephor_base::Seq,
        ) -> Box<dyn Iterator<Item = Result<ephor_chain::Stored, ephor_chain::ReadError>> + '_> {
            self.0.entries(from)
        }
    }

    let (chain, folder) = (History::of(50, 1), tempfile::tempdir().unwrap());
    let root = History::of(50, 2).head();
    let error = open(folder.path()).catch_up(&Lying(chain.clone(), root), &mut |_| ()).unwrap_err();
    assert!(matches!(error, StateError::Root), "{error}");
    let more = History::of(60, 1).head();
    let error = open(folder.path()).catch_up(&Lying(chain.clone(), more), &mut |_| ()).unwrap_err();
    assert!(matches!(error, StateError::Short { expected: 60, found: 50 }), "{error}");
    answers_as_the_chain(&mut open(folder.path()), &chain);
}

/// Damages a copy with `damage`, and asks everything of it. Says why it was built again.
fn after(built: &Path, chain: &History, damage: impl FnOnce(&Path)) -> Option<Reason> {
    let folder = tempfile::tempdir().unwrap();
    copy(built, folder.path());
    damage(&folder.path().join("state"));
    let reason = answers_as_the_chain(&mut open(folder.path()), chain).rebuilt;
    answers_as_the_chain(&mut open(folder.path()), chain);
    reason
}

/// Places spread over a file, more of them where it is not empty.
fn places(bytes: &[u8], most: usize) -> Vec<usize> {
    let used: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] != 0).collect();
    let mut places: Vec<usize> = used.iter().copied().step_by((used.len() / most).max(1)).collect();
    places.extend((0..bytes.len()).step_by((bytes.len() / 20).max(1)));
    places
}

#[test]
fn flipped_bytes_in_any_file_change_no_answer() {
    let chain = History::of(300, 1);
    let folder = built(&chain.up_to(280));
    let mut reasons = 0;
    for name in files(&folder.path().join("state")) {
        let bytes = fs::read(folder.path().join("state").join(&name)).unwrap();
        for place in places(&bytes, 60) {
            let reason = after(folder.path(), &chain, |state| {
                let mut bytes = bytes.clone();
                bytes[place] ^= 1 << (place % 8);
                fs::write(state.join(&name), bytes).unwrap();
            });
            reasons += u32::from(reason.is_some());
        }
    }
    assert!(reasons > 20, "the flips did nothing: {reasons}");
}

#[test]
fn truncated_and_missing_files_change_no_answer() {
    let chain = History::of(300, 1);
    let folder = built(&chain.up_to(280));
    for name in files(&folder.path().join("state")) {
        let bytes = fs::read(folder.path().join("state").join(&name)).unwrap();
        after(folder.path(), &chain, |state| fs::remove_file(state.join(&name)).unwrap());
        for place in places(&bytes, 20) {
            after(folder.path(), &chain, |state| fs::write(state.join(&name), &bytes[..place]).unwrap());
        }
        for place in places(&bytes, 20) {
            after(folder.path(), &chain, |state| {
                let mut bytes = bytes.clone();
                bytes[place..].iter_mut().take(4096).for_each(|byte| *byte = 0);
                fs::write(state.join(&name), bytes).unwrap();
            });
        }
    }
}

#[test]
fn a_row_that_is_gone_or_another_is_noticed_although_sled_is_content() {
    let chain = History::of(300, 1);
    let folder = built(&chain);
    let map = |state: &Path| sled::open(state.join("map")).unwrap();
    drop(map(&folder.path().join("state")));
    let rows: Vec<_> = map(&folder.path().join("state")).iter().map(Result::unwrap).collect();
    assert!(rows.len() > 50);
    for (at, (key, value)) in rows.iter().enumerate().step_by(5) {
        let reason = after(folder.path(), &chain, |state| {
            let map = map(state);
            match at % 3 {
                // Half of nothing would be no change.
                1 if !value.is_empty() => map.insert(key, &value[..value.len() / 2]).unwrap(),
                0 | 1 => map.remove(key).unwrap(),
                _ => map.insert([&key[..], &[0; 8]].concat(), value).unwrap(),
            };
        });
        assert!(matches!(reason, Some(Reason::Broken(_) | Reason::Missing)), "row {at}: {reason:?}");
    }
}
