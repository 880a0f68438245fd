//! Unified patches, as they are written down.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

use ephor_edit::{BadPatch, Hunkless, MOST_BYTES, Name, Patch, Text, TooLarge, Unpatched};

fn parse(patch: &str) -> Result<Patch, BadPatch> {
    Patch::parse(Text::new(patch).unwrap())
}

fn apply(text: &str, patch: &str) -> Result<String, Unpatched> {
    let patch = parse(patch).unwrap();
    assert_eq!(patch.sections().len(), 1);
    Ok(patch.sections()[0].apply(Some(Text::new(text).unwrap()))?.unwrap_or_default())
}

fn hunkless(text: &str, patch: &str) -> (usize, Hunkless) {
    match apply(text, patch).unwrap_err() {
        Unpatched::Hunk { number, why, .. } => (number, why),
        other => panic!("{other}"),
    }
}

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

#[test]
fn hunks_are_found_by_their_lines_and_numbers_are_hints() {
    let patch =
        "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ heading\n one\n-two\n+2\n three\n@@ -6,2 +6,3 @@\n six\n+6.5\n seven\n";
    let made = "one\n2\nthree\nfour\nfive\nsix\n6.5\nseven\neight\n";
    assert_eq!(apply(TEXT, patch).unwrap(), made);
    for other in [
        patch.replace("-1,3", "-70,3"),
        patch.replace("-6,2 +6,3", "-1,2 +1,3"),
        patch.replace(" -1,3 +1,3 @@ heading", ""),
    ] {
        assert_eq!(apply(TEXT, &other).unwrap(), made, "{other}");
    }
    // Counts that are wrong, no names, no end, an empty line that has lost its space.
    assert_eq!(apply(TEXT, "@@ -1,9 +1,2 @@\n one\n-two\n+2").unwrap(), made.replace("6.5\n", ""));
    assert_eq!(apply("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n\n").unwrap(), "a\n\nc\n");
    assert_eq!(apply("a\n\nb\n", "@@\n a\n\n-b\n+c\n\n\n").unwrap(), "a\n\nc\n");
    // Of several places the nearest, and without a number none.
    let twice = "x\na\nx\nb\nx\nc\n";
    assert_eq!(apply(twice, "@@ -4,1 +4,1 @@\n-x\n+y\n").unwrap(), "x\na\nx\nb\ny\nc\n");
    assert_eq!(apply(twice, "@@ -2 +2 @@\n-x\n+y\n").unwrap(), "x\na\ny\nb\nx\nc\n");
    let why = hunkless(twice, "@@\n-x\n+y\n").1;
    assert_eq!(why, Hunkless::Ambiguous { times: 3, lines: vec![1, 3, 5] });
    assert_eq!(why.to_string(), "it fits 3 times, at lines 1, 3, 5; give more lines around it, or line numbers");
}

#[test]
fn removed_lines_that_look_like_headers_are_lines() {
    let text = "-- a\n++ b\n@@ c\n";
    let patch = "--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n--- a\n+++ b\n-++ b\n @@ c\n";
    assert_eq!(apply(text, patch).unwrap(), "++ b\n@@ c\n");
}

#[test]
fn ends_of_lines_and_of_files_are_kept() {
    assert_eq!(apply("a\r\nb\r\nc\r\n", "@@ -1,3 +1,3 @@\n a\r\n-b\r\n+B\r\n c\r\n").unwrap(), "a\r\nB\r\nc\r\n");
    assert_eq!(apply("a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n").unwrap(), "A\nb");
    assert_eq!(apply("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n").unwrap(), "a\nb\n");
    assert_eq!(apply("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file").unwrap(), "a\nb");
    let (_, why) = hunkless("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n");
    assert!(why.to_string().contains("the file has CRLF"), "{why}");
}

#[test]
fn all_hunks_are_applied_or_none_and_the_miss_is_told() {
    let (number, why) = hunkless(TEXT, "@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -6,2 +6,2 @@\n six\n-Seven\n+7\n");
    assert_eq!(number, 2);
    assert!(why.to_string().contains("Of its 2 lines 1 stand there, but line 7 is `seven`, not `Seven`"), "{why}");
    let (_, why) = hunkless(TEXT, "@@ -6,2 +6,1 @@\n six\n-seven\n@@ -1,2 +1,1 @@\n one\n-two\n");
    assert_eq!(why, Hunkless::Before);
    let (_, why) = hunkless(TEXT, "@@ -6,2 +6,1 @@\n \tsix\n-seven \n");
    assert!(why.to_string().contains("Whitespace alone differs: line 6"), "{why}");
    assert_eq!(hunkless(TEXT, "@@ -2,0 +3,1 @@\n+new\n").1, Hunkless::Placeless);
}

