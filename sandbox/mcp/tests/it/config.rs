//! A `mcpServers` file.

use ephor_mcp::{ConfigFault, Servers, Way};
use serde_json::{Value, json};

fn parse(file: &Value) -> Result<Servers, (String, ConfigFault)> {
    Servers::parse(file.to_string().as_bytes()).map_err(|error| (error.place, error.fault))
}

fn one(server: Value) -> Result<Servers, (String, ConfigFault)> {
    parse(&json!({"mcpServers": {"s": server}}))
}

#[test]
fn commands_and_addresses_are_read() {
    let servers = parse(&json!({"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "server", "/data"], "env": {"TOKEN": "secret-1"}, "disabled": true},
        "far": {"type": "http", "url": "https://mcp.example/x?y=1", "headers": {"Authorization": "Bearer secret-2"}},
    }, "theme": "dark"}))
    .unwrap();
    let said = format!("{servers:?}");
    assert!(!said.contains("secret-1") && !said.contains("secret-2"), "{said}");
    assert_eq!(servers.unknown.into_iter().collect::<Vec<_>>(), ["theme"]);
    let mut servers = servers.servers.into_iter();
    let (name, far) = servers.next().unwrap();
    let Way::Http { url, headers } = far.way else { panic!("{name}") };
    assert_eq!(
        (url.as_str(), headers["Authorization"].expose().as_str()),
        ("https://mcp.example/x?y=1", "Bearer secret-2")
    );
    let (name, files) = servers.next().unwrap();
    let Way::Command { command, args, env } = files.way else { panic!("{name}") };
    assert_eq!((command.as_str(), args.len(), env["TOKEN"].expose().as_str()), ("npx", 3, "secret-1"));
    assert_eq!(files.unknown.into_keys().collect::<Vec<_>>(), ["disabled"]);
}

#[test]
fn what_is_not_understood_is_told_with_its_place() {
    let long = "x".repeat(40_000);
    let many: Vec<_> = (0..200).map(|number| number.to_string()).collect();
    let cases = [
        (json!("npx"), "file.mcpServers.s"),
        (json!({}), "file.mcpServers.s"),
        (json!({"command": "a", "url": "http://b"}), "file.mcpServers.s"),
        (json!({"command": 5}), "file.mcpServers.s.command"),
        (json!({"command": ""}), "file.mcpServers.s.command"),
        (json!({"command": "a\0b"}), "file.mcpServers.s.command"),
        (json!({"command": long}), "file.mcpServers.s.command"),
        (json!({"command": "a", "args": "b"}), "file.mcpServers.s.args"),
        (json!({"command": "a", "args": ["b", 5]}), "file.mcpServers.s.args[1]"),
        (json!({"command": "a", "args": many}), "file.mcpServers.s.args"),
        (json!({"command": "a", "env": ["b"]}), "file.mcpServers.s.env"),
        (json!({"command": "a", "env": {"B": 5}}), "file.mcpServers.s.env.B"),
        (json!({"command": "a", "env": {"B=C": "d"}}), "file.mcpServers.s.env.B=C"),
        (json!({"command": "a", "env": {"B": "d\0"}}), "file.mcpServers.s.env.B"),
        (json!({"command": "a", "type": "http"}), "file.mcpServers.s.type"),
        (json!({"url": "http://a", "type": "sse"}), "file.mcpServers.s.type"),
        (json!({"url": "ftp://a"}), "file.mcpServers.s.url"),
        (json!({"url": "https://"}), "file.mcpServers.s.url"),
        (json!({"url": "https://user:key@host/"}), "file.mcpServers.s.url"),
        (json!({"url": "https://a/ b"}), "file.mcpServers.s.url"),
        (json!({"url": format!("https://{long}")}), "file.mcpServers.s.url"),
        (json!({"url": "https://a", "headers": {"A b": "c"}}), "file.mcpServers.s.headers.A b"),
        (json!({"url": "https://a", "headers": {"A": "c\r\nHost: d"}}), "file.mcpServers.s.headers.A"),
        (json!({"url": "https://a", "headers": {"Content-Length": "0"}}), "file.mcpServers.s.headers.Content-Length"),
        (json!({"url": "https://a", "headers": {"MCP-Session-Id": "x"}}), "file.mcpServers.s.headers.MCP-Session-Id"),
    ];
    for (server, place) in cases {
        let (found, fault) = one(server.clone()).unwrap_err();
        assert_eq!(found, place, "{server}: {fault}");
    }
}

#[test]
fn a_file_that_is_none_is_refused_whole() {
    for bytes in
        [b"{".as_slice(), b"", b"[]", b"{}", b"{\"mcpServers\":[]}", b"\xff", b"{\"mcpServers\":{\"a\":1,\"a\":1}}"]
    {
        assert!(Servers::parse(bytes).is_err(), "{}", String::from_utf8_lossy(bytes));
    }
    let many: serde_json::Map<_, _> = (0..65).map(|number| (format!("s{number}"), json!({"command": "a"}))).collect();
    assert!(matches!(parse(&json!({"mcpServers": many})), Err((_, ConfigFault::Many { count: 65, most: 64 }))));
    let (place, fault) = parse(&json!({"mcpServers": {"My Server": {"command": "a"}}})).unwrap_err();
    assert_eq!((place.as_str(), fault.to_string().contains("`My Server`")), ("file.mcpServers", true));
    assert!(matches!(Servers::parse(&vec![b' '; 300 << 10]).unwrap_err().fault, ConfigFault::Malformed(_)));
}
