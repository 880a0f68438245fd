//! What a command sees and may do, and what becomes of what it has changed.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    process::{Command, ExitCode},
};

use common::{Place, applied, changes, has, run, said, test, toolchain, wait, with_toolchain, words};
use ephor_confine::{
    Access, End, Event, Lack, Limits, Mechanism, Request, RequestError, RunError, Stream, Workspace,
    overlay::{Act, ApplyError, Change, Kind, Protection},
    probe::{Found, probe},
};

fn main() -> ExitCode {
    common::main(vec![
        test("a_command_ends_with_its_status", a_command_ends_with_its_status),
        test("a_command_that_a_signal_ends_says_which", a_command_that_a_signal_ends_says_which),
        test("a_program_that_is_not_there_is_not_started", a_program_that_is_not_there_is_not_started),
        test("output_is_kept_apart_and_given_as_it_comes", output_is_kept_apart_and_given_as_it_comes),
        test("long_output_keeps_its_beginning_and_end", long_output_keeps_its_beginning_and_end),
        test("a_command_has_only_the_declared_environment", a_command_has_only_the_declared_environment),
        test("a_command_starts_where_it_was_told", a_command_starts_where_it_was_told),
        test("stdin_is_at_its_end", stdin_is_at_its_end),
        test("declared_folders_are_as_declared", declared_folders_are_as_declared),
        test("a_workspace_can_be_read_only", a_workspace_can_be_read_only),
        test("the_loopback_is_up_and_its_own", the_loopback_is_up_and_its_own),
        test("a_user_is_itself_inside", a_user_is_itself_inside),
        test("the_workspace_stays_until_changes_are_applied", the_workspace_stays_until_changes_are_applied),
        test("changes_say_what_they_are", changes_say_what_they_are),
        test("a_folder_made_anew_hides_what_it_held", a_folder_made_anew_hides_what_it_held),
        test("kinds_replace_each_other", kinds_replace_each_other),
        test("what_is_replaced_can_be_kept", what_is_replaced_can_be_kept),
        test("a_protected_path_refuses_all", a_protected_path_refuses_all),
        test("what_cannot_be_kept_is_not_replaced", what_cannot_be_kept_is_not_replaced),
        test("a_failure_in_the_middle_puts_all_back", a_failure_in_the_middle_puts_all_back),
        test("what_was_described_is_what_is_applied", what_was_described_is_what_is_applied),
        test("requests_are_bounded", requests_are_bounded),
        test("a_lack_is_named_unless_it_was_accepted", a_lack_is_named_unless_it_was_accepted),
        test("a_delegated_cgroup_is_told_the_limits", a_delegated_cgroup_is_told_the_limits),
        test("a_probe_tries_each_mechanism", a_probe_tries_each_mechanism),
        test("a_repository_takes_a_commit", a_repository_takes_a_commit),
        test("commands_run_side_by_side_on_many_threads", commands_run_side_by_side_on_many_threads),
        test("what_was_used_is_said", what_was_used_is_said),
        test("npm_runs_its_tests", npm_runs_its_tests),
        test("python_runs_its_tests", python_runs_its_tests),
        test("cargo_builds_a_project", cargo_builds_a_project),
    ])
}

fn a_command_ends_with_its_status() {
    let place = Place::new();
    for status in [0, 1, 7, 255] {
        let ended = run(&place.shell(&format!("exit {status}"))).unwrap();
        assert_eq!(ended.end, End::Exited(status));
    }
}

fn a_command_that_a_signal_ends_says_which() {
    assert_eq!(run(&Place::new().shell("kill -USR1 $$")).unwrap().end, End::Killed(libc::SIGUSR1));
}

fn a_program_that_is_not_there_is_not_started() {
    let place = Place::new();
    place.write("text", "no program");
    for (program, kind) in [("no-such-program", io::ErrorKind::NotFound), ("./text", io::ErrorKind::PermissionDenied)] {
        let refused = run(&place.request(&[program]));
        assert!(matches!(&refused, Err(RunError::Program(error)) if error.kind() == kind), "{refused:?}");
    }
}

