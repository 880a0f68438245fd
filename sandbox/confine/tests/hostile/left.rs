//! What a command leaves in the upper layer, or a hand has put there, against the host that reads it.

use std::{
    ffi::{CString, OsString},
    fs::{self, File},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{MetadataExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use ephor_confine::{
    Limits,
    overlay::{ApplyError, Bounds, Changes, Kind, LONGEST_PATH, Protection, ReadError, discard},
};
use libtest_mimic::Trial;

use super::attack;
use crate::common::{Place, applied, changes, is_root, run, said, test, within, words};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        test("a_link_in_the_way_is_replaced_and_not_followed", a_link_in_the_way_is_replaced_and_not_followed),
        test("a_folder_that_turns_into_a_link_is_not_entered", a_folder_that_turns_into_a_link_is_not_entered),
        test("a_link_by_hand_in_the_layer_is_not_followed", a_link_by_hand_in_the_layer_is_not_followed),
        test("programs_with_rights_are_refused", programs_with_rights_are_refused),
        test("pipes_are_refused", pipes_are_refused),
        test("devices_are_refused", devices_are_refused),
        test("a_whiteout_by_hand_removes_what_is_there", a_whiteout_by_hand_removes_what_is_there),
        test("a_command_can_make_no_whiteout_and_no_mark", a_command_can_make_no_whiteout_and_no_mark),
        test("a_sparse_file_is_refused_unread", a_sparse_file_is_refused_unread),
        test("hard_links_are_files_of_their_own", hard_links_are_files_of_their_own),
        test("names_are_bytes", names_are_bytes),
        test("three_thousand_files", || many_files(3_000)),
        test("a_hundred_thousand_files", || many_files(100_000)).with_ignored_flag(true),
        test("too_many_changes_are_refused", too_many_changes_are_refused),
        test("a_removed_tree_counts_in_full", a_removed_tree_counts_in_full),
        test("a_path_at_the_limit_is_applied", a_path_at_the_limit_is_applied),
        test("a_path_beyond_the_limit_is_refused_and_discarded", a_path_beyond_the_limit_is_refused_and_discarded),
        test("what_permits_nothing_is_read_and_discarded", what_permits_nothing_is_read_and_discarded),
        test("a_workspace_that_permits_nothing_is_applied", a_workspace_that_permits_nothing_is_applied),
        test("times_of_files_are_kept_however_odd", times_of_files_are_kept_however_odd),
        test("a_staging_folder_by_the_command_is_in_no_way", a_staging_folder_by_the_command_is_in_no_way),
        test("a_discard_follows_no_link", a_discard_follows_no_link),
        test("a_git_hook_can_be_protected", a_git_hook_can_be_protected),
    ]
}

fn apply(changes: &Changes) -> Result<(), ApplyError> {
    changes.apply(&|_| Protection::Open, &mut |_, _, _| Ok(()))
}

/// A layer that no command has made, over the workspace.
fn by_hand(place: &Place) -> PathBuf {
    let upper = place.beside("by-hand");
    fs::create_dir(&upper).unwrap();
    fs::set_permissions(&upper, place.workspace().metadata().unwrap().permissions()).unwrap();
    upper
}

fn read(place: &Place, upper: &Path) -> Result<Changes, ReadError> {
    Changes::read(&place.workspace(), upper, Bounds::USUAL)
}

fn node(path: &Path, mode: libc::mode_t, device: libc::dev_t) -> bool {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends with a NUL and lives throughout the call.
    unsafe { libc::mknod(path.as_ptr(), mode, device) == 0 }
}

fn a_link_in_the_way_is_replaced_and_not_followed() {
    let place = Place::new();
    fs::write(place.beside("secret"), "hidden").unwrap();
    symlink(place.beside("secret"), place.workspace().join("link")).unwrap();
    applied(&place.shell("rm link; echo new > link"));
    assert_eq!(fs::read_to_string(place.beside("secret")).unwrap(), "hidden");
    assert_eq!(place.read("link"), "new\n");
}

