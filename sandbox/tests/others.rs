//! What the built-in tools do that change nothing, beside reading text.

mod common;

use common::Folder;
use ephor_sandbox::ToolFailure;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_named_as_one() {
    let folder = Folder::new();
    for (name, bytes, format) in [
        ("a.png", &b"\x89PNG\r\n\x1a\n\0\0"[..], "PNG"),
        ("b", b"\xff\xd8\xff\xe0 no NUL", "JPEG"),
        ("c.txt", b"GIF89a", "GIF"),
        ("d", b"GIF87a", "GIF"),
        ("e", b"RIFF\x04\0\0\0WEBPVP8 ", "WebP"),
    ] {
        folder.write(name, bytes);
        let (kind, message) = folder.refusal("fs.read", json!({ "path": name })).await;
        let said = format!("`{name}` is a picture in the format {format}, of {} bytes", bytes.len());
        assert!(kind == ToolFailure::Failed && message.starts_with(&said), "{message}");
        let (_, message) = folder.refusal("fs.edit", json!({"path": name, "edits": [{"old": "a", "new": "b"}]})).await;
        assert!(message.contains("is binary"), "{message}");
    }
    let found = folder.answer("fs.search", json!({"pattern": "."})).await;
    assert!(found.content.is_empty() && found.omitted[0].starts_with("5 binary files"), "{found:?}");
    folder.write("text", "RIFF and GIF8\n");
    assert_eq!(folder.answer("fs.read", json!({"path": "text"})).await.content, "RIFF and GIF8\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_what_is_to_be_done_is_answered_as_it_stands() {
    let folder = Folder::new();
    let items = json!([{"text": "look", "state": "done"}, {"text": "write", "state": "active"}, {"text": "tell"}]);
    let answer = folder.answer("todo", json!({ "items": items })).await;
    assert_eq!(answer.content, "1. [x] look\n2. [>] write\n3. [ ] tell\n");
    assert_eq!(answer.summary, "3 items, 1 done");
    assert_eq!(folder.answer("todo", json!({"items": []})).await.content, "");
    let item = |text: &str| json!([{ "text": text }]);
    let many: Vec<_> = (0..101).map(|number| json!({"text": number.to_string()})).collect();
    for (items, word) in [
        (item(" "), "item 1 is to be one line"),
        (item("a\nb"), "item 1 is to be one line"),
        (item(&"x".repeat(501)), "item 1 is to be one line"),
        (json!([{"text": "a", "state": "perhaps"}]), "unknown variant"),
        (json!(many), "at most 100 items"),
    ] {
        let (kind, message) = folder.refusal("todo", json!({ "items": items })).await;
        assert!(kind == ToolFailure::InvalidArguments && message.contains(word), "{message}");
    }
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 0);
}