#[test]
fn files_are_made_and_removed() {
    let makes = parse("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n").unwrap();
    let [section] = makes.sections() else { panic!("{makes:?}") };
    assert_eq!(section.apply(None).unwrap(), Some("a\nb".to_owned()));
    assert_eq!(section.apply(Some(Text::new("").unwrap())), Err(Unpatched::Exists));
    let removes = parse("--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n").unwrap();
    let [section] = removes.sections() else { panic!("{removes:?}") };
    assert_eq!(section.apply(Some(Text::new("a\nb\n").unwrap())).unwrap(), None);
    assert_eq!(section.apply(Some(Text::new("a\nb\nc\n").unwrap())), Err(Unpatched::Leftover(2)));
    assert_eq!(section.apply(None), Err(Unpatched::Absent));
    let changes = parse("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n").unwrap();
    assert_eq!(changes.sections()[0].apply(None), Err(Unpatched::Absent));
    assert_eq!(changes.sections()[0].apply(Some(Text::new("").unwrap())).unwrap(), Some("a\n".to_owned()));
    let bare = parse("@@ -0,0 +1 @@\n+a\n").unwrap();
    assert_eq!(bare.sections()[0].apply(None).unwrap(), Some("a\n".to_owned()));
}

#[test]
fn the_files_of_a_patch_are_told_apart() {
    let patch = "From: a mail\n\ntext - of it\n---\n a | 2 +-\ndiff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n\
                 diff --git \"a/\\303\\274\\t\" \"b/\\303\\274\\t\"\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ \"b/\\303\\274\\t\"\n@@ -0,0 +1 @@\n+z\n\
                 diff --git a/e b/e\nnew file mode 100644\nindex 0..e69de29\n\
                 diff --git a/g b/g\ndeleted file mode 100644\nindex 0..e69de29\n\
                 --- c d\t2026-01-01\n+++ c d\t2026-01-02\n@@ -1 +0,0 @@\n-q\n-- \n2.39.2\n\nanything\n";
    let patch = parse(patch).unwrap();
    let file = |name: &str| Name::File(name.to_owned());
    let names: Vec<_> =
        patch.sections().iter().map(|section| (section.before().clone(), section.after().clone())).collect();
    let expected = [
        (file("a"), file("a")),
        (Name::Nothing, file("ü\t")),
        (Name::Nothing, Name::Unsaid),
        (Name::Unsaid, Name::Nothing),
        (file("c d"), file("c d")),
    ];
    assert_eq!(names, expected);
    assert_eq!(patch.sections()[2].apply(None).unwrap(), Some(String::new()));
    assert_eq!(patch.sections()[3].apply(Some(Text::new("").unwrap())).unwrap(), None);
}

#[test]
fn what_is_not_understood_is_not_passed_over() {
    for (patch, word) in [
        ("", "changes nothing"),
        ("some words\n", "changes nothing"),
        ("--- a/x\n+++ b/x\n", "changes nothing"),
        ("@@ -1 +1 @@\n same\n", "line 1 of the patch changes nothing"),
        ("@@ -1,2 +1,2 @@\n one\n-two\n+2\nthree\n+4\n", "line 5 of the patch is part of no hunk: `three`"),
        ("@@ -1,2 +1,1 @@\n\tone\n-two\n", "line 2 of the patch is part of no hunk: `\\tone`"),
        ("@@ -a,2 +1 @@\n-x\n", "no header of a hunk"),
        ("@@@ -1,2 -1,2 +1 @@@\n-x\n", "no header of a hunk"),
        ("@@ -99999999999,2 +1 @@\n-x\n", "no header of a hunk"),
        ("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "part of no hunk"),
        ("diff --git a/x b/y\nrename from x\nrename to y\n", "a renamed file cannot be patched"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "a change of mode"),
        ("diff --git a/x b/x\nnew file mode 120000\n", "a symbolic link"),
        ("diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 0\n", "a binary file"),
        ("diff --git a/x b/x\nindex 1..2\nBinary files a/x and b/x differ\n", "a binary file"),
    ] {
        let why = parse(patch).unwrap_err().to_string();
        assert!(why.contains(word), "{patch}: {why}");
    }
    let many = "@@\n-x\n+y\n".repeat(1001);
    assert_eq!(parse(&many).unwrap_err(), BadPatch::Hunks);
    assert!(parse(&many[9..]).is_ok());
    let add = format!("@@\n-x\n+{}\n", "y".repeat(MOST_BYTES - 100));
    let why = apply(&format!("x\n{}\n", "z".repeat(MOST_BYTES - 100)), &add).unwrap_err();
    assert!(matches!(why, Unpatched::TooLarge(TooLarge::Bytes(_))), "{why}");
}

#[test]
fn hunks_that_overlap_themselves_cost_no_more_than_others() {
    let text = "a\n".repeat(200_000);
    let takes: String = " a\n".repeat(100_000);
    let made = apply(&text, &format!("@@ -50000,1 +1,1 @@\n{takes}+b\n")).unwrap();
    assert_eq!(made.len(), text.len() + 2);
    assert_eq!(made.find('b'), Some(2 * 149_999));
    let many = " a\n-a\n".repeat(500);
    let many: String = (0..100).map(|_| format!("@@\n{many}@@\n{many}")).collect();
    assert!(matches!(hunkless(&text, &many).1, Hunkless::Ambiguous { .. }));
}