fn a_folder_that_turns_into_a_link_is_not_entered() {
    let place = Place::new();
    place.write("folder/file", "old");
    let outside = place.beside("outside");
    fs::create_dir(&outside).unwrap();
    let request = place.shell("echo new > folder/file; echo new > folder/other");
    said(&request);
    let changes = changes(&request).unwrap();
    // Between the reading and the applying another process has put a link into the way.
    fs::rename(place.workspace().join("folder"), place.beside("was")).unwrap();
    symlink(&outside, place.workspace().join("folder")).unwrap();
    assert!(matches!(apply(&changes), Err(ApplyError::Io { .. } | ApplyError::Stale { .. })));
    // And in the very middle of it.
    fs::remove_file(place.workspace().join("folder")).unwrap();
    fs::rename(place.beside("was"), place.workspace().join("folder")).unwrap();
    let refused = changes.apply(&|_| Protection::Open, &mut |_, _, _| {
        fs::rename(place.workspace().join("folder"), place.beside("was"))?;
        symlink(&outside, place.workspace().join("folder"))
    });
    assert!(matches!(&refused, Err(ApplyError::Io { .. })), "{refused:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 1, "nothing is left beside");
}

fn a_link_by_hand_in_the_layer_is_not_followed() {
    let place = Place::new();
    let upper = by_hand(&place);
    symlink("/etc", upper.join("settings")).unwrap();
    symlink("/etc/shadow", upper.join("secret")).unwrap();
    let changes = read(&place, &upper).unwrap();
    assert_eq!(words(&changes), ["+secret", "+settings"]);
    apply(&changes).unwrap();
    assert!(place.workspace().join("settings").symlink_metadata().unwrap().is_symlink());
    // One in the place of the layer itself is refused.
    symlink(&upper, place.beside("layer")).unwrap();
    assert!(matches!(read(&place, &place.beside("layer")), Err(ReadError::Io { .. })));
}

fn programs_with_rights_are_refused() {
    let place = Place::new();
    for mode in ["4755", "2755", "6755"] {
        let request = place.shell(&format!("cp /bin/sh shell; chmod {mode} shell"));
        said(&request);
        let refused = changes(&request);
        assert!(matches!(&refused, Err(ReadError::Privileged { path }) if path == Path::new("shell")), "{refused:?}");
    }
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 0);
}

fn pipes_are_refused() {
    let place = Place::new();
    let request = place.shell("mkfifo pipe");
    said(&request);
    assert!(matches!(changes(&request), Err(ReadError::Special { path }) if path == Path::new("pipe")));
    // One that was there may go.
    assert!(node(&place.workspace().join("old"), libc::S_IFIFO | 0o600, 0));
    let request = place.shell("rm old");
    said(&request);
    let changes = changes(&request).unwrap();
    assert_eq!(changes.list()[0].before.as_ref().unwrap().kind, Kind::Special);
    apply(&changes).unwrap();
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 0);
}

fn devices_are_refused() {
    let place = Place::new();
    let script = "mknod null c 1 3 2>/dev/null && echo made; mknod disk b 8 0 2>/dev/null && echo made; true";
    assert_eq!(said(&place.shell(script)), "");
    if !is_root() {
        return eprintln!("untried by hand: only root makes devices");
    }
    let upper = by_hand(&place);
    assert!(node(&upper.join("null"), libc::S_IFCHR | 0o666, libc::makedev(1, 3)));
    assert!(matches!(read(&place, &upper), Err(ReadError::Special { .. })));
}

fn a_whiteout_by_hand_removes_what_is_there() {
    let place = Place::new();
    place.write("folder/file", "text");
    let upper = by_hand(&place);
    for name in ["folder", "never-was"] {
        assert!(node(&upper.join(name), libc::S_IFCHR, 0));
    }
    let changes = read(&place, &upper).unwrap();
    assert_eq!(words(&changes), ["-folder", "-folder/file"]);
    apply(&changes).unwrap();
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 0);
}

fn a_command_can_make_no_whiteout_and_no_mark() {
    let place = Place::new();
    place.write("folder/file", "text");
    let script = "mknod folder/x c 0 0 2>/dev/null && echo made; \
                  /usr/bin/python3 -c 'import os; os.setxattr(\"folder\", \"user.overlay.opaque\", b\"y\")' 2>/dev/null; true";
    let request = place.shell(script);
    assert_eq!(said(&request), "");
    assert_eq!(words(&changes(&request).unwrap()), Vec::<String>::new());
}