fn output_is_kept_apart_and_given_as_it_comes() {
    let seen = std::sync::Mutex::new((Vec::new(), Vec::new()));
    let keep = |event: Event<'_>| {
        let mut seen = seen.lock().unwrap();
        match event {
            Event::Output(Stream::Stdout, piece) => seen.0.extend_from_slice(piece),
            Event::Output(Stream::Stderr, piece) => seen.1.extend_from_slice(piece),
            Event::Listening(_) => panic!("no port was given"),
        }
    };
    let place = Place::new();
    let request = place.shell("echo out; echo err >&2; echo out");
    let ended = wait(ephor_confine::run(&request, &keep, std::future::pending())).unwrap();
    assert_eq!(ended.stdout.whole().unwrap(), b"out\nout\n");
    assert_eq!(ended.stderr.whole().unwrap(), b"err\n");
    assert_eq!(seen.into_inner().unwrap(), (b"out\nout\n".to_vec(), b"err\n".to_vec()));
}

fn long_output_keeps_its_beginning_and_end() {
    let place = Place::new();
    let limits = Limits { output: 100, ..Limits::USUAL };
    let ended = run(&place.shell("seq 1 100000").limits(limits).unwrap()).unwrap();
    let whole: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let (head, tail) = (&whole[..50], &whole[whole.len() - 50..]);
    assert_eq!(ended.stdout.head, head.as_bytes());
    assert_eq!(ended.stdout.tail, tail.as_bytes());
    assert_eq!(ended.stdout.left_out, whole.len() as u64 - 100);
    assert_eq!(ended.stdout.whole(), None);
}

fn a_command_has_only_the_declared_environment() {
    let place = Place::new();
    let request = place.request(&["env"]).variable("WITH SPACE", "a=b\nc").unwrap();
    assert_eq!(said(&request), "PATH=/usr/bin:/bin\nWITH SPACE=a=b\nc\n");
}

fn a_command_starts_where_it_was_told() {
    let place = Place::new();
    place.write("one/two/file", "");
    assert_eq!(said(&place.shell("pwd")), format!("{}\n", place.workspace().display()));
    let request = place.shell("pwd; ls").directory(Path::new("one/two")).unwrap();
    assert_eq!(said(&request), format!("{}\nfile\n", place.workspace().join("one/two").display()));
}

fn stdin_is_at_its_end() {
    assert_eq!(said(&Place::new().shell("cat; echo end")), "end\n");
}

fn declared_folders_are_as_declared() {
    let place = Place::new();
    let (fixed, cache) = (place.beside("fixed"), place.beside("cache"));
    fs::create_dir(&fixed).unwrap();
    fs::create_dir(&cache).unwrap();
    fs::write(fixed.join("file"), "fixed").unwrap();
    let script = format!(
        "cat {0}/file; echo x 2>/dev/null > {0}/file || echo -n ' stays'; echo cached > {1}/made",
        fixed.display(),
        cache.display()
    );
    let request = place.shell(&script);
    let request = request.folder(&fixed, Access::ReadOnly).unwrap().folder(&cache, Access::ReadWrite).unwrap();
    assert_eq!(said(&request), "fixed stays");
    assert_eq!(fs::read_to_string(fixed.join("file")).unwrap(), "fixed");
    assert_eq!(fs::read_to_string(cache.join("made")).unwrap(), "cached\n");
}

fn a_workspace_can_be_read_only() {
    let place = Place::new();
    place.write("file", "text");
    let words = ["sh", "-c", "cat file; echo x 2>/dev/null > file || echo ' stays'"].map(Into::into);
    let request = Request::new(words.into(), &place.workspace(), Workspace::ReadOnly, &place.scratch()).unwrap();
    assert_eq!(said(&request.accepting(Lack::Cgroup)), "text stays\n");
}

