//! What `fs.edit`, `fs.move` and `fs.remove` make of files, and that it is what the host said it would be before.
#![expect(clippy::indexing_slicing, reason = "a test stops at the first surprise")]

mod common;

use common::{Folder, engine, files};
use ephor_base::{Difference, Digest};
use ephor_sandbox::{GuestCall, ToolFailure};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"old": old, "new": new}]})
}

/// What the host says the call makes of its file.
fn foreseen(call: &GuestCall) -> Option<(Option<Digest>, Vec<String>)> {
    let makes = call.files[0].place.makes.as_ref()?;
    Some((makes.content, makes.difference.shown(usize::MAX)))
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_file_are_replaced_and_the_change_is_shown() {
    let folder = Folder::new();
    folder.write("a.rs", "fn a() {\r\n\tone();\r\n\ttwo();\r\n}\r\n");
    std::fs::set_permissions(folder.path("a.rs"), std::fs::Permissions::from_mode(0o750)).unwrap();
    let arguments =
        json!({"path": "a.rs", "edits": [{"old": "one()", "new": "1"}, {"old": "\r\n", "new": "\n", "all": true}]});
    let answer = folder.answer("fs.edit", arguments).await;
    assert_eq!(folder.read("a.rs"), "fn a() {\n\t1;\n\ttwo();\n}\n");
    assert_eq!(answer.summary, "edited `a.rs`: 4 lines removed, 4 lines added");
    let answer = folder.answer("fs.edit", edit("a.rs", "two()", "2")).await;
    assert_eq!(answer.content, "@@ -1,4 +1,4 @@\n fn a() {\n \t1;\n-\ttwo();\n+\t2;\n }\n");
    assert_eq!(std::fs::metadata(folder.path("a.rs")).unwrap().permissions().mode() & 0o777, 0o750);
    let patch = "--- a/a.rs\n+++ b/a.rs\n@@ -2,2 +2,3 @@\n \t1;\n+\t1.5;\n \t2;\n";
    let answer = folder.answer("fs.edit", json!({"path": "./a.rs", "patch": patch})).await;
    assert_eq!(answer.summary, "edited `a.rs`: 0 lines removed, 1 line added");
    assert_eq!(folder.read("a.rs"), "fn a() {\n\t1;\n\t1.5;\n\t2;\n}\n");
    // A patch makes files and removes them.
    let makes = json!({"path": "new/b", "patch": "--- /dev/null\n+++ b/new/b\n@@ -0,0 +1 @@\n+b\n"});
    assert_eq!(folder.answer("fs.edit", makes).await.summary, "made `new/b` with 1 line");
    assert_eq!(folder.read("new/b"), "b\n");
    let removes = json!({"path": "new/b", "patch": "--- a/new/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n"});
    assert_eq!(folder.answer("fs.edit", removes).await.summary, "removed `new/b`, which had 1 line");
    assert!(!folder.path("new").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_does_not_fit_changes_nothing_and_says_what_is_there() {
    let folder = Folder::new();
    folder
        .write("a", "one\n\ttwo\nthree\n")
        .write("binary", b"\0one")
        .write("latin", b"caf\xe9 one")
        .write("dir/x", "");
    folder.write("large", vec![b'x'; (4 << 20) + 1]).write("utf16", b"\xff\xfeo\0n\0");
    folder.write("long", "x\n".repeat(100_000));
    for (arguments, kind, word) in [
        (edit("a", "one\n  two\n", "x"), ToolFailure::Failed, "Whitespace alone differs: line 2"),
        (edit("a", "e", "x"), ToolFailure::Failed, "stands there 3 times, at lines 1, 3"),
        (edit("a", "zzzzz", "x"), ToolFailure::Failed, "`a` stays as it is"),
        (json!({"path": "a", "patch": "@@\n-four\n+4\n"}), ToolFailure::Failed, "hunk 1 of 1"),
        (json!({"path": "a", "patch": "-four\n+4\n"}), ToolFailure::InvalidArguments, "changes nothing"),
        (
            json!({"path": "a", "patch": "--- a\n+++ a\n@@\n-one\n+1\n--- b\n+++ b\n@@\n-one\n+1\n"}),
            ToolFailure::InvalidArguments,
            "for 2 files",
        ),
        (
            json!({"path": "a", "patch": "--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+evil\n"}),
            ToolFailure::InvalidArguments,
            "names another file",
        ),
        (
            json!({"path": "long", "patch": "@@ -1 +1 @@\n-x\n+y\n".repeat(1000)}),
            ToolFailure::Failed,
            "1000 hunks are too many for a file of 100000 lines",
        ),
        (json!({"path": "a"}), ToolFailure::InvalidArguments, "either `edits` or `patch`"),
        (json!({"path": "a", "edits": [], "patch": ""}), ToolFailure::InvalidArguments, "either"),
        (json!({"path": "a", "edits": []}), ToolFailure::InvalidArguments, "no edit"),
        (edit("a", "", "x"), ToolFailure::InvalidArguments, "edit 1: `old` is empty"),
        (edit("a", "one", "one"), ToolFailure::InvalidArguments, "the same"),
        (edit("none", "one", "1"), ToolFailure::NotFound, "`fs.write` makes a file"),
        (edit("dir", "one", "1"), ToolFailure::Refused, "directory"),
        (edit(".", "one", "1"), ToolFailure::Refused, "directory"),
        (edit("binary", "one", "1"), ToolFailure::Refused, "binary"),
        (edit("latin", "one", "1"), ToolFailure::Refused, "not UTF-8"),
        (edit("utf16", "one", "1"), ToolFailure::Refused, "UTF-16"),
        (edit("large", "x", "1"), ToolFailure::Refused, "too many to edit"),
    ] {
        let (found, message) = folder.refusal("fs.edit", arguments.clone()).await;
        assert_eq!(found, kind, "{arguments}: {message}");
        assert!(message.contains(word), "{arguments}: {message}");
    }
    assert_eq!(folder.read("a"), "one\n\ttwo\nthree\n");
    // Not even the edits before it.
    let both = json!({"path": "a", "edits": [{"old": "one", "new": "1"}, {"old": "four", "new": "4"}]});
    let (_, message) = folder.refusal("fs.edit", both).await;
    assert!(message.contains("edit 2 of 2") && message.contains("none of them was made"), "{message}");
    assert_eq!(folder.read("a"), "one\n\ttwo\nthree\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_what_was_judged() {
    let folder = Folder::new();
    folder.write("a", "one\ntwo\n");
    let call = folder.call("fs.edit", edit("a", "two", "2"));
    let lines = ["@@ -1,2 +1,2 @@", " one", "-two", "+2"].map(str::to_owned).to_vec();
    assert_eq!(foreseen(&call), Some((Some(Digest::of(b"one\n2\n")), lines)));
    // Other arguments, as if the guest made something else of it than the host.
    let other = GuestCall { arguments: edit("a", "two", "3").to_string(), ..call.clone() };
    let failed = engine().run(files(), other, std::future::pending()).await.unwrap_err();
    assert!(failed.to_string().contains("not what `a` was judged to become"), "{failed}");
    let write = folder.call("fs.write", json!({"path": "a", "content": "x"}));
    for content in [json!("y"), Value::Null] {
        let other = GuestCall { arguments: json!({"path": "a", "content": content}).to_string(), ..write.clone() };
        let failed = engine().run(files(), other, std::future::pending()).await.unwrap_err();
        assert!(failed.to_string().contains("not what `a` was judged to become"), "{failed}");
    }
    assert_eq!(folder.read("a"), "one\ntwo\n");
    // Another file than was judged.
    folder.write("a", "two\n");
    let failed = engine().run(files(), call.clone(), std::future::pending()).await.unwrap_err();
    assert_eq!(folder.read("a"), "two\n", "{failed}");
    folder.write("a", "one\ntwo\n");
    engine().run(files(), folder.call("fs.edit", edit("a", "two", "2")), std::future::pending()).await.unwrap();
    assert_eq!(folder.read("a"), "one\n2\n");
}

#[test]
fn what_a_call_makes_of_a_file_is_said_before_as_far_as_it_can_be() {
    let folder = Folder::new();
    folder.write("a", "one\n\u{1b}[2J\n").write("binary", b"\xff\0").write("large", vec![b'x'; (4 << 20) + 1]);
    folder.write("dir/x", "");
    let of = |tool: &str, arguments: Value| foreseen(&folder.call(tool, arguments));
    let write = |path: &str, content: Value| of("fs.write", json!({"path": path, "content": content}));
    let makes = |content: &[u8], lines: &[&str]| {
        Some((Some(Digest::of(content)), lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()))
    };
    assert_eq!(write("a", json!("two\n")), makes(b"two\n", &["@@ -1,2 +1 @@", "-one", "-\\u001b[2J", "+two"]));
    assert_eq!(write("new", json!("x")), makes(b"x", &["@@ -0,0 +1 @@", "+x", "\\ No newline at end of file"]));
    let removed = ["@@ -1,2 +0,0 @@", "-one", "-\\u001b[2J"].map(str::to_owned).to_vec();
    assert_eq!(write("a", Value::Null), Some((None, removed)));
    // Bytes that are no text are spelt. What is too large to be compared is shown as what it becomes.
    let unended = "\\ No newline at end of file";
    let binary = ["@@ -1 +1 @@", "-\\xff\\u0000", unended, "+x", unended];
    assert_eq!(write("binary", json!("x")), makes(b"x", &binary));
    assert_eq!(write("large", json!("x")), makes(b"x", &["+x"]));
    let base64 = of("fs.write", json!({"path": "new", "content": "/2EK", "encoding": "base64"}));
    assert_eq!(base64, makes(b"\xffa\n", &["@@ -0,0 +1 @@", "+\\xffa"]));
    let empty = "\n".repeat(300_000);
    let (_, lines) = write("a", json!(format!("first\n{empty}last\n"))).unwrap();
    assert_eq!((lines[0].as_str(), lines[9].as_str()), ("+first", "+last"));
    assert_eq!(lines[6], "… 299993 more lines of the difference");
    // A move shows what is moved.
    let call = folder.call("fs.move", moves("a", "b"));
    let moved = call.files[1].place.makes.as_ref().unwrap().difference.shown(usize::MAX);
    assert_eq!(moved, ["@@ -0,0 +1,2 @@", "+one", "+\\u001b[2J"]);
    // An edit that does not fit makes nothing of it.
    for arguments in [
        edit("a", "three", "3"),
        edit("large", "x", "y"),
        edit("binary", "x", "y"),
        edit("dir", "x", "y"),
        edit("new", "x", "y"),
    ] {
        assert_eq!(of("fs.edit", arguments.clone()), None, "{arguments}");
    }
    assert_eq!(write("dir", json!("x")), None);
    let long: String = (0..1000).map(|line| format!("{line}\n")).collect();
    let (_, lines) = write("a", json!(long)).unwrap();
    assert_eq!(lines.len(), Difference::LINES);
    assert!(
        lines.iter().any(|line| line.starts_with("… 99") && line.ends_with("more lines of the difference")),
        "{lines:?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("+999"));
}

fn moves(from: &str, to: &str) -> Value {
    json!({"from": from, "to": to})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_takes_another_name_and_is_the_same_file() {
    let folder = Folder::new();
    folder.write("a/one", [0xff, 0, 7]);
    std::fs::set_permissions(folder.path("a/one"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let inode = std::fs::metadata(folder.path("a/one")).unwrap().ino();
    let call = folder.call("fs.move", moves("a/one", "b/c/./two"));
    let made: Vec<_> = call.files.iter().map(|held| held.place.makes.as_ref().unwrap().content).collect();
    assert_eq!(made, [None, Some(Digest::of(&[0xff, 0, 7]))]);
    let answer = folder.answer("fs.move", moves("a/one", "b/c/./two")).await;
    assert_eq!(answer.summary, "moved `a/one` to `b/c/two`");
    let moved = std::fs::metadata(folder.path("b/c/two")).unwrap();
    assert_eq!((moved.ino(), moved.permissions().mode() & 0o777), (inode, 0o640));
    assert!(!folder.path("a").exists(), "a folder that it leaves empty goes too");
    // One that would not be made again as it is stays.
    std::fs::set_permissions(folder.path("b/c"), std::fs::Permissions::from_mode(0o700)).unwrap();
    folder.answer("fs.move", moves("b/c/two", "two")).await;
    assert!(folder.path("b/c").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_replaces_nothing_and_goes_nowhere_else() {
    let folder = Folder::new();
    folder.write("a", "a").write("b", "b").write("dir/x", "x").link("link", "a");
    for (from, to, kind, word) in [
        ("a", "b", ToolFailure::Refused, "exists already"),
        ("a", "dir", ToolFailure::Refused, "exists already"),
        ("a", "a", ToolFailure::Refused, "exists already"),
        ("a", "dir/", ToolFailure::Refused, "names a directory"),
        ("dir", "other", ToolFailure::Refused, "only regular files"),
        ("a", "b/c", ToolFailure::NotFound, "not a directory"),
        ("none", "c", ToolFailure::Refused, "only regular files"),
        ("a", "../c", ToolFailure::Refused, "leads out"),
        ("../secret", "c", ToolFailure::Refused, "leads out"),
        (".", "c", ToolFailure::Refused, "directory"),
        ("a", ".ephor-part", ToolFailure::Refused, "writing itself"),
    ] {
        let (found, message) = folder.refusal("fs.move", moves(from, to)).await;
        assert_eq!(found, kind, "{from} {to}: {message}");
        assert!(message.contains(word), "{from} {to}: {message}");
    }
    assert_eq!((folder.read("a"), folder.read("b")), ("a".to_owned(), "b".to_owned()));
    // What has changed since it was judged stays, and nothing is left of the folders that were made for it.
    let call = folder.call("fs.move", moves("a", "new/c"));
    folder.write("a", "A");
    let failed = engine().run(files(), call, std::future::pending()).await.unwrap_err();
    assert!(failed.to_string().contains("was changed since"), "{failed}");
    assert!(folder.read("a") == "A" && !folder.path("new").exists());
    let call = folder.call("fs.move", moves("a", "c"));
    folder.write("c", "mine");
    let failed = engine().run(files(), call, std::future::pending()).await.unwrap_err();
    assert!(failed.to_string().contains("was changed since"), "{failed}");
    assert_eq!((folder.read("a"), folder.read("c")), ("A".to_owned(), "mine".to_owned()));
    // Nor is another file moved than was judged, whatever the guest asks for.
    let call = folder.call("fs.move", moves("a", "d"));
    let other = GuestCall { arguments: moves("b", "d").to_string(), ..call };
    let failed = engine().run(files(), other, std::future::pending()).await.unwrap_err();
    assert!(failed.to_string().contains("not a file that this call was judged by"), "{failed}");
    let call = folder.call("fs.write", json!({"path": "a", "content": "x"}));
    let other = GuestCall { tool: "fs.remove".to_owned(), arguments: json!({"path": "a"}).to_string(), ..call };
    let failed = engine().run(files(), other, std::future::pending()).await.unwrap_err();
    assert!(failed.to_string().contains("not what `a` was judged to become"), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_empty_folders_are_removed_and_nothing_else() {
    let folder = Folder::new();
    folder.write("a/b/c", "four").write("dir/x", "x");
    std::fs::create_dir(folder.path("empty")).unwrap();
    let remove = |path: &str| json!({ "path": path });
    assert_eq!(folder.answer("fs.remove", remove("a/b/c")).await.summary, "removed `a/b/c`, which held 4 bytes");
    assert!(!folder.path("a").exists());
    assert_eq!(folder.answer("fs.remove", remove("empty/")).await.summary, "removed the empty folder `empty`");
    assert!(!folder.path("empty").exists());
    for (path, kind, word) in [
        ("dir", ToolFailure::Refused, "not empty"),
        (".", ToolFailure::Refused, "workspace itself"),
        ("none", ToolFailure::NotFound, "does not exist"),
        ("../secret", ToolFailure::Refused, "leads out"),
    ] {
        let (found, message) = folder.refusal("fs.remove", remove(path)).await;
        assert_eq!(found, kind, "{path}: {message}");
        assert!(message.contains(word), "{path}: {message}");
    }
    assert_eq!(folder.read("dir/x"), "x");
}