fn a_sparse_file_is_refused_unread() {
    let place = Place::new();
    let request = place.shell("truncate -s 1T huge").limits(Limits { file: 1 << 40, ..within(20) }).unwrap();
    said(&request);
    assert!(matches!(changes(&request), Err(ReadError::Large { path, .. }) if path == Path::new("huge")));
    // Many that are each small enough add up.
    let upper = by_hand(&place);
    for number in 0..9 {
        File::create(upper.join(number.to_string())).unwrap().set_len(1 << 20).unwrap();
    }
    let bounds = Bounds { bytes: 8 << 20, ..Bounds::USUAL };
    assert!(matches!(Changes::read(&place.workspace(), &upper, bounds), Err(ReadError::Large { .. })));
}

fn hard_links_are_files_of_their_own() {
    let place = Place::new();
    place.write("old", "old");
    applied(&place.shell("ln old second; echo more >> second; echo x > new; ln new again"));
    assert_eq!((place.read("old"), place.read("second")), ("oldmore\n".into(), "oldmore\n".into()));
    assert_eq!((place.read("new"), place.read("again")), ("x\n".into(), "x\n".into()));
    for file in ["old", "second", "new", "again"] {
        assert_eq!(place.workspace().join(file).metadata().unwrap().nlink(), 1);
    }
    // Nor does a name outside the workspace take part in what is written to one inside.
    fs::write(place.beside("outside"), "outside").unwrap();
    fs::hard_link(place.beside("outside"), place.workspace().join("inside")).unwrap();
    applied(&place.shell("echo inside > inside"));
    assert_eq!(fs::read_to_string(place.beside("outside")).unwrap(), "outside");
}

fn names_are_bytes() {
    let place = Place::new();
    let request = attack(&place, "names");
    assert_eq!(applied(&request).list().len(), 253);
    for first in (1..=255).filter(|byte| ![b'.', b'/'].contains(byte)) {
        let name = OsString::from_vec(vec![first, 0xff, first]);
        assert_eq!(fs::read(place.workspace().join(name)).unwrap(), [first]);
    }
}

fn many_files(many: usize) {
    let place = Place::new();
    let request = attack(&place, "files").variable("MANY", many.to_string()).unwrap().limits(within(100)).unwrap();
    said(&request);
    let all = changes(&request).unwrap();
    apply(&all).unwrap();
    assert_eq!(all.list().len(), many + many / 1_000);
    let last = many - 1;
    assert_eq!(place.read(&format!("folder-{}/{last}", last / 1_000)), last.to_string());
    let folders = fs::read_dir(place.workspace()).unwrap().map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    assert_eq!(folders.map(Iterator::count).sum::<usize>(), many);
    // And none of it costs anything that is not touched.
    let request = place.shell("echo x > folder-1/1000");
    said(&request);
    assert_eq!(words(&changes(&request).unwrap()), ["~folder-1/1000"]);
}

fn too_many_changes_are_refused() {
    let place = Place::new();
    let request = attack(&place, "files").variable("MANY", "50").unwrap();
    said(&request);
    let read = |changes| Changes::read(&place.workspace(), &request.upper(), Bounds { changes, ..Bounds::USUAL });
    assert!(matches!(read(50), Err(ReadError::Many { most: 50 })));
    assert_eq!(read(51).unwrap().list().len(), 51);
}

fn a_removed_tree_counts_in_full() {
    let place = Place::new();
    for number in 0..50 {
        place.write(&format!("tree/{number}"), "");
    }
    let request = place.shell("rm -r tree");
    said(&request);
    let read = |changes| Changes::read(&place.workspace(), &request.upper(), Bounds { changes, ..Bounds::USUAL });
    assert!(matches!(read(50), Err(ReadError::Many { .. })));
    assert_eq!(read(51).unwrap().list().len(), 51);
}

