//! What is written over is kept, and put back: files that are removed, that are no text, and that changed meanwhile.

mod common;

use common::{Folder, engine, files};
use ephor_sandbox::{OpenWorkspace, ToolFailure};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_removed_and_nothing_is_removed_twice() {
    let folder = Folder::new();
    folder.write("a/one", "first");
    let answer = folder.answer("fs.write", json!({"path": "a/one", "content": null})).await;
    assert_eq!(answer.summary, "removed `a/one`, which held 5 bytes");
    assert!(!folder.path("a").exists(), "a folder that it leaves empty goes too");
    std::fs::create_dir(folder.path("a")).unwrap();
    let (kind, message) = folder.refusal("fs.write", json!({"path": "a/one", "content": null})).await;
    assert_eq!((kind, message.as_str()), (ToolFailure::Refused, "`a/one` does not exist, so it cannot be removed"));
    let (kind, _) = folder.refusal("fs.write", json!({"path": "a", "content": null})).await;
    assert_eq!(kind, ToolFailure::Refused);
    // What changed since the call was judged stays.
    folder.write("two", "before");
    let call = folder.call("fs.write", json!({"path": "two", "content": null}));
    folder.write("two", "after!");
    let failed = engine().run(files(), call, std::future::pending()).await.unwrap_err();
    assert!(failed.to_string().contains("was changed since this call was judged"), "{failed}");
    assert_eq!(folder.read("two"), "after!");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_text_is_written_in_base64() {
    let folder = Folder::new();
    let write = json!({"path": "x", "content": "AP/+gA==", "encoding": "base64"});
    folder.answer("fs.write", write).await;
    assert_eq!(std::fs::read(folder.path("x")).unwrap(), [0, 0xff, 0xfe, 0x80]);
    let wrong = json!({"path": "x", "content": "A", "encoding": "base64"});
    let (kind, message) = folder.refusal("fs.write", wrong).await;
    assert!(kind == ToolFailure::InvalidArguments && message.contains("not base64"), "{message}");
    assert_eq!(std::fs::read(folder.path("x")).unwrap().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_expects_something_else_changes_nothing() {
    let folder = Folder::new();
    folder.write("x", "one");
    let digest = |text: &str| ephor_base::Digest::of(text.as_bytes()).to_string();
    let write = |content: &str, expected: Vec<String>| json!({"path": "x", "content": content, "expected": expected});
    let (kind, message) = folder.refusal("fs.write", write("two", vec![digest("other"), String::new()])).await;
    assert!(kind == ToolFailure::Failed && message.contains("not what it was expected to be"), "{message}");
    assert_eq!(folder.read("x"), "one");
    folder.answer("fs.write", write("two", vec![digest("other"), digest("one")])).await;
    assert_eq!(folder.read("x"), "two");
    std::fs::remove_file(folder.path("x")).unwrap();
    folder.refusal("fs.write", write("three", vec![digest("two")])).await;
    assert!(!folder.path("x").exists());
    let nothing = json!({"path": "x", "content": null, "expected": [""]});
    assert_eq!(folder.answer("fs.write", nothing).await.summary, "there is no `x`, as expected");
    let mut new = write("three", vec![String::new()]);
    new["mode"] = json!(0o750);
    folder.answer("fs.write", new).await;
    assert_eq!(folder.read("x"), "three");
    let mode = std::fs::metadata(folder.path("x")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode & !0o022, 0o750 & !0o022);
    let (kind, _) = folder.refusal("fs.write", json!({"path": "y/.ephor-part", "content": "x"})).await;
    assert_eq!((kind, folder.path("y").exists()), (ToolFailure::Refused, false));
}

#[test]
fn what_is_replaced_is_kept_whole_or_not_at_all() {
    let folder = Folder::new();
    let most = usize::try_from(ephor_base::MOST_KEPT).unwrap();
    folder.write("small", "text").write("most", vec![b'x'; most]).write("large", vec![b'x'; most + 1]);
    std::fs::hard_link(folder.path("small"), folder.path("again")).unwrap();
    for (path, kept) in [("most", true), ("large", false), ("small", false), ("new/file", true)] {
        let call = folder.call("fs.write", json!({"path": path, "content": "x"}));
        assert_eq!(call.files[0].place.to_keep().is_some(), kept, "{path}");
    }
}

#[test]
fn a_path_that_could_not_be_found_again_is_refused() {
    let folder = Folder::new();
    let follow = |parts: usize| {
        let workspace = OpenWorkspace::open(&folder.path("").canonicalize().unwrap()).unwrap();
        workspace.follow(&vec!["p"; parts].join("/"), true).map(drop)
    };
    assert!(follow(2048).is_ok(), "4,095 bytes");
    assert!(follow(2049).unwrap_err().contains("too long for a path"));
}