fn the_loopback_is_up_and_its_own() {
    assert_eq!(
        said(&Place::new().shell("cat /proc/net/dev | grep -c :; grep -c 127.0.0.1 /proc/net/fib_trie")),
        "1\n2\n"
    );
}

fn a_user_is_itself_inside() {
    let place = Place::new();
    let expected = format!("{}\n", rustix::process::geteuid().as_raw());
    assert_eq!(said(&place.request(&["id", "-u"])), expected);
    applied(&place.shell("echo > made"));
    assert_eq!(fs::metadata(place.workspace().join("made")).unwrap().uid(), rustix::process::geteuid().as_raw());
}

fn the_workspace_stays_until_changes_are_applied() {
    let place = Place::new();
    place.write("old", "before");
    place.write("gone", "still");
    let request = place.shell("echo after > old; rm gone; mkdir -p a/b; echo new > a/b/new; cat old");
    assert_eq!(said(&request), "after\n");
    assert_eq!((place.read("old"), place.read("gone")), ("before".into(), "still".into()));
    assert!(!place.workspace().join("a").exists());
    let changes = changes(&request).unwrap();
    assert_eq!(words(&changes), ["+a", "+a/b", "+a/b/new", "-gone", "~old"]);
    changes.apply(&|_| Protection::Open, &mut |_, _, _| Ok(())).unwrap();
    assert_eq!((place.read("old"), place.read("a/b/new")), ("after\n".into(), "new\n".into()));
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 2, "nothing else is left beside");
}

fn changes_say_what_they_are() {
    let place = Place::new();
    place.write("program", "#!/bin/sh");
    let request = place.shell("echo -n four > file; ln -s /etc/passwd link; chmod 750 program; mkdir -m 711 folder");
    said(&request);
    let changes = changes(&request).unwrap();
    let of = |path: &str| {
        let change = changes.list().iter().find(|change| change.path == Path::new(path)).unwrap();
        change.after.clone().unwrap()
    };
    assert_eq!((of("file").kind, of("file").mode), (Kind::File(4), 0o644));
    assert_eq!(of("file").digest, Some(ephor_base::Digest::of(b"four")));
    assert_eq!(of("link").kind, Kind::Link("/etc/passwd".into()));
    assert_eq!((of("program").kind, of("program").mode), (Kind::File(9), 0o750));
    assert_eq!((of("folder").kind, of("folder").mode), (Kind::Folder, 0o711));
    assert_eq!(words(&changes), ["+file", "+folder", "+link", "~program"]);
    let acts: Vec<_> = changes.list().iter().map(Change::act).collect();
    assert_eq!(acts, [Act::Created, Act::Created, Act::Created, Act::Mode]);
}

fn a_folder_made_anew_hides_what_it_held() {
    let place = Place::new();
    for file in ["folder/stays", "folder/goes", "folder/below/goes", "folder/kept/deep"] {
        place.write(file, "old");
    }
    let request = place.shell("rm -r folder; mkdir -p folder/kept; echo new > folder/stays");
    let changes = applied(&request);
    assert_eq!(
        words(&changes),
        ["-folder/below", "-folder/below/goes", "-folder/goes", "-folder/kept/deep", "~folder/stays"]
    );
    assert_eq!(place.read("folder/stays"), "new\n");
    assert_eq!(fs::read_dir(place.workspace().join("folder")).unwrap().count(), 2);
}

fn kinds_replace_each_other() {
    let place = Place::new();
    place.write("folder/inside/file", "old");
    place.write("file", "old");
    symlink("file", place.workspace().join("link")).unwrap();
    let changes =
        applied(&place.shell("rm -r folder file link; echo file > folder; mkdir -p file/in; echo link > link"));
    assert_eq!(words(&changes), ["~file", "+file/in", "~folder", "-folder/inside", "-folder/inside/file", "~link"]);
    assert_eq!((place.read("folder"), place.read("link")), ("file\n".into(), "link\n".into()));
    assert!(place.workspace().join("file/in").is_dir());
    let link = place.workspace().join("link");
    assert!(link.symlink_metadata().unwrap().is_file());
}