fn a_path_at_the_limit_is_applied() {
    let place = Place::new();
    // 15 × 256 bytes, and what is left for the last.
    let folder = vec!["d".repeat(255); 15].join("/");
    let name = "f".repeat(LONGEST_PATH - folder.len() - 1);
    let path = format!("{folder}/{name}");
    // A path from the workspace, since the absolute one is longer than a call takes.
    applied(&place.shell(&format!("mkdir -p {folder}; cd {folder}; echo deep > {name}")));
    let mut open = rustix::fs::open(place.workspace(), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    open = rustix::fs::openat(&open, &*path, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    assert_eq!(File::from(open).metadata().unwrap().len(), 5);
    // Too deep for what removes the place in the end.
    discard(&place.workspace()).unwrap();
    fs::create_dir(place.workspace()).unwrap();
}

fn a_path_beyond_the_limit_is_refused_and_discarded() {
    let place = Place::new();
    let request = attack(&place, "deep");
    said(&request);
    assert!(matches!(changes(&request), Err(ReadError::Deep { .. })));
    let scratch = request.upper().parent().unwrap().to_owned();
    discard(&scratch).unwrap();
    assert!(!scratch.exists());
}

fn what_permits_nothing_is_read_and_discarded() {
    let place = Place::new();
    let request = place.shell("mkdir -p a/b; echo x > a/b/c; chmod 0 a/b/c a/b a");
    let changes = applied(&request);
    assert_eq!(words(&changes), ["+a", "+a/b", "+a/b/c"]);
    let mode = |path: &str| place.workspace().join(path).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("a"), 0);
    fs::set_permissions(place.workspace().join("a"), PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(mode("a/b"), 0);
    fs::set_permissions(place.workspace().join("a/b"), PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(mode("a/b/c"), 0);
    discard(request.upper().parent().unwrap()).unwrap();
}

fn a_workspace_that_permits_nothing_is_applied() {
    let place = Place::new();
    place.write("old", "old");
    let changes = applied(&place.shell("echo new > new; rm old; chmod 0 ."));
    assert_eq!(words(&changes), ["~", "+new", "-old"]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&place.workspace()), 0);
    fs::set_permissions(place.workspace(), PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(place.read("new"), "new\n");
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 1);
}

fn times_of_files_are_kept_however_odd() {
    let place = Place::new();
    applied(&place.shell("touch -d '1901-12-14 00:00:00.123456789 UTC' old; touch -d '2400-01-01 UTC' new; touch now"));
    let time = |path: &str| {
        let meta = place.workspace().join(path).metadata().unwrap();
        (meta.mtime(), meta.mtime_nsec())
    };
    assert_eq!(time("old"), (-2_147_472_000, 123_456_789));
    assert_eq!(time("new"), (13_569_465_600, 0));
}

fn a_staging_folder_by_the_command_is_in_no_way() {
    let place = Place::new();
    place.write("file", "old");
    applied(
        &place.shell(
            "echo new > file; mkdir .ephor-staging-0; echo x > .ephor-staging-0/new-0; ln -s . .ephor-staging-1",
        ),
    );
    assert_eq!((place.read("file"), place.read(".ephor-staging-0/new-0")), ("new\n".into(), "x\n".into()));
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 3);
}

fn a_discard_follows_no_link() {
    let place = Place::new();
    let outside = place.beside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "stays").unwrap();
    let request = place
        .shell(&format!("mkdir -p a/b; ln -s {0} link; ln -s {0} a/b/link; ln -s {0}/file file", outside.display()));
    run(&request).unwrap();
    discard(request.upper().parent().unwrap()).unwrap();
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "stays");
    symlink(&outside, place.beside("instead")).unwrap();
    assert!(discard(&place.beside("instead")).is_err());
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "stays");
}

fn a_git_hook_can_be_protected() {
    let place = Place::new();
    place.write(".git/config", "");
    place.write("src/main.c", "");
    let request = place.shell(
        "echo x > src/main.c; mkdir .git/hooks; echo 'evil' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    );
    said(&request);
    let hooks = |path: &Path| {
        if path.starts_with(".git/hooks") { Protection::Protected } else { Protection::Open }
    };
    let refused = changes(&request).unwrap().apply(&hooks, &mut |_, _, _| Ok(()));
    assert!(matches!(&refused, Err(ApplyError::Protected { paths }) if paths.len() == 2), "{refused:?}");
    assert_eq!(place.read("src/main.c"), "");
}
