//! Real servers, where the environment variable `EPHOR_MCP_SERVERS` names a folder in which they are installed:
//! `node_modules` with `@modelcontextprotocol/server-filesystem` and `@modelcontextprotocol/server-everything`, and `venv` with
//! `mcp-server-git`. See `docs/mcp.md`.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use ephor_mcp::{
    Client, Connection, Difference, Limits, Opening, Part, Post, PostError, Response, Revision, Tool, ToolList,
};
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

use super::server::{arguments, block_on, said};

/// The folder; none where the variable is not set, which is said aloud.
fn installed() -> Option<PathBuf> {
    let folder = std::env::var_os("EPHOR_MCP_SERVERS").map(PathBuf::from);
    if folder.is_none() {
        // Past the capture of the test harness, so that it is seen where all tests pass.
        let said =
            writeln!(std::io::stderr(), "skipped: no real server is asked, since EPHOR_MCP_SERVERS names no folder");
        said.expect("it can be said");
    }
    folder
}

fn node(folder: &Path, package: &str, args: &[&str]) -> Command {
    let script = folder.join(format!("node_modules/@modelcontextprotocol/{package}/dist/index.js"));
    let mut command = Command::new("node");
    command.arg(script).args(args);
    command
}

fn started(mut command: Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts")
}

/// Runs `test` with a client of a server that speaks over its input and output, which ends once the client is gone.
fn over_stdio(command: Command, opening: Opening, test: impl AsyncFnOnce(Client)) {
    block_on(async {
        let mut child = started(command);
        let (output, input) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let (connection, driver) = Connection::over_stream(output, input, Limits::DEFAULT);
        let talk = async {
            let client = connection.open(opening).await.expect("a revision is agreed on");
            test(client).await;
        };
        let (closed, ()) = tokio::join!(driver.run(), talk);
        assert!(matches!(closed, ephor_mcp::Closed::Released), "{closed}");
        println!("  ended with {}", child.wait().await.unwrap());
    });
}

async fn tools(client: &Client, name: &str) -> ToolList {
    let list = client.tools(&name.parse().unwrap()).await.expect("tools are listed");
    let server = client.server().as_untrusted();
    println!("{name}: {} {} speaks {}", server.name, server.version, client.revision());
    for tool in list.tools() {
        println!("  {} {} {:?}", tool.digest().short(), tool.name(), tool.hints().into_untrusted());
    }
    assert!(list.rejected().is_empty(), "{:?}", list.rejected());
    assert!(list.tools().len() > 3);
    let again = client.tools(&name.parse().unwrap()).await.unwrap();
    assert!(list.differences(&again).is_empty(), "two lists are the same");
    list
}

fn named<'a>(list: &'a ToolList, name: &str) -> &'a Tool {
    list.tool(&name.parse().unwrap()).unwrap_or_else(|| panic!("there is no {name}"))
}

async fn called(client: &Client, tool: &Tool, with: serde_json::Value) -> String {
    let text = said(client.call(tool, &arguments(with), &mut |_| ()).await);
    println!("  {} says {:?}", tool.name(), text.chars().take(120).collect::<String>());
    text
}

