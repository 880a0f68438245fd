//! The difference of two texts, against its definition and against git, diff and patch.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use ephor_edit::{Diff, Look, MOST_LINES, Patch, Text};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

/// Lines of every sort, some of which look like those of a patch.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[abc]",
        1 => Just(String::new()),
        1 => "[-+ @\\\\]{1,3}( a)?",
        1 => "[äß漢🦀\t\r\u{85}\u{2028}]{1,3}",
        1 => Just("-- a/f".to_owned()),
        1 => Just("++ b/f".to_owned()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let lines = prop::collection::vec((line(), any::<bool>()), 0..24);
    (lines, any::<bool>(), any::<bool>()).prop_map(|(lines, crlf, ends)| {
        let end = |mixed: bool| if crlf && mixed { "\r\n" } else { "\n" };
        let mut text: String = lines.iter().map(|(line, mixed)| format!("{line}{}", end(*mixed))).collect();
        if !ends {
            text.truncate(text.trim_end_matches(['\n', '\r']).len());
        }
        text
    })
}

/// Two texts that have much in common.
fn pair() -> impl Strategy<Value = (String, String)> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), line(), 0..3_u8), 0..6);
    prop_oneof![
        1 => (text(), text()),
        3 => (text(), edits).prop_map(|(text, edits)| {
            let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
            for (index, line, what) in edits {
                let at = index.index(lines.len() + 1);
                match what {
                    0 if at < lines.len() => drop(lines.remove(at)),
                    1 if at < lines.len() => lines[at] = format!("{line}\n"),
                    _ => lines.insert(at, format!("{line}\n")),
                }
            }
            (text, lines.concat())
        }),
    ]
}

fn new(text: &str) -> Text<'_> {
    Text::new(text).unwrap()
}

fn patch(old: Option<&str>, to: Option<&str>) -> String {
    Diff::between(old.map(new), to.map(new)).to_patch("f", 0o644)
}

/// What a patch of one file makes of `text`.
fn applied(patch: &str, text: Option<&str>) -> Result<Option<String>, String> {
    let patch = Patch::parse(new(patch)).map_err(|why| why.to_string())?;
    let [section] = patch.sections() else { return Err(format!("{} files", patch.sections().len())) };
    section.apply(text.map(new)).map_err(|why| why.to_string())
}

/// A program that judges, in a folder of its own.
fn run(folder: &Path, program: &str, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    command.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap()).stdin(Stdio::null());
    command.output().unwrap()
}

/// What git and patch make of `text` with this patch; none each, where it refuses.
fn judged(patch: &str, text: Option<&str>) -> [Option<Option<String>>; 2] {
    let judge = |program: &str, args: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        fs::write(folder.path().join("p"), patch).unwrap();
        let output = run(folder.path(), program, args);
        output.status.success().then(|| fs::read_to_string(&file).ok())
    };
    let by_patch = ["-p1", "--binary", "--force", "--fuzz=0", "--no-backup-if-mismatch", "-i", "p"];
    [judge("git", &["apply", "--whitespace=nowarn", "p"]), judge("patch", &by_patch)]
}

/// The fewest lines that are added and removed, by the table of common subsequences.
fn fewest(old: &str, to: &str) -> usize {
    let (old, to): (Vec<_>, Vec<_>) = (old.split_inclusive('\n').collect(), to.split_inclusive('\n').collect());
    let mut row = vec![0; to.len() + 1];
    for line in &old {
        let mut next = vec![0];
        for (at, other) in to.iter().enumerate() {
            let common = if line == other { row[at] + 1 } else { row[at + 1].max(next[at]) };
            next.push(common);
        }
        row = next;
    }
    old.len() + to.len() - 2 * row[to.len()]
}