fn what_is_replaced_can_be_kept() {
    let place = Place::new();
    place.write("changed", "was");
    place.write("folder/removed", "was too");
    symlink("nowhere", place.workspace().join("link")).unwrap();
    let request = place.shell("echo new > changed; rm -r folder link; echo > made");
    said(&request);
    let mut kept = Vec::new();
    let changes = changes(&request).unwrap();
    changes
        .apply(&|_| Protection::Open, &mut |path, before, file| {
            let mut text = String::new();
            file.map(|mut file| file.read_to_string(&mut text)).transpose()?;
            kept.push((path.to_str().unwrap().to_owned(), before.kind.clone(), text));
            Ok(())
        })
        .unwrap();
    let entry = |path: &str, kind: Kind, text: &str| (path.to_owned(), kind, text.to_owned());
    let expected = [
        entry("changed", Kind::File(3), "was"),
        entry("folder", Kind::Folder, ""),
        entry("folder/removed", Kind::File(7), "was too"),
        entry("link", Kind::Link("nowhere".into()), ""),
    ];
    assert_eq!(kept, expected);
}

fn a_protected_path_refuses_all() {
    let place = Place::new();
    place.write("secret/deep/.env", "KEY=1");
    let request = place.shell("rm -r secret; echo > other");
    said(&request);
    let protect = |path: &Path| if path.ends_with(".env") { Protection::Protected } else { Protection::Open };
    let mut kept = 0;
    let refused = changes(&request).unwrap().apply(&protect, &mut |_, _, _| {
        kept += 1;
        Ok(())
    });
    assert!(
        matches!(&refused, Err(ApplyError::Protected { paths }) if *paths == [Path::new("secret/deep/.env")]),
        "{refused:?}"
    );
    assert_eq!(kept, 0);
    assert_eq!(place.read("secret/deep/.env"), "KEY=1");
    assert!(!place.workspace().join("other").exists());
}

fn what_cannot_be_kept_is_not_replaced() {
    let place = Place::new();
    place.write("one", "1");
    place.write("two", "2");
    let request = place.shell("rm one two");
    said(&request);
    let mut room = 1;
    let refused = changes(&request).unwrap().apply(&|_| Protection::Open, &mut |_, _, _| {
        room -= 1;
        if room < 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    });
    assert!(matches!(&refused, Err(ApplyError::Keep { path, .. }) if path == Path::new("two")), "{refused:?}");
    assert_eq!((place.read("one"), place.read("two")), ("1".into(), "2".into()));
}

/// Everything below a folder: path, mode, and what it holds.
fn tree(folder: &Path) -> Vec<(String, u32, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata().unwrap();
        let holds = if meta.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            "folder".into()
        } else if meta.is_symlink() {
            format!("-> {}", fs::read_link(&path).unwrap().display())
        } else {
            fs::read_to_string(&path).unwrap()
        };
        found.push((path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned(), meta.mode(), holds));
    }
    found.sort();
    found
}

