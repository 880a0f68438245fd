//! What the built-in file tools do, and where they stop, through the public face.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use common::{Folder, engine, files};
use ephor_sandbox::{Access, GuestCall, GuestFailure, LimitReached, ToolFailure};
use serde_json::json;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

// Reading.

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_read_as_it_is() {
    let folder = Folder::new();
    folder.write("a/b.txt", "one\r\ntwo\n\nlast without newline");
    let answer = folder.answer("fs.read", json!({"path": "a/b.txt"})).await;
    assert_eq!(answer.content, "one\r\ntwo\n\nlast without newline");
    assert_eq!(answer.summary, "lines 1 to 4 of `a/b.txt`");
    assert!(answer.omitted.is_empty());
    let empty = folder.write("empty", "").answer("fs.read", json!({"path": "./a/..//empty"})).await;
    assert_eq!((empty.content.as_str(), empty.summary.as_str()), ("", "`empty` is empty"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_file_is_read_page_by_page_and_nothing_is_lost() {
    let folder = Folder::new();
    let text: String = (1..=10_000).map(|line| format!("line {line} of the file\r\n")).collect();
    folder.write("long", &text);
    let (mut whole, mut offset, mut pages) = (String::new(), 1, 0);
    loop {
        let answer = folder.answer("fs.read", json!({"path": "long", "offset": offset})).await;
        whole.push_str(&answer.content);
        pages += 1;
        let Some(sentence) = answer.omitted.first() else { break };
        let next = sentence.rsplit("`offset` ").next().unwrap().trim_end_matches('.');
        offset = next.parse::<u64>().unwrap();
    }
    assert_eq!(whole, text);
    assert!(pages >= 5, "{pages}");

    let middle = folder.answer("fs.read", json!({"path": "long", "offset": 5000, "limit": 2})).await;
    assert_eq!(middle.content, "line 5000 of the file\r\nline 5001 of the file\r\n");
    let end = folder.answer("fs.read", json!({"path": "long", "offset": 10_000})).await;
    assert_eq!(end.content, "line 10000 of the file\r\n");
    assert!(end.omitted.is_empty());
    let (kind, message) = folder.refusal("fs.read", json!({"path": "long", "offset": 10_001})).await;
    assert_eq!(kind, ToolFailure::InvalidArguments);
    assert!(message.contains("has 10000 lines"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_longer_than_a_page_is_cut_aloud_and_its_rest_can_be_read() {
    let folder = Folder::new();
    folder.write("long", format!("{}\nnext\n", "ä".repeat(100_000)));
    let first = folder.answer("fs.read", json!({"path": "long"})).await;
    assert!(first.content.chars().all(|character| character == 'ä'));
    assert_eq!(first.content.len(), 65_536);
    assert_eq!(
        first.omitted,
        ["Line 1 of `long` goes on at byte 65536: call `fs.read` again with `offset` 1 and `byte` 65536."]
    );
    // All of it can be reached, and behind it the next line.
    let (mut whole, mut byte) = (first.content, 65_536);
    while byte < 200_000 {
        let part = folder.answer("fs.read", json!({"path": "long", "offset": 1, "byte": byte})).await;
        whole.push_str(&part.content);
        byte += part.content.len();
    }
    assert_eq!(whole, format!("{}\nnext\n", "ä".repeat(100_000)));
    let (kind, message) = folder.refusal("fs.read", json!({"path": "long", "offset": 2, "byte": 5})).await;
    assert_eq!(kind, ToolFailure::InvalidArguments, "{message}");
    let second = folder.answer("fs.read", json!({"path": "long", "offset": 2})).await;
    assert_eq!(second.content, "next\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_file_costs_a_page() {
    let folder = Folder::new();
    let file = std::fs::File::create(folder.path("huge")).unwrap();
    std::io::Write::write_all(&mut &file, "first\n".repeat(20_000).as_bytes()).unwrap();
    file.set_len(8 * 1024 * 1024 * 1024).unwrap();
    let answer = folder.answer("fs.read", json!({"path": "huge"})).await;
    assert_eq!(answer.content.lines().count(), 2_000);
    assert!(answer.omitted[0].contains("`offset` 2001"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_file_is_named_as_one() {
    let folder = Folder::new();
    folder.write("image", b"\x89PNG\0\0\0 TODO");
    let answer = folder.answer("fs.read", json!({"path": "image"})).await;
    assert_eq!(answer.content, "`image` is a binary file of 12 bytes.");
    assert_eq!(answer.omitted.len(), 1);
    let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
    assert_eq!(found.content, "");
    assert_eq!(found.omitted, ["1 binary file was not searched: `image`."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_not_utf_8_is_read_and_said_to_be() {
    let folder = Folder::new();
    folder.write("latin", b"caf\xe9 TODO\n");
    let answer = folder.answer("fs.read", json!({"path": "latin"})).await;
    assert_eq!(answer.content, "caf\u{fffd} TODO\n");
    assert_eq!(answer.omitted, ["Some bytes of `latin` are not UTF-8; each stands as U+FFFD."]);
    let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
    assert_eq!(found.content, "latin:1: caf\u{fffd} TODO\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_do_not_fit_are_named() {
    let folder = Folder::new();
    folder.write("a", "");
    for (tool, arguments, word) in [
        ("fs.read", json!({}), "missing field `path`"),
        ("fs.read", json!({"path": "a", "ofset": 1}), "unknown field `ofset`"),
        ("fs.read", json!({"path": 1}), "invalid type"),
        ("fs.read", json!({"path": "a", "offset": 0}), "count from 1"),
        ("fs.read", json!({"path": "a", "limit": -1}), "invalid value"),
        ("fs.read", json!({"path": ""}), "`path` is empty"),
        ("fs.read", json!({"path": "a\u{0}b"}), "NUL"),
        ("fs.search", json!({"pattern": "(unclosed"}), "unclosed group"),
        ("fs.search", json!({"pattern": "a\\nb"}), "not allowed"),
        ("fs.write", json!({"path": "a"}), "missing field `content`"),
        ("fs.list", json!([]), "invalid"),
    ] {
        let (kind, message) = folder.refusal(tool, arguments.clone()).await;
        assert_eq!(kind, ToolFailure::InvalidArguments, "{tool} {arguments}: {message}");
        assert!(message.contains(word), "{tool} {arguments}: {message}");
    }
    let (kind, message) = folder.refusal("fs.delete", json!({})).await;
    assert_eq!(kind, ToolFailure::UnknownTool);
    assert!(message.contains("`fs.delete`"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_is_not_found() {
    let folder = Folder::new();
    folder.write("file", "");
    for path in ["none", "none/below", "file/below", "~/x", "%2e%2e/secret", "..\\secret", "C:\\secret"] {
        for tool in ["fs.read", "fs.list"] {
            let (kind, message) = folder.refusal(tool, json!({ "path": path })).await;
            assert_eq!(kind, ToolFailure::NotFound, "{tool} {path}: {message}");
        }
    }
    let (kind, _) = folder.refusal("fs.search", json!({"pattern": "x", "path": "none"})).await;
    assert_eq!(kind, ToolFailure::NotFound);
}

// Staying inside.

#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_a_path_leads_out() {
    let folder = Folder::new();
    folder.write("a/inside", "inside\n").link("up", "..").link("out", folder.outside("")).link("loop", "loop");
    folder.link("secret-link", "../secret").link("a/far", "../../secret").link("absolute", folder.outside("secret"));
    let absolute = folder.outside("secret").to_str().unwrap().to_owned();
    let absolute_inside = folder.path("a/inside").to_str().unwrap().to_owned();
    let mut paths = vec![absolute, absolute_inside, "/etc/passwd".to_owned(), "//etc/passwd".to_owned()];
    paths.extend(
        [
            "../secret",
            "./../secret",
            "a/../../secret",
            "a/.././../secret",
            "..//secret",
            "../workspace/../secret",
            "..",
            "../",
            "up/secret",
            "./up/secret",
            "a/../up/secret",
            "out/secret",
            "secret-link",
            "a/far",
            "absolute",
            "/proc/self/environ",
            "loop",
        ]
        .map(str::to_owned),
    );
    for path in paths {
        let write = json!({"path": path, "content": "changed"});
        let search = json!({"path": path, "pattern": "TODO"});
        for (tool, arguments) in [
            ("fs.read", json!({ "path": path })),
            ("fs.list", json!({ "path": path })),
            ("fs.search", search),
            ("fs.write", write),
        ] {
            let (kind, message) = folder.refusal(tool, arguments).await;
            assert_eq!(kind, ToolFailure::Refused, "{tool} {path}: {message}");
            assert!(!message.contains("keep secret"), "{tool} {path}: {message}");
        }
    }
    assert_eq!(std::fs::read_to_string(folder.outside("secret")).unwrap(), "TODO: keep secret\n");
    assert_eq!(std::fs::read_dir(folder.outside("")).unwrap().count(), 2);
    // What looks like a way out and is none.
    assert_eq!(folder.answer("fs.read", json!({"path": "b/../a/inside"})).await.content, "inside\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_inside_are_followed_when_they_are_named() {
    let folder = Folder::new();
    folder.write("a/file", "TODO\n").link("file-link", "a/file").link("dir-link", "a").link("a/back", "../a/file");
    for path in ["file-link", "dir-link/file", "a/back", "dir-link/back"] {
        assert_eq!(folder.answer("fs.read", json!({ "path": path })).await.content, "TODO\n", "{path}");
    }
    let found = folder.answer("fs.search", json!({"pattern": "TODO", "path": "dir-link"})).await;
    assert_eq!(found.content, "a/file:1: TODO\n");
    // A search that comes upon them does not, and says so.
    let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
    assert_eq!(found.content, "a/file:1: TODO\n");
    assert_eq!(found.omitted, ["3 symbolic links were not followed: `a/back`, `dir-link`, `file-link`."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_regular_file_is_refused_at_once() {
    let folder = Folder::new();
    folder.fifo("fifo").link("fifo-link", "fifo").write("a", "TODO\n");
    let _socket = std::os::unix::net::UnixListener::bind(folder.path("socket")).unwrap();
    let mut names = vec!["fifo", "fifo-link", "socket"];
    // The numbers of /dev/null. Only root may make one.
    match folder.node("device", rustix::fs::FileType::CharacterDevice, rustix::fs::makedev(1, 3)) {
        Ok(()) => names.push("device"),
        Err(error) => println!("skipped the device: {error}"),
    }
    let all = async {
        for name in &names {
            for (tool, arguments) in [
                ("fs.read", json!({ "path": name })),
                ("fs.list", json!({ "path": name })),
                ("fs.search", json!({"path": name, "pattern": "x"})),
                ("fs.write", json!({"path": name, "content": "x"})),
            ] {
                let (kind, message) = folder.refusal(tool, arguments).await;
                assert_eq!(kind, ToolFailure::Refused, "{tool} {name}: {message}");
                assert!(message.contains("only regular files"), "{tool} {name}: {message}");
            }
        }
        let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
        assert_eq!(found.content, "a:1: TODO\n");
        assert!(found.omitted.iter().any(|sentence| sentence.contains("no regular file")), "{:?}", found.omitted);
    };
    tokio::time::timeout(Duration::from_secs(10), all).await.unwrap();
}

// Listing.

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_listed_with_what_each_entry_is() {
    let folder = Folder::new();
    folder.write("b.txt", "12345").write("a/inner", "").write(".hidden", "1").link("link", "b.txt").fifo("pipe");
    folder.link("out", "/etc");
    std::fs::write(folder.path("").join(std::ffi::OsStr::from_bytes(b"bad\xff")), "x").unwrap();
    std::fs::write(folder.path("new\nline"), "x").unwrap();
    let answer = folder.answer("fs.list", json!({"path": "."})).await;
    assert_eq!(
        answer.content,
        ".hidden (1 byte)\na/\nb.txt (5 bytes)\nlink -> b.txt\nnew\\nline (1 byte)\nout -> (outside the workspace)\n\
         pipe (a FIFO)\n"
    );
    assert_eq!(answer.summary, "8 entries in `.`");
    assert_eq!(answer.omitted, ["1 entry is left out: the name is not UTF-8."]);
    let (kind, _) = folder.refusal("fs.list", json!({"path": "b.txt"})).await;
    assert_eq!(kind, ToolFailure::Refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowded_directory_is_listed_in_part_and_says_so() {
    let folder = Folder::new();
    for number in 0..1_200 {
        folder.write(&format!("f{number:04}"), "");
    }
    let answer = folder.answer("fs.list", json!({"path": "."})).await;
    assert_eq!(answer.content.lines().count(), 1_000);
    assert_eq!(answer.omitted, ["200 entries after these are left out: call `fs.list` again with `after` `f0999`."]);
    assert_eq!(answer.summary, "1200 entries in `.`");
    let rest = folder.answer("fs.list", json!({"path": ".", "after": "f0999"})).await;
    assert_eq!(rest.content.lines().count(), 200);
    assert!(rest.content.starts_with("f1000 ") && rest.content.contains("f1199 ") && rest.omitted.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_workspace_has_nothing() {
    let folder = Folder::new();
    let listed = folder.answer("fs.list", json!({"path": "."})).await;
    assert_eq!((listed.content.as_str(), listed.summary.as_str()), ("", "0 entries in `.`"));
    let found = folder.answer("fs.search", json!({"pattern": "x"})).await;
    assert_eq!((found.content.as_str(), found.summary.as_str()), ("", "0 matches in 0 files, 0 searched"));
    assert!(found.omitted.is_empty());
}

// Searching.

#[tokio::test(flavor = "multi_thread")]
async fn every_match_is_found_with_file_and_line_and_nothing_else() {
    let folder = Folder::new();
    folder
        .write("src/a.rs", "fn a() {} // TODO: one\r\n\r\n    // todo: not this\r\n// TODO: two TODO\r\n")
        .write("src/a/b.rs", "TODO\n")
        .write("src/a-b.rs", "no\nTODO")
        .write("z", "TODO\n")
        .write(".git/config", "TODO\n")
        .write("sub/.git", "gitdir: TODO\n")
        .write(".github/x.yml", "# TODO\n");
    let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
    // In the order of the bytes of the paths.
    assert_eq!(
        found.content,
        ".github/x.yml:1: # TODO\nsrc/a-b.rs:2: TODO\nsrc/a.rs:1: fn a() {} // TODO: one\nsrc/a.rs:4: // TODO: two TODO\n\
         src/a/b.rs:1: TODO\nz:1: TODO\n"
    );
    assert_eq!(found.summary, "6 matches in 5 files, 5 searched");
    assert!(found.omitted.is_empty());

    let one = folder.answer("fs.search", json!({"pattern": "(?i)^\\s*// todo: not.*this$", "path": "./src"})).await;
    assert_eq!(one.content, "src/a.rs:3:     // todo: not this\n");
    let file = folder.answer("fs.search", json!({"pattern": "^TODO$", "path": "src/a/b.rs"})).await;
    assert_eq!(file.content, "src/a/b.rs:1: TODO\n");
    // A pattern that could match across lines does not, and an empty match counts each line once.
    let across = folder.answer("fs.search", json!({"pattern": "one\\s+todo", "path": "src"})).await;
    assert_eq!(across.content, "");
    let lines = folder.answer("fs.search", json!({"pattern": "", "path": "src/a-b.rs"})).await;
    assert_eq!(lines.content, "src/a-b.rs:1: no\nsrc/a-b.rs:2: TODO\n");
    let empty = folder.answer("fs.search", json!({"pattern": "^$", "path": "src/a.rs"})).await;
    assert_eq!(empty.content, "src/a.rs:2: \n");
}

#[tokio::test(flavor = "multi_thread")]
async fn ignore_files_hold_at_every_level() {
    let folder = Folder::new();
    folder
        .write(".gitignore", "\u{feff}*.log\r\n/build/\n!keep.log\n# comment\ntarget/\n")
        .write("a.log", "TODO\n")
        .write("keep.log", "TODO\n")
        .write("build/x", "TODO\n")
        .write("build/keep.log", "TODO\n")
        .write("src/build/x", "TODO\n")
        .write("src/target/x", "TODO\n")
        .write("src/.gitignore", "secret*\n!a.log\n")
        .write("src/a.log", "TODO\n")
        .write("src/secret.rs", "TODO\n")
        .write("src/deep/secret", "TODO\n")
        .write("src/deep/.gitignore", "!secret\n")
        .write("other/secret.rs", "TODO\n");
    let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
    assert_eq!(
        found.content,
        "keep.log:1: TODO\nother/secret.rs:1: TODO\nsrc/a.log:1: TODO\nsrc/build/x:1: TODO\nsrc/deep/secret:1: TODO\n"
    );
    assert!(found.summary.ends_with("4 entries ignored by .gitignore"), "{}", found.summary);
    // The rules above the folder that is searched hold too; the folder itself was named on purpose.
    let below = folder.answer("fs.search", json!({"pattern": "TODO", "path": "src"})).await;
    assert_eq!(below.content, "src/a.log:1: TODO\nsrc/build/x:1: TODO\nsrc/deep/secret:1: TODO\n");
    let named = folder.answer("fs.search", json!({"pattern": "TODO", "path": "build"})).await;
    assert_eq!(named.content, "build/keep.log:1: TODO\nbuild/x:1: TODO\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_matches_are_counted_and_said_to_be_left_out() {
    let folder = Folder::new();
    for number in 0..2_000 {
        folder.write(&format!("f{number:04}"), format!("{} TODO\nTODO\n", "x".repeat(60)));
    }
    let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
    assert_eq!(found.summary, "4000 matches in 2000 files, 2000 searched");
    let shown = found.content.lines().count();
    assert!(shown > 500, "{shown}");
    let sentence = &found.omitted[0];
    assert!(sentence.starts_with(&format!("{} matches", 4_000 - shown)), "{shown}: {sentence}");
    let next = format!("from `f{:04}:{}` to `f1999:2`", shown / 2, shown % 2 + 1);
    assert!(sentence.contains(&next), "{next}: {sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lines_are_shown_around_the_match() {
    let folder = Folder::new();
    folder.write("min.js", format!("{}TODO{}\nTODO\n", "a".repeat(100_000), "é".repeat(3_000_000)));
    let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
    let lines: Vec<&str> = found.content.lines().collect();
    assert!(lines[0].starts_with("min.js:1: …aaa") && lines[0].contains("aTODOé") && lines[0].ends_with("é…"));
    assert!(lines[0].len() < 450);
    assert_eq!(lines[1], "min.js:2: TODO");
    assert_eq!(
        found.omitted,
        [
            "1 long line is shown in part, around the match; `…` marks where.",
            "1 line is over 4 MiB and only its beginning was searched: `min.js:1`."
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_is_searched_to_its_end() {
    let folder = Folder::new();
    let mut text = "nothing here at all\n".repeat(1_000_000);
    text.push_str("TODO at the end");
    folder.write("large", text);
    let found = folder.answer("fs.search", json!({"pattern": "T.DO"})).await;
    assert_eq!(found.content, "large:1000001: TODO at the end\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_cannot_be_told_are_counted() {
    let folder = Folder::new();
    folder.write("a", "TODO\n");
    std::fs::write(folder.path("").join(std::ffi::OsStr::from_bytes(b"bad\xff")), "TODO\n").unwrap();
    let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
    assert_eq!(found.content, "a:1: TODO\n");
    assert_eq!(found.omitted, ["1 entry was not searched: the name is not UTF-8."]);
}

#[test]
fn what_may_not_be_read_is_named() {
    // Root may read everything, so the guest's threads are another user's.
    let is_root = rustix::process::geteuid().is_root();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(move || {
            if is_root {
                let nobody = rustix::process::Uid::from_raw(65_534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
        })
        .build()
        .unwrap();
    let folder = Folder::new();
    folder.write("a", "TODO\n").write("closed", "TODO\n").write("dir/a", "TODO\n");
    for name in ["closed", "dir"] {
        std::fs::set_permissions(folder.path(name), std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    let (refused, found) = runtime.block_on(async {
        let refused = folder.refusal("fs.read", json!({"path": "closed"})).await;
        (refused, folder.answer("fs.search", json!({"pattern": "TODO"})).await)
    });
    std::fs::set_permissions(folder.path("dir"), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(refused, (ToolFailure::Io, "`closed`: permission denied".to_owned()));
    assert_eq!(found.content, "a:1: TODO\n");
    assert_eq!(found.omitted, ["2 paths could not be read: `closed`, `dir`."]);
}

// Writing.

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_written_with_its_parents_and_replaced_whole() {
    let folder = Folder::new();
    let new = folder.answer("fs.write", json!({"path": "a/b/c.txt", "content": "grüße\n"})).await;
    assert_eq!(new.summary, "wrote 8 bytes to the new file `a/b/c.txt`");
    assert_eq!(folder.read("a/b/c.txt"), "grüße\n");
    std::fs::set_permissions(folder.path("a/b/c.txt"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let replaced = folder.answer("fs.write", json!({"path": "a/b/c.txt", "content": ""})).await;
    assert_eq!(replaced.summary, "wrote 0 bytes to `a/b/c.txt` in place of 8 bytes");
    assert_eq!(folder.read("a/b/c.txt"), "");
    let mode = std::fs::metadata(folder.path("a/b/c.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "a script stays executable");
    let large = "0123456789abcdef".repeat(200_000);
    folder.answer("fs.write", json!({"path": "large", "content": large})).await;
    assert_eq!(folder.read("large"), large);
    let listed = folder.answer("fs.list", json!({"path": "a/b"})).await;
    assert_eq!(listed.content, "c.txt (0 bytes)\n", "nothing is left beside the file");
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_through_a_link_writes_the_file_it_names() {
    let folder = Folder::new();
    folder.write("a/file", "old").link("link", "a/file").link("dir", "a").link("a/up", "../top");
    folder.answer("fs.write", json!({"path": "link", "content": "new"})).await;
    assert_eq!(folder.read("a/file"), "new");
    assert!(std::fs::symlink_metadata(folder.path("link")).unwrap().is_symlink());
    folder.answer("fs.write", json!({"path": "dir/other", "content": "2"})).await;
    assert_eq!(folder.read("a/other"), "2");
    folder.answer("fs.write", json!({"path": "dir/up", "content": "3"})).await;
    assert_eq!(folder.read("top"), "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_is_refused_and_leaves_nothing() {
    let folder = Folder::new();
    folder.write("file", "old").write("dir/x", "x");
    for (path, kind) in [
        ("dir", ToolFailure::Refused),
        (".", ToolFailure::Refused),
        ("new/", ToolFailure::Refused),
        ("file/below", ToolFailure::NotFound),
    ] {
        let (found, message) = folder.refusal("fs.write", json!({"path": path, "content": "x"})).await;
        assert_eq!(found, kind, "{path}: {message}");
    }
    let long = format!("made/{}", "x".repeat(300));
    let (kind, message) = folder.refusal("fs.write", json!({"path": long, "content": "x"})).await;
    assert_eq!(kind, ToolFailure::InvalidArguments, "{message}");
    let listed = folder.answer("fs.list", json!({"path": "."})).await;
    assert_eq!(listed.content, "dir/\nfile (3 bytes)\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_workspace_is_not_written() {
    let folder = Folder::new();
    folder.write("file", "old");
    for path in ["file", "new", "made/new"] {
        let call = folder.call("fs.write", json!({"path": path, "content": "x"}));
        let call = GuestCall { access: Access::ReadOnly, ..call };
        match engine().run(files(), call, std::future::pending()).await {
            Err(GuestFailure::Tool { kind: ToolFailure::Refused, message }) => {
                assert!(message.contains("read-only"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(folder.read("file"), "old");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 1);
}

// Together.

#[tokio::test(flavor = "multi_thread")]
async fn more_calls_than_there_are_slots_all_get_their_own_answer() {
    let folder = std::sync::Arc::new(Folder::new());
    for number in 0..200 {
        folder.write(&format!("f{number}"), format!("content {number}"));
    }
    let calls: Vec<_> = (0..200)
        .map(|number| {
            let folder = folder.clone();
            tokio::spawn(async move {
                let read = folder.answer("fs.read", json!({"path": format!("f{number}")})).await;
                let written = json!({"path": format!("made/w{number}"), "content": read.content});
                folder.answer("fs.write", written).await;
                (number, read.content)
            })
        })
        .collect();
    for call in calls {
        let (number, content) = call.await.unwrap();
        assert_eq!(content, format!("content {number}"));
        assert_eq!(folder.read(&format!("made/w{number}")), content);
    }
}

// Limits, and what was found before them.

#[tokio::test(flavor = "multi_thread")]
async fn what_a_search_found_stays_when_a_limit_ends_it() {
    let folder = Folder::new();
    folder
        .write("a.txt", "TODO first\n")
        .write("b.txt", "nothing here at all\n".repeat(500_000))
        .write("c.txt", "TODO\n");
    let call = folder.call("fs.search", json!({"pattern": "T(O|0)D[O0]|n.t.i.g.h.r.e.t"}));
    let whole = engine().run(files(), call.clone(), std::future::pending()).await.unwrap();
    let limits = ephor_base::Limits { fuel: whole.fuel / 2, ..call.limits };
    let answer = engine().run(files(), GuestCall { limits, ..call }, std::future::pending()).await.unwrap();
    assert_eq!(answer.content, "a.txt:1: TODO first\n");
    let (reached, at) = answer.cut.unwrap();
    assert!(matches!(reached, LimitReached::Fuel { .. }), "{reached:?}");
    assert_eq!(at, "b.txt", "what is left out is said");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_end_hides_no_other_file() {
    let folder = Folder::new();
    folder.write("a.txt", "TODO\n").write("z.txt", "TODO\n");
    let file = std::fs::File::create(folder.path("endless")).unwrap();
    std::io::Write::write_all(&mut &file, "TODO without end ".repeat(1_000).as_bytes()).unwrap();
    file.set_len(64 * 1024 * 1024 * 1024).unwrap();
    let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
    assert!(found.cut.is_none());
    assert!(
        found.content.starts_with("a.txt:1: TODO\n") && found.content.ends_with("z.txt:1: TODO\n"),
        "{}",
        found.content
    );
    assert!(
        found.omitted.iter().any(|said| said.contains("over 256 MiB") && said.contains("`endless:1`")),
        "{:?}",
        found.omitted
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_that_takes_too_much_memory_is_an_error_that_says_so() {
    let folder = Folder::new();
    folder.write("a.txt", "TODO\n");
    for pattern in [r"(?:\w{1000}){100}", r"[\w\W]{100000}", r"(?i)(?:\pL{200}x){50}"] {
        let (kind, message) = folder.refusal("fs.search", json!({ "pattern": pattern })).await;
        assert_eq!(kind, ToolFailure::InvalidArguments, "{message}");
        assert!(message.contains("size limit"), "{pattern}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_more_names_than_fit_into_memory_is_searched_whole() {
    let folder = Folder::new();
    let name = |number: u32| format!("{number:05}-{}", "n".repeat(200));
    for number in 0..30_000 {
        folder.write(&name(number), if number % 10_000 == 7 { "TODO\n" } else { "" });
    }
    let call = folder.call("fs.search", json!({"pattern": "TODO"}));
    let limits = ephor_base::Limits { memory_bytes: 32 * 1024 * 1024, ..call.limits };
    let found = engine().run(files(), GuestCall { limits, ..call }, std::future::pending()).await.unwrap();
    let expected: String = [7, 10_007, 20_007].map(|number| format!("{}:1: TODO\n", name(number))).concat();
    assert_eq!(found.content, expected);
    assert_eq!(found.summary, "3 matches in 3 files, 30000 searched");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_beginning_of_a_pattern_means_that_of_a_line_wherever_the_file_is_cut() {
    let folder = Folder::new();
    // Lines of 10 bytes, so that pieces of 65,536 bytes begin anywhere within one.
    folder.write("a", "xxTODOxxx\n".repeat(100_000)).write("b", format!("{}\nTODO\n", "y".repeat(70_000)));
    for pattern in [r"\ATODO", "(?-m)^TODO", "^TODO", r"(?:\A|z)TODO", r"TODO\z", "(?-m)TODO$"] {
        let found = folder.answer("fs.search", json!({ "pattern": pattern })).await;
        assert_eq!(found.content, "b:2: TODO\n", "{pattern}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_order_mark_is_no_part_of_a_line_and_utf_16_is_said_to_be_that() {
    let folder = Folder::new();
    folder.write("marked", "\u{feff}foo\nbar\n");
    let wide: Vec<u8> = "\u{feff}foo\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    folder.write("wide", &wide);
    let found = folder.answer("fs.search", json!({"pattern": "^foo"})).await;
    assert_eq!(found.content, "marked:1: foo\n");
    assert_eq!(found.omitted, ["1 file in UTF-16 was not searched: `wide`."]);
    let read = folder.answer("fs.read", json!({"path": "wide"})).await;
    assert_eq!(read.content, "`wide` is a UTF-16 file of 10 bytes.");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_withheld_is_left_out_of_a_search_and_found_where_it_is_named() {
    let folder = Folder::new();
    folder.write("a.txt", "TODO\n").write("x/.secret/y", "TODO hidden\n").write(".secret", "TODO hidden\n");
    let found = folder.answer("fs.search", json!({"pattern": "TODO"})).await;
    assert_eq!(found.content, "a.txt:1: TODO\n");
    assert!(
        found.omitted[0].starts_with("2 paths may hold secrets") && found.omitted[0].contains("`x/.secret`"),
        "{:?}",
        found.omitted
    );
    let below = folder.answer("fs.search", json!({"pattern": "TODO", "path": "x"})).await;
    assert_eq!(below.content, "");
    // A call that was judged by them is shown them.
    let named = folder.answer("fs.search", json!({"pattern": "TODO", "path": "x/.secret"})).await;
    assert_eq!(named.content, "x/.secret/y:1: TODO hidden\n");
    assert_eq!(folder.answer("fs.read", json!({"path": ".secret"})).await.content, "TODO hidden\n");
}

// Replacing.

fn mode(folder: &Folder, name: &str) -> u32 {
    std::fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777
}

fn chmod(folder: &Folder, name: &str, mode: u32) {
    std::fs::set_permissions(folder.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_replaced_file_keeps_mode_and_owner_and_is_never_readable_more_widely() {
    let folder = Folder::new();
    folder.write("private", "old");
    chmod(&folder, "private", 0o600);
    let owner = std::os::unix::fs::chown(folder.path("private"), Some(65_534), Some(65_533));
    let over = std::sync::atomic::AtomicBool::new(false);
    let path = folder.path("");
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut wide = Vec::new();
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let entries = std::fs::read_dir(&path).unwrap().flatten();
                let modes =
                    entries.filter_map(|entry| Some((entry.file_name(), entry.metadata().ok()?.permissions().mode())));
                wide.extend(modes.filter(|(_, mode)| mode & 0o077 != 0));
            }
            wide
        });
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let write = |round| json!({"path": "private", "content": format!("new {round}")});
        let written: Vec<_> = (0..50).map(|round| runtime.block_on(folder.run("fs.write", write(round)))).collect();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(written.iter().all(Result::is_ok), "{written:?}");
        assert_eq!(watcher.join().unwrap(), []);
    });
    assert_eq!(folder.read("private"), "new 49");
    assert_eq!(mode(&folder, "private"), 0o600);
    let stat = std::fs::metadata(folder.path("private")).unwrap();
    match owner {
        Ok(()) => assert_eq!(
            (std::os::unix::fs::MetadataExt::uid(&stat), std::os::unix::fs::MetadataExt::gid(&stat)),
            (65_534, 65_533)
        ),
        Err(error) => println!("SKIPPED the owner: {error}"),
    }
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1, "nothing is left beside it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_kept_is_said_and_what_is_protected_is_not_replaced() {
    let folder = Folder::new();
    folder.write("one", "old").write("protected", "old");
    std::fs::hard_link(folder.path("one"), folder.path("other")).unwrap();
    let answer = folder.answer("fs.write", json!({"path": "one", "content": "new"})).await;
    assert!(answer.content.contains("1 more names (hard links), which keep what it held before"), "{}", answer.content);
    assert_eq!((folder.read("one").as_str(), folder.read("other").as_str()), ("new", "old"));
    chmod(&folder, "protected", 0o444);
    let (kind, message) = folder.refusal("fs.write", json!({"path": "protected", "content": "new"})).await;
    assert_eq!(kind, ToolFailure::Refused);
    assert!(message.contains("write-protected"), "{message}");
    assert_eq!(folder.read("protected"), "old");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_the_name_of_a_half_made_file_stays_and_blocks_nothing() {
    let folder = Folder::new();
    folder.write("file", "old").write(".ephor-part", "mine");
    for number in 0..64 {
        folder.write(&format!(".ephor-part-{number}"), "mine");
    }
    folder.write(".ephor-part-x/y", "a folder");
    folder.answer("fs.write", json!({"path": "file", "content": "new"})).await;
    assert_eq!(folder.read("file"), "new");
    folder.answer("fs.remove", json!({"path": "file"})).await;
    assert!(!folder.path("file").exists());
    assert_eq!((folder.read(".ephor-part"), folder.read(".ephor-part-0")), ("mine".to_owned(), "mine".to_owned()));
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 66);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_file_that_was_judged_is_replaced() {
    type Change = fn(&Folder);
    let changes: [(&str, Change); 6] = [
        ("file", |folder| {
            folder.write("file", "edited");
        }),
        ("file", |folder| {
            folder.write("else", "old");
            std::fs::rename(folder.path("else"), folder.path("file")).unwrap();
        }),
        ("file", |folder| std::fs::remove_file(folder.path("file")).unwrap()),
        ("file", |folder| {
            std::fs::rename(folder.path("file"), folder.path("moved")).unwrap();
            folder.link("file", "moved");
        }),
        ("new", |folder| {
            folder.write("new", "made by another");
        }),
        ("folder/new", |folder| {
            std::fs::rename(folder.path("folder"), folder.path("away")).unwrap();
            std::fs::create_dir(folder.path("folder")).unwrap();
        }),
    ];
    for (number, (path, change)) in changes.into_iter().enumerate() {
        let folder = Folder::new();
        folder.write("file", "old").write("folder/x", "x");
        let call = folder.call("fs.write", json!({"path": path, "content": "written"}));
        change(&folder);
        match engine().run(files(), call, std::future::pending()).await {
            Err(GuestFailure::Tool { kind: ToolFailure::Failed, message }) => {
                assert!(message.contains("changed since this call was judged"), "{number}: {message}");
            }
            other => panic!("{number}: {other:?}"),
        }
        for name in ["file", "new", "folder/new", "moved", "away/new"] {
            let content = std::fs::read_to_string(folder.path(name)).unwrap_or_default();
            assert_ne!(content, "written", "{number}: {name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_swapped_after_it_was_judged_is_not_read_in_its_place() {
    let folder = Folder::new();
    folder.write("file", "judged").write("other", "another");
    let call = folder.call("fs.read", json!({"path": "file"}));
    std::fs::rename(folder.path("other"), folder.path("file")).unwrap();
    let read = engine().run(files(), call, std::future::pending()).await.unwrap();
    assert_eq!(read.content, "judged");
}