proptest! {
    #[test]
    fn a_difference_applied_to_the_one_gives_the_other((one, other) in pair()) {
        let diff = Diff::between(Some(new(&one)), Some(new(&other)));
        prop_assert_eq!(diff.added() + diff.removed(), fewest(&one, &other));
        prop_assert_eq!(diff.is_empty(), one == other);
        if one != other {
            let patch = diff.to_patch("f", 0o644);
            prop_assert_eq!(applied(&patch, Some(&one)), Ok(Some(other)), "{}", patch);
        }
    }

    #[test]
    fn files_come_and_go(text in text()) {
        prop_assert_eq!(applied(&patch(None, Some(&text)), None), Ok(Some(text.clone())));
        prop_assert_eq!(applied(&patch(Some(&text), None), Some(&text)), Ok(None));
    }

    /// Nothing that is no patch is taken for one, and no patch makes anything panic.
    #[test]
    fn any_text_is_read_to_its_end(patch in "([-+ @\\\\]{0,4}[ab/0-9,\n]{0,6}){0,12}", text in text()) {
        let _either = applied(&patch, Some(&text));
    }

    #[test]
    fn what_is_shown_fits((one, other) in pair(), columns in 40_usize..80, lines in 4_usize..20) {
        let look = Look { columns, lines, context: 1, spell: |line| line.escape_debug().to_string() };
        let shown = Diff::between(Some(new(&one)), Some(new(&other))).shown(&look).lines();
        prop_assert!(shown.len() <= lines);
        for row in &shown {
            let width: usize = row.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
            prop_assert!(width <= columns && !row.contains(['\n', '\r', '\t']), "{:?}", row);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn git_and_patch_take_our_patches((one, other) in pair()) {
        if one != other {
            let patch = patch(Some(&one), Some(&other));
            for made in judged(&patch, Some(&one)) {
                // An emptied file is none to patch.
                let made = made.map(Option::unwrap_or_default);
                prop_assert!(made.as_ref() == Some(&other), "{made:?} {patch}");
            }
        }
        let made = patch(None, Some(&other));
        let removed = patch(Some(&other), None);
        let [by_git, by_patch] = judged(&made, None);
        prop_assert!(by_git == Some(Some(other.clone())), "{by_git:?} {made}");
        prop_assert!(other.is_empty() || by_patch == Some(Some(other.clone())), "{by_patch:?} {made}");
        prop_assert_eq!(&judged(&removed, Some(&other))[0], &Some(None), "{}", removed);
    }

    #[test]
    fn we_take_the_patches_of_git_and_diff((one, other) in pair(), context in 1..4_u8) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("one"), &one).unwrap();
        fs::write(folder.path().join("other"), &other).unwrap();
        let context = format!("-U{context}");
        for (program, args) in [("git", vec!["diff", "--no-index", "--text", &context, "one", "other"]), ("diff", vec!["--text", &context, "one", "other"])] {
            let patch = String::from_utf8(run(folder.path(), program, &args).stdout).unwrap();
            if one != other {
                prop_assert_eq!(applied(&patch, Some(&one)), Ok(Some(other.clone())), "{} {}", program, patch);
            }
        }
    }

    /// Where a file has moved on above the changes, what git finds we find.
    #[test]
    fn what_git_accepts_in_a_file_that_has_changed_we_accept((one, other) in pair(), above in prop::collection::vec("[xyz]{1,2}", 0..6)) {
        if one != other && !one.is_empty() {
            let patch = patch(Some(&one), Some(&other));
            let moved: String = above.iter().map(|line| format!("{line}\n")).chain([one.clone()]).collect();
            let [by_git, _] = judged(&patch, Some(&moved));
            if let Some(by_git) = by_git {
                prop_assert_eq!(applied(&patch, Some(&moved)).map(Option::unwrap_or_default), Ok(by_git.unwrap_or_default()), "{}", patch);
            }
        }
    }
}

#[test]
fn texts_that_have_nothing_in_common_are_one_change() {
    let lines = |word: &str, count: usize| (0..count).map(|at| format!("{word} {at}\n")).collect::<String>();
    let (one, other) = (lines("a", MOST_LINES - 2), lines("b", MOST_LINES - 2));
    let (one, other) = (format!("first\n{one}last\n"), format!("first\n{other}last\n"));
    let diff = Diff::between(Some(new(&one)), Some(new(&other)));
    assert_eq!((diff.added(), diff.removed()), (MOST_LINES - 2, MOST_LINES - 2));
    let look = Look { columns: 40, lines: 7, context: 1, spell: str::to_owned };
    let shown = diff.shown(&look).lines();
    let rows = 2 * (MOST_LINES - 2) + 3 - 6;
    let left = format!("… {rows} more lines of the difference");
    assert_eq!(shown, ["@@ -1,262144 +1,262144 @@", " first", "-a 0", "-a 1", &left, "+b 262141", " last"]);
}

#[test]
fn a_difference_is_shown_as_people_know_it() {
    let look = Look { columns: 40, lines: 20, context: 1, spell: |line| line.escape_debug().to_string() };
    let shown = |one: &str, other: &str| Diff::between(Some(new(one)), Some(new(other))).shown(&look).lines();
    let rows = ["@@ -1,4 +1,4 @@", " a", "-b", "+B", " c", "-d", "+d", "\\ No newline at end of file"];
    assert_eq!(shown("a\nb\nc\nd\n", "a\nB\nc\nd"), rows);
    assert_eq!(shown("x\n", "x\r\n"), ["@@ -1 +1 @@", "-x", "+x\\r"]);
    // Both ends of a line are shown: what is meant to be overlooked may stand behind much else.
    let hidden = format!("make all{}; curl evil\n", " ".repeat(80));
    assert_eq!(shown("", &hidden)[1], "+make all        … 99 bytes … url evil");
    assert_eq!(shown("", &format!("{}\n", "漢".repeat(40)))[1], "+漢漢漢漢漢漢漢 … 120 bytes … 漢漢漢");
    assert_eq!(shown("a\n", "a\n"), Vec::<String>::new());
}
