//! After any script of file operations the workspace is what it would be without an overlay: byte, mode and link.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::{
    collections::BTreeMap, fmt::Write as _, fs, os::unix::fs::MetadataExt, path::Path, process::Command,
    process::ExitCode,
};

use common::{Place, applied, test};
use libtest_mimic::Trial;
use proptest::{
    prelude::{Just, Strategy, any, prop, prop_oneof},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

fn main() -> ExitCode {
    common::main(vec![
        test("a_hundred_scripts_do_what_they_do_outside", || scripts(100)),
        test("a_thousand_scripts_do_what_they_do_outside", || scripts(1_000)).with_ignored_flag(true),
        Trial::test("a_difference_is_seen", || {
            a_difference_is_seen();
            Ok(())
        }),
    ])
}

/// Names are few, so that operations meet.
fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![Just("a"), Just("b"), Just("c"), Just("d e"), Just("é")], 1..4)
        .prop_map(|parts| parts.join("/"))
}

/// One line of shell. It may fail, inside as outside.
fn line() -> impl Strategy<Value = String> {
    // What its owner cannot read or enter, root can: so an owner always can here.
    let mode = (0o0_u32..=0o77).prop_map(|mode| format!("{:o}", 0o700 | mode));
    prop_oneof![
        3 => (path(), any::<u16>()).prop_map(|(path, text)| format!("printf {text} > '{path}'")),
        2 => (path(), any::<u16>()).prop_map(|(path, text)| format!("printf {text} >> '{path}'")),
        3 => path().prop_map(|path| format!("mkdir -p '{path}'")),
        2 => path().prop_map(|path| format!("rm -f '{path}'")),
        1 => path().prop_map(|path| format!("rm -rf '{path}'")),
        1 => path().prop_map(|path| format!("rmdir '{path}'")),
        2 => (path(), mode.clone()).prop_map(|(path, mode)| format!("[ -L '{path}' ] || chmod {mode} '{path}'")),
        1 => mode.prop_map(|mode| format!("chmod {mode} .")),
        2 => (path(), path()).prop_map(|(from, to)| format!("mv -fT '{from}' '{to}'")),
        1 => (path(), path()).prop_map(|(from, to)| format!("cp -aT '{from}' '{to}'")),
        1 => (path(), any::<u8>()).prop_map(|(path, text)| format!("sed -i s/1/{text}/ '{path}'")),
        1 => path().prop_map(|path| format!("find '{path}' -type f -delete")),
        1 => path().prop_map(|path| format!("ln -sfn '{path}' link; printf 1 > link/x")),
        2 => (path(), path()).prop_map(|(target, link)| format!("ln -sfn '{target}' '{link}'")),
        1 => (path(), 0..9_u16).prop_map(|(path, length)| format!("truncate -s {length} '{path}'")),
    ]
}

fn script() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    (prop::collection::vec(line(), 0..20), prop::collection::vec(line(), 1..30))
}

fn scripts(cases: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let checked = runner.run(&script(), |(before, during)| {
        compare(&before.join("\n"), &during.join("\n"));
        Ok(())
    });
    checked.unwrap();
}

fn compare(before: &str, during: &str) {
    let (inside, outside) = (Place::new(), Place::new());
    let both = [&inside, &outside];
    both.iter().for_each(|place| shell(&place.workspace(), before));
    assert_eq!(tree(&inside.workspace()), tree(&outside.workspace()), "the same beginning");
    shell(&outside.workspace(), during);
    applied(&inside.shell(&format!("exec 2>/dev/null\n{during}\ntrue")));
    let (inside, outside) = (tree(&inside.workspace()), tree(&outside.workspace()));
    assert_eq!(inside, outside, "before:\n{before}\n\nduring:\n{during}");
}

fn shell(folder: &Path, script: &str) {
    let script = format!("umask 022\nexec 2>/dev/null\n{script}\ntrue");
    assert!(Command::new("sh").args(["-c", &script]).current_dir(folder).status().unwrap().success());
}

/// Every path with its kind, its permissions and what it holds.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata().unwrap();
        let mut says = format!("{:o} ", meta.mode());
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if meta.is_symlink() {
            write!(says, "{}", fs::read_link(&path).unwrap().display()).unwrap();
        } else {
            write!(says, "{:?}", fs::read(&path).unwrap()).unwrap();
        }
        found.insert(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned(), says);
    }
    found
}

fn a_difference_is_seen() {
    for (one, other) in
        [("printf 1 > a", "printf 2 > a"), ("mkdir a", ">a"), ("ln -s b a", "ln -s c a"), (">a; chmod 700 a", ">a")]
    {
        let places = [Place::new(), Place::new()];
        shell(&places[0].workspace(), one);
        shell(&places[1].workspace(), other);
        assert_ne!(tree(&places[0].workspace()), tree(&places[1].workspace()), "{one} and {other}");
    }
}