fn a_failure_in_the_middle_puts_all_back() {
    let place = Place::new();
    for file in ["a/removed", "b/replaced", "c/file", "folder/in", "locked/in", "z/last"] {
        place.write(file, file);
    }
    symlink("b/replaced", place.workspace().join("link")).unwrap();
    fs::set_permissions(place.workspace().join("c"), fs::Permissions::from_mode(0o750)).unwrap();
    for locked in ["locked", ""] {
        fs::set_permissions(place.workspace().join(locked), fs::Permissions::from_mode(0o500)).unwrap();
    }
    let request = place.shell(
        "chmod 700 . locked; rm -r locked; rm -r a; echo new > b/replaced; chmod 700 c; rm -r c/file; mkdir c/file; rm -r folder; echo > folder; \
         rm link; ln -s elsewhere link; mkdir -p n/e/w; echo > n/e/w/x; echo changed > z/last",
    );
    said(&request);
    let changes = changes(&request).unwrap();
    let last = place.workspace().join("z/last");
    let before = tree(&place.workspace());
    // Another process writes to what comes last, after it was kept.
    let refused = changes.apply(&|_| Protection::Open, &mut |path, _, _| {
        if path == Path::new("z/last") { fs::write(&last, "by another") } else { Ok(()) }
    });
    assert!(matches!(&refused, Err(ApplyError::Stale { path }) if path == Path::new("z/last")), "{refused:?}");
    assert_eq!(place.read("z/last"), "by another");
    fs::write(&last, "z/last").unwrap();
    assert_eq!(tree(&place.workspace()), before);
}

fn what_was_described_is_what_is_applied() {
    let place = Place::new();
    let request = place.shell("echo good > file");
    said(&request);
    let changes = changes(&request).unwrap();
    fs::write(request.upper().join("file"), "evil\n").unwrap();
    let refused = changes.apply(&|_| Protection::Open, &mut |_, _, _| Ok(()));
    assert!(matches!(&refused, Err(ApplyError::Other { path }) if path == Path::new("file")), "{refused:?}");
    assert_eq!(fs::read_dir(place.workspace()).unwrap().count(), 0);
}

fn requests_are_bounded() {
    let place = Place::new();
    let (workspace, scratch) = (place.workspace(), place.scratch());
    let new = |words: Vec<std::ffi::OsString>, workspace: &Path, scratch: &Path| {
        Request::new(words, workspace, Workspace::Overlay, scratch)
    };
    let refused = |words| new(words, &workspace, &scratch).unwrap_err();
    assert!(matches!(refused(vec![]), RequestError::Arguments));
    assert!(matches!(refused(vec!["a\0b".into()]), RequestError::Arguments));
    assert!(matches!(refused(vec!["x".into(); 5_000]), RequestError::Arguments));
    assert!(matches!(refused(vec!["x".repeat(200_000).into()]), RequestError::Long));
    let good = || new(vec!["true".into()], &workspace, &scratch).unwrap();
    for (name, value) in [("", ""), ("a=b", ""), ("a\0", ""), ("a", "\0")] {
        assert!(matches!(good().variable(name, value), Err(RequestError::Variable(_))), "{name:?} {value:?}");
    }
    assert!(matches!(good().variable("A", "1").unwrap().variable("A", "2"), Err(RequestError::Variable(_))));
    let link = place.beside("link");
    symlink(&workspace, &link).unwrap();
    assert!(matches!(good().folder(&link, Access::ReadOnly), Err(RequestError::NotCanonical { .. })));
    for path in ["/usr/lib", "/proc", "/etc", "/", "/tmp"] {
        let refused = good().folder(Path::new(path), Access::ReadOnly);
        assert!(matches!(refused, Err(RequestError::Reserved { .. } | RequestError::Overlap { .. })), "{path}");
    }
    let inside = workspace.join("inside");
    fs::create_dir(&inside).unwrap();
    assert!(matches!(good().folder(&inside, Access::ReadWrite), Err(RequestError::Overlap { .. })));
    assert!(matches!(
        new(vec!["x".into()], &workspace, &inside),
        Err(RequestError::Scratch { .. } | RequestError::Overlap { .. })
    ));
    for path in ["..", "/tmp", "a/../b"] {
        assert!(matches!(good().directory(Path::new(path)), Err(RequestError::Directory { .. })), "{path}");
    }
    let none = Limits { output: 0, ..Limits::USUAL };
    assert!(matches!(good().limits(none), Err(RequestError::Limit("output"))));
    fs::write(scratch.join("something"), "").unwrap();
    assert!(matches!(refused(vec!["true".into()]), RequestError::Scratch { .. }));
}

