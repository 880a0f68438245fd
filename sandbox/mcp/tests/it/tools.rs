//! Tools as data: names, digests, bounds, headers.

use ephor_base::{ToolName, cbor};
use ephor_mcp::{Limits, Rejection, ServerName, Tool, ToolList, Untrusted, tools::BadHeader};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::server::{SMALL, name, own};

fn read(value: Value) -> Result<Tool, Rejection> {
    Tool::read(&name(), own(value), &SMALL).map_err(|rejected| rejected.why)
}

fn described(wire: &str, description: Option<&str>, schema: &str) -> Tool {
    let schema = serde_json::from_str(schema).unwrap();
    Tool::new(&name(), wire.into(), description.map(str::to_owned), schema, &Limits::DEFAULT).unwrap()
}

#[test]
fn a_digest_is_over_name_description_and_schema_and_nothing_else() {
    let tool = described("a", Some("d"), r#"{"type":"object","properties":{"x":{"type":"integer","maximum":5}}}"#);
    let same = described(
        "a",
        Some("d"),
        r#"{ "properties": {"x": {"maximum": 5, "type": "\u0069nteger"}}, "type": "object" }"#,
    );
    assert_eq!(tool.digest(), same.digest());
    let whole = (
        "ephor/mcp/tool/1",
        "a",
        Some("d"),
        own(json!({"type": "object", "properties": {"x": {"type": "integer", "maximum": 5}}})),
    );
    assert_eq!(tool.digest(), ephor_base::Digest::of(&cbor::to_vec(&whole)), "the canonical form is this");
    let others = [
        described("b", Some("d"), &tool.schema_json()),
        described("a", Some("e"), &tool.schema_json()),
        described("a", None, &tool.schema_json()),
        described("a", Some("d"), r#"{"type":"object","properties":{"x":{"type":"integer","maximum":6}}}"#),
        described("a", Some("d"), r#"{"type":"object","properties":{"x":{"type":"integer","maximum":5.0}}}"#),
    ];
    let mut digests: Vec<_> = others.iter().map(Tool::digest).chain([tool.digest()]).collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 6);
    // None is not the empty text.
    assert_ne!(described("a", None, "{}").digest(), described("a", Some(""), "{}").digest());
    // Hints are not accepted by anyone, so they are not pinned.
    let hinted =
        read(json!({"name": "a", "inputSchema": {}, "annotations": {"readOnlyHint": true, "title": "A"}})).unwrap();
    let plain = read(json!({"name": "a", "inputSchema": {}})).unwrap();
    assert_eq!(hinted.digest(), plain.digest());
    assert_eq!(
        (hinted.hints().into_untrusted().read_only, plain.hints().into_untrusted().read_only),
        (Some(true), None)
    );
}

#[test]
fn names_are_those_that_models_accept() {
    let told = |wire: &str| described(wire, None, "{}").name().as_str().to_owned();
    assert_eq!(told("read_file"), "mcp.t.read_file");
    assert_eq!(told("getUser"), "mcp.t.getuser");
    assert_eq!(told("admin/tools list"), "mcp.t.admin_tools_list");
    assert_eq!(told("日本"), "mcp.t.__");
    let long = told(&"x".repeat(128));
    assert_eq!(long.len(), 64);
    assert!(long.starts_with("mcp.t.xxx") && long != told(&format!("{}y", "x".repeat(127))), "{long}");
    let longest: ServerName = "s".repeat(ServerName::LONGEST).parse().unwrap();
    let tool = Tool::new(&longest, "y".repeat(35), None, own(json!({})), &Limits::DEFAULT).unwrap();
    assert_eq!(tool.name().as_str().len(), 64);
    for bad in ["", "a.b", "A", "ä", "a b", &"s".repeat(25)] {
        assert!(bad.parse::<ServerName>().is_err(), "{bad}");
    }
}

#[test]
fn tools_that_would_have_one_name_are_refused_with_both_names() {
    let tool = |name: &str| own(json!({"name": name, "inputSchema": {}}));
    let offered = vec![tool("getUser"), tool("get_user"), tool("GETUSER"), tool("same"), tool("same")];
    let list = ToolList::read(&name(), offered, &SMALL);
    let names: Vec<_> = list.tools().map(|tool| tool.name().as_str()).collect();
    assert_eq!(names, ["mcp.t.get_user"]);
    let why: Vec<_> = list.rejected().iter().map(|rejected| rejected.why.to_string()).collect();
    assert_eq!(why.len(), 4);
    assert!(why.contains(&"`getUser` and `GETUSER` would both be called `mcp.t.getuser`".to_owned()), "{why:?}");
    assert!(why.contains(&"`same` and `same` would both be called `mcp.t.same`".to_owned()), "{why:?}");
    // The order does not matter to what is left.
    let offered = vec![tool("GETUSER"), tool("getUser")];
    assert_eq!(ToolList::read(&name(), offered, &SMALL).tools().len(), 0);
}

#[test]
fn what_is_too_long_or_of_another_kind_is_rejected_with_the_reason() {
    let schema = json!({"type": "object"});
    let deep = json!({"type": "object", "description": "x".repeat(500)});
    let name = |rejection: Rejection| format!("{rejection:?}").split([' ', '(']).next().unwrap().to_owned();
    let cases = [
        (json!("tool"), "Lie"),
        (json!({"inputSchema": schema}), "Lie"),
        (json!({"name": 5, "inputSchema": schema}), "Lie"),
        (json!({"name": "a"}), "Lie"),
        (json!({"name": "a", "inputSchema": []}), "Lie"),
        (json!({"name": "a", "inputSchema": "object"}), "Lie"),
        (json!({"name": "a", "inputSchema": {"type": ["object"]}}), "Lie"),
        (json!({"name": "a", "inputSchema": {"type": "string"}}), "NoObject"),
        (json!({"name": "a", "inputSchema": deep}), "Schema"),
        (json!({"name": "a", "inputSchema": schema, "description": "x".repeat(201)}), "Description"),
        (json!({"name": "a", "inputSchema": schema, "description": ["x"]}), "Lie"),
        (json!({"name": "a", "inputSchema": schema, "annotations": "safe"}), "Lie"),
        (json!({"name": "a", "inputSchema": schema, "annotations": {"readOnlyHint": "yes"}}), "Lie"),
        (json!({"name": "x".repeat(33), "inputSchema": schema}), "Name"),
        (json!({"name": "", "inputSchema": schema}), "Name"),
        (json!({"name": "a\nb", "inputSchema": schema}), "Name"),
        (json!({"name": "a\u{200b}b", "inputSchema": schema}), "Name"),
    ];
    for (value, why) in cases {
        assert_eq!(read(value.clone()).map_err(name), Err(why.to_owned()), "{value}");
    }
}

#[test]
fn headers_are_marked_as_the_protocol_allows() {
    let schema = |property: Value| json!({"type": "object", "properties": {"a": property}});
    let marked = |mark: Value| json!({"type": "string", "x-mcp-header": mark});
    let inner = |property: Value| json!({"type": "object", "properties": {"b": property}});
    for good in
        [marked(json!("Region")), inner(marked(json!("Region"))), json!({"type": "boolean", "x-mcp-header": "X"})]
    {
        assert!(read(json!({"name": "a", "inputSchema": schema(good.clone())})).is_ok(), "{good}");
    }
    let twice = json!({"properties": {"a": marked(json!("X")), "b": marked(json!("x"))}});
    let bad = [
        (schema(marked(json!(""))), BadHeader::Name),
        (schema(marked(json!("a b"))), BadHeader::Name),
        (schema(marked(json!("a\r\nHost: x"))), BadHeader::Name),
        (schema(marked(json!("a:"))), BadHeader::Name),
        (schema(marked(json!(5))), BadHeader::Name),
        (schema(json!({"type": "number", "x-mcp-header": "X"})), BadHeader::Kind),
        (schema(json!({"x-mcp-header": "X"})), BadHeader::Kind),
        (schema(json!({"type": "array", "items": marked(json!("X"))})), BadHeader::Place),
        (schema(json!({"anyOf": [marked(json!("X"))]})), BadHeader::Place),
        (json!({"$defs": {"d": marked(json!("X"))}}), BadHeader::Place),
        (json!({"x-mcp-header": "X"}), BadHeader::Place),
        (twice, BadHeader::Twice),
    ];
    for (schema, why) in bad {
        let read = read(json!({"name": "a", "inputSchema": schema}));
        assert_eq!(read.unwrap_err(), Rejection::Header(why), "{schema}");
    }
}

#[test]
fn what_a_server_wrote_is_told_apart_by_its_type() {
    let tool = described("a", Some("\u{1b}[31mrm -rf"), "{}");
    let description: Untrusted<&str> = tool.description();
    assert_eq!(description.legible(), "\\u001b[31mrm -rf");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_name_that_is_taken_has_one_for_models(wire in "\\PC{1,60}") {
        let limits = Limits { name_bytes: 400, ..Limits::DEFAULT };
        if let Ok(tool) = Tool::new(&name(), wire, None, own(json!({})), &limits) {
            let told = tool.name().as_str();
            prop_assert!(told.starts_with("mcp.t.") && told.parse::<ToolName>().is_ok());
        }
    }

    #[test]
    fn a_tool_that_is_pinned_and_read_again_has_its_digest(wire in "[a-zA-Z_]{1,20}", text in ".{0,40}", number in any::<i32>()) {
        let schema = own(json!({"type": "object", "description": text, "minProperties": number}));
        let tool = Tool::new(&name(), wire, Some(text), schema, &Limits::DEFAULT).unwrap();
        let again = described(tool.wire(), Some(tool.description().into_untrusted()), &tool.schema_json());
        prop_assert_eq!(tool.digest(), again.digest());
        let pinned = ToolList::of([tool]);
        prop_assert!(pinned.differences(&ToolList::of([again])).is_empty());
    }
}