#[test]
fn the_filesystem_server_reads_a_file_and_refuses_one_outside() {
    let Some(folder) = installed() else { return };
    let place = std::env::temp_dir().canonicalize().unwrap().join(format!("ephor-mcp-files-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("a.txt"), "grüße aus der Datei").unwrap();
    for opening in [Opening::Handshake, Opening::Discovery] {
        let command = node(&folder, "server-filesystem", &[place.to_str().unwrap()]);
        over_stdio(command, opening, async |client| {
            let list = tools(&client, "files").await;
            let read = named(&list, "mcp.files.read_text_file");
            let path = |name: &str| json!({"path": place.join(name).to_str().unwrap()});
            assert_eq!(called(&client, read, path("a.txt")).await, "grüße aus der Datei");
            let outside = client.call(read, &arguments(json!({"path": "/etc/passwd"})), &mut |_| ()).await.unwrap();
            assert!(outside.as_untrusted().failed, "{outside:?}");
            println!("  outside: {:?}", outside.as_untrusted().to_text());
            let write = json!({"path": place.join("b.txt").to_str().unwrap(), "content": "written"});
            called(&client, named(&list, "mcp.files.write_file"), write).await;
            assert_eq!(std::fs::read_to_string(place.join("b.txt")).unwrap(), "written");
            client.ping().await.expect("it answers");
            println!("  {:?}", client.notices());
        });
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_git_server_tells_of_a_repository() {
    let Some(folder) = installed() else { return };
    let place = std::env::temp_dir().join(format!("ephor-mcp-git-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git").args(args).current_dir(&place).output().expect("git starts");
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    std::fs::write(place.join("new.txt"), "new").unwrap();
    let repository = place.to_str().unwrap();
    for opening in [Opening::Handshake, Opening::Discovery] {
        let mut command = Command::new(folder.join("venv/bin/mcp-server-git"));
        command.args(["--repository", repository]);
        over_stdio(command, opening, async |client| {
            let list = tools(&client, "git").await;
            let status = called(&client, named(&list, "mcp.git.git_status"), json!({"repo_path": repository})).await;
            assert!(status.contains("new.txt"), "{status}");
            let bad =
                client.call(named(&list, "mcp.git.git_status"), &arguments(json!({"repo_path": 5})), &mut |_| ()).await;
            println!("  a lie of ours: {bad:?}");
            println!("  {:?}", client.notices());
        });
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_everything_server_answers_over_http_with_progress_images_and_links() {
    let Some(folder) = installed() else { return };
    block_on(async {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = node(&folder, "server-everything", &["streamableHttp"]);
        command.env("PORT", port.to_string());
        let mut child = started(command);
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let connection = Connection::over_http(Arc::new(Plain { port }), Limits::DEFAULT);
        let client = connection.open(Opening::Handshake).await.expect("a revision is agreed on");
        let list = tools(&client, "all").await;
        let echo = called(&client, named(&list, "mcp.all.echo"), json!({"message": "grüße"})).await;
        assert!(echo.contains("grüße"));
        let long = named(&list, "mcp.all.trigger-long-running-operation");
        let mut heard = Vec::new();
        let steps = arguments(json!({"duration": 1, "steps": 4}));
        let answer = client.call(long, &steps, &mut |progress| heard.push((progress.done, progress.total))).await;
        println!("  {} after {heard:?}", said(answer));
        assert_eq!(heard.last(), Some(&(4.0, Some(4.0))));
        let image =
            client.call(named(&list, "mcp.all.get-tiny-image"), &arguments(json!({})), &mut |_| ()).await.unwrap();
        let png = image.as_untrusted().parts.iter().find_map(|part| match part {
            Part::Image(media) => Some(media),
            _ => None,
        });
        let png = png.expect("there is an image");
        println!("  {}: {} bytes, {:?}", png.kind, png.bytes.len(), &png.bytes[1..4]);
        assert!(png.bytes.starts_with(b"\x89PNG"));
        let structured = named(&list, "mcp.all.get-structured-content");
        let answer = client.call(structured, &arguments(json!({"location": "New York"})), &mut |_| ()).await.unwrap();
        println!("  structured: {:?}", answer.as_untrusted().structured);
        assert!(answer.as_untrusted().structured.is_some());
        // One that is given up, and the server goes on.
        let hour = arguments(json!({"duration": 3600, "steps": 2}));
        {
            let mut quiet = |_| ();
            let mut call = Box::pin(client.call(long, &hour, &mut quiet));
            let none = tokio::time::timeout(Duration::from_millis(300), &mut call).await;
            assert!(none.is_err());
        }
        client.ping().await.expect("it answers");
        println!("  {:?}", client.notices());
        child.kill().await.unwrap();
    });
}

#[test]
fn a_server_of_the_python_sdk_answers_over_http_in_both_orders_of_greeting() {
    let Some(folder) = installed() else { return };
    block_on(async {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(folder.join("venv/bin/python3"));
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stateless.py")).arg(port.to_string());
        let mut child = started(command);
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let name = "python".parse().unwrap();
        for (opening, revision) in
            [(Opening::Handshake, Revision::V2025_11_25), (Opening::Discovery, Revision::V2026_07_28)]
        {
            let connection = Connection::over_http(Arc::new(Plain { port }), Limits::DEFAULT);
            let client = connection.open(opening).await.expect("a revision is agreed on");
            assert_eq!(client.revision(), revision);
            let list = client.tools(&name).await.expect("tools are listed");
            assert_eq!((list.tools().len(), list.rejected().len()), (3, 0), "{list:?}");
            println!("{opening:?}: {} {revision}", client.server().as_untrusted().name);
            let place = named(&list, "mcp.python.place");
            let said = called(&client, place, json!({"region": "Zürich ", "number": -42})).await;
            assert_eq!(said, "Zürich  -42");
            let mut heard = Vec::new();
            let steps = arguments(json!({"count": 3}));
            client.call(named(&list, "mcp.python.steps"), &steps, &mut |step| heard.push(step.done)).await.unwrap();
            println!("  progress {heard:?}");
            assert_eq!(heard, [1.0, 2.0, 3.0]);
            client.ping().await.expect("it answers");
            if revision.is_stateless() {
                grow(&client, &list).await;
            }
            println!("  {:?}", client.notices());
        }
        child.kill().await.unwrap();
    });
}

/// Has the server add a tool, and hears of it.
async fn grow(client: &Client, list: &ToolList) {
    let changed = async {
        while client.notices().changes == 0 {
            called(client, named(list, "mcp.python.grow"), json!({})).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        ended = client.listen() => panic!("{ended:?}"),
        () = changed => {}
    }
    let now = client.tools(&"python".parse().unwrap()).await.unwrap();
    println!("  {:?}", list.differences(&now));
    assert!(
        matches!(list.differences(&now).as_slice(), [Difference::Added(name)] if name.as_str() == "mcp.python.later")
    );
}

/// HTTP/1.1 to one port of this machine, one connection a request.
struct Plain {
    port: u16,
}

impl Post for Plain {
    fn post(&self, headers: Vec<(String, String)>, body: Vec<u8>) -> BoxFuture<'_, Result<Response, PostError>> {
        async move {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
            let own =
                format!("host: 127.0.0.1:{}\r\nconnection: close\r\ncontent-length: {}\r\n", self.port, body.len());
            let given: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            stream.write_all(format!("POST /mcp HTTP/1.1\r\n{own}{given}\r\n").as_bytes()).await?;
            stream.write_all(&body).await?;
            response(BufReader::new(stream)).await
        }
        .boxed()
    }
}

async fn response(mut stream: BufReader<TcpStream>) -> Result<Response, PostError> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).ok_or("no status")?.parse()?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let pieces = stream::try_unfold((stream, chunked), |(mut stream, chunked)| async move {
        let piece = if chunked { chunk(&mut stream).await? } else { some(&mut stream).await? };
        Ok::<_, PostError>(Some((Bytes::from(piece), (stream, chunked))).filter(|(piece, _)| !piece.is_empty()))
    });
    Ok(Response { status, headers, body: pieces.boxed() })
}

async fn some(stream: &mut BufReader<TcpStream>) -> Result<Vec<u8>, PostError> {
    let mut piece = vec![0; 8000];
    let count = stream.read(&mut piece).await?;
    piece.truncate(count);
    Ok(piece)
}

async fn chunk(stream: &mut BufReader<TcpStream>) -> Result<Vec<u8>, PostError> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let mut piece = vec![0; usize::from_str_radix(line.trim(), 16)? + 2];
    stream.read_exact(&mut piece).await?;
    piece.truncate(piece.len() - 2);
    Ok(piece)
}