fn a_lack_is_named_unless_it_was_accepted() {
    let place = Place::new();
    let request =
        || Request::new(vec!["true".into()], &place.workspace(), Workspace::Overlay, &place.scratch()).unwrap();
    let refused = run(&request()).unwrap_err();
    assert!(matches!(&refused, RunError::Lacking(lacking) if lacking.mechanism == Mechanism::Cgroup), "{refused:?}");
    assert!(refused.to_string().contains("Delegate=yes"), "{refused}");
    let ended = run(&request().accepting(Lack::Cgroup).variable("PATH", "/usr/bin:/bin").unwrap()).unwrap();
    assert_eq!(ended.end, End::Exited(0));
    assert_eq!(ended.without.iter().map(|lacking| lacking.mechanism).collect::<Vec<_>>(), [Mechanism::Cgroup]);
    // A folder that is no cgroup delegates nothing.
    let refused = run(&request().cgroup(place.workspace())).unwrap_err();
    assert!(matches!(&refused, RunError::Lacking(lacking) if lacking.errno == Some(libc::ENOENT)), "{refused:?}");
}

/// In a folder that has the files of a delegated cgroup and nothing behind them.
fn a_delegated_cgroup_is_told_the_limits() {
    let place = Place::new();
    let delegated = place.beside("cgroup");
    fs::create_dir(&delegated).unwrap();
    fs::write(delegated.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
    let limits = Limits { memory: 1 << 30, processes: 40, ..Limits::USUAL };
    let ended = run(&place.shell("exit 3").cgroup(delegated.clone()).limits(limits).unwrap()).unwrap();
    assert_eq!((ended.end, ended.without), (End::Exited(3), vec![]));
    assert_eq!(fs::read_to_string(delegated.join("cgroup.subtree_control")).unwrap(), "+memory +pids");
    let own = fs::read_dir(&delegated).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let told = ["memory.max", "memory.oom.group", "pids.max", "cgroup.procs", "cgroup.kill"];
    let told = told.map(|file| fs::read_to_string(own.join(file)).unwrap());
    assert_eq!(told, ["1073741824", "1", "42", "0", "1"]);
    // One whose controllers are others is none.
    fs::write(delegated.join("cgroup.controllers"), "cpu\n").unwrap();
    let words = vec!["true".into()];
    let request = Request::new(words, &place.workspace(), Workspace::Overlay, &place.scratch()).unwrap();
    let refused = run(&request.cgroup(delegated)).unwrap_err();
    assert!(matches!(&refused, RunError::Lacking(lacking) if lacking.mechanism == Mechanism::Cgroup), "{refused:?}");
}

fn a_probe_tries_each_mechanism() {
    let place = Place::new();
    let found = wait(probe(&place.workspace(), &place.scratch(), None)).unwrap();
    assert_eq!(found.keys().copied().collect::<Vec<_>>().len(), Mechanism::ALL.len());
    for mechanism in Mechanism::ALL {
        match (&found[&mechanism], mechanism) {
            (Found::Lacks(lacking), Mechanism::Cgroup) => assert_eq!(lacking.step, "none was named"),
            (found, _) => assert_eq!(*found, Found::Works, "{mechanism}"),
        }
    }
}

fn commands_run_side_by_side_on_many_threads() {
    let place = Place::new();
    let requests: Vec<Request> =
        (0..8).map(|number| place.shell(&format!("echo {number}; echo {number} > made"))).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let runs = requests.clone().into_iter().map(|request| {
        runtime.spawn(async move { ephor_confine::run(&request, &|_| {}, std::future::pending()).await })
    });
    let runs: Vec<_> = runs.collect();
    for (number, (run, request)) in runs.into_iter().zip(requests).enumerate() {
        let ended = runtime.block_on(run).unwrap().unwrap();
        assert_eq!(ended.stdout.whole().unwrap(), format!("{number}\n").into_bytes());
        assert_eq!(fs::read_to_string(request.upper().join("made")).unwrap(), format!("{number}\n"));
    }
}

fn what_was_used_is_said() {
    // The command ends first, and what runs beside it is ended with it and counts all the same.
    let script = "cat /dev/zero | tail -c 100M & until grep -q 'VmHWM:.* [0-9]\\{5,\\} kB' /proc/$!/status; do :; done";
    let used = run(&Place::new().shell(script)).unwrap().used;
    assert!(used.memory >= 10_000 << 10, "{used:?}");
    assert!(!used.user.is_zero() && !used.system.is_zero(), "{used:?}");
}

fn a_repository_takes_a_commit() {
    let Some(git) = ["/usr/bin/git", "/usr/local/bin/git"].into_iter().find(|git| Path::new(git).exists()) else {
        return eprintln!("untried: there is no git");
    };
    let place = Place::new();
    place.write("file", "text\n");
    let script = format!(
        "set -e; export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; \
         {git} init -q; {git} add .; {git} commit -q -m first; echo more >> file; {git} commit -q -a -m second"
    );
    applied(&place.shell(&script));
    let log =
        Command::new(git).args(["-C".as_ref(), place.workspace().as_os_str()]).args(["log", "--format=%s"]).output();
    assert_eq!(String::from_utf8(log.unwrap().stdout).unwrap(), "second\nfirst\n");
    let check =
        Command::new(git).args(["-C".as_ref(), place.workspace().as_os_str()]).args(["fsck", "--strict"]).output();
    assert!(check.unwrap().status.success());
}

fn python_runs_its_tests() {
    if !has("python3") {
        return;
    }
    let place = Place::new();
    let test =
        "import unittest\nclass T(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1 + 1, 2)\n";
    place.write("test_sum.py", test);
    let pytest =
        Command::new("/usr/bin/python3").args(["-m", "pytest", "--version"]).output().unwrap().status.success();
    let (module, passed) = if pytest { ("pytest", "1 passed") } else { ("unittest", "Ran 1 test") };
    let ended = run(&place.shell(&format!("/usr/bin/python3 -m {module} 2>&1"))).unwrap();
    let said = String::from_utf8(ended.stdout.whole().unwrap()).unwrap();
    assert!(ended.end == End::Exited(0) && said.contains(passed), "{said}");
}

fn npm_runs_its_tests() {
    if !has("npm") || !has("node") {
        return;
    }
    let place = Place::new();
    place.write("package.json", r#"{ "name": "tiny", "version": "1.0.0", "scripts": { "test": "node --test" } }"#);
    let test = "require('node:test')('sum', () => require('node:assert').strictEqual(1 + 1, 2));\n";
    place.write("sum.test.js", test);
    let request = place.request(&["/usr/bin/npm", "test"]).variable("HOME", "/tmp").unwrap();
    let said = said(&request);
    assert!(said.contains("pass 1") && said.contains("fail 0"), "{said}");
    assert_eq!(words(&changes(&request).unwrap()), Vec::<String>::new());
}

fn cargo_builds_a_project() {
    let Some(toolchain) = toolchain() else { return };
    let place = Place::new();
    place.write("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    place.write("src/main.rs", "fn main() { println!(\"built\"); }\n");
    let script = format!("{}/bin/cargo build --offline -q && target/debug/tiny", toolchain.display());
    applied(&with_toolchain(place.shell(&script), &toolchain));
    let made = Command::new(place.workspace().join("target/debug/tiny")).output().unwrap();
    assert_eq!(String::from_utf8(made.stdout).unwrap(), "built\n");
    // Cargo finds it as it left it, and builds nothing again.
    let script = format!("{}/bin/cargo build --offline -v 2>&1 | grep -c Fresh", toolchain.display());
    assert_eq!(said(&with_toolchain(place.shell(&script), &toolchain)), "1\n");
}
