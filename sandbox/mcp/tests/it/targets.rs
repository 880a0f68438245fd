//! One function for each reader of a server's bytes. Each takes any bytes, and panics if something does not hold that must hold for all.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use ephor_base::{Arguments, ToolName};
use ephor_mcp::{
    Answer, Connection, Limits, Message, Opening, Part, Returned, ServerName, Servers, Tool, ToolList, parse,
    wire::{Events, Lines, TooLong},
};
use tokio::io::{AsyncRead, ReadBuf};

/// One reader, and what must hold for all bytes.
pub(crate) struct Target {
    /// As the folder in the corpus of the fuzzer.
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
}

/// All of them.
pub(crate) const TARGETS: [Target; 4] = [
    Target { name: "mcp_message", run: message },
    Target { name: "mcp_body", run: body },
    Target { name: "mcp_server", run: server },
    Target { name: "mcp_config", run: config },
];

const LIMITS: Limits = Limits {
    message_bytes: 1500,
    depth: 12,
    values: 200,
    pages: 3,
    tools: 4,
    list_bytes: 1000,
    name_bytes: 40,
    description_bytes: 60,
    schema_bytes: 200,
    parts: 3,
    answer_bytes: 100,
    text_bytes: 50,
    unsolicited: 10,
    logs: 2,
    progress: 2,
    replies: 2,
    pending: 3,
};

fn name() -> ServerName {
    "s".parse().unwrap()
}

/// Any message: what it says of tools and of answers is read too.
fn message(bytes: &[u8]) {
    let Ok(messages) = parse(bytes, &LIMITS) else { return };
    assert!(!messages.is_empty() && messages.len() <= LIMITS.values && bytes.len() <= LIMITS.message_bytes);
    for message in messages {
        let Message::Answer { returned: Returned::Result(result), .. } = message else { continue };
        if let Ok(answer) = Answer::read(result.clone(), &LIMITS) {
            check(answer.as_untrusted());
        }
        let ephor_base::arguments::Value::Object(mut map) = result else { continue };
        if let Some(ephor_base::arguments::Value::List(offered)) = map.remove("tools") {
            let count = offered.len();
            let list = ToolList::read(&name(), offered, &LIMITS);
            assert_eq!(list.tools().len() + list.rejected().len(), count);
            list.tools().for_each(tool);
            assert!(list.differences(&list).is_empty());
        }
    }
}

fn check(answer: &Answer) {
    let bytes = |part: &Part| match part {
        Part::Text(text) => text.len(),
        Part::TextResource { uri, text } => uri.len() + text.len(),
        Part::Image(media) | Part::Audio(media) => media.bytes.len(),
        Part::BinaryResource { uri, media } => uri.len() + media.bytes.len(),
        Part::Link { uri, .. } => uri.len(),
        Part::Unknown(kind) => kind.len(),
    };
    assert!(answer.parts.len() <= LIMITS.parts);
    assert!(answer.parts.iter().map(bytes).sum::<usize>() <= LIMITS.answer_bytes);
    assert_eq!(answer.to_text().contains("[truncated: "), !answer.omitted.is_nothing() || says_so(answer));
}

/// Whether the server itself wrote what looks like the mark.
fn says_so(answer: &Answer) -> bool {
    let whole = Answer { omitted: Default::default(), ..answer.clone() };
    whole.to_text().contains("[truncated: ")
}

fn tool(tool: &Tool) {
    assert!(tool.name().as_str().starts_with("mcp.s.") && tool.name().as_str().parse::<ToolName>().is_ok());
    let schema = serde_json::from_str(&tool.schema_json()).unwrap();
    let description = Some(tool.description().into_untrusted().to_owned()).filter(|text| !text.is_empty());
    let again = Tool::new(&name(), tool.wire().to_owned(), description, schema, &LIMITS).unwrap();
    assert!(again.digest() == tool.digest() || tool.description().into_untrusted().is_empty());
}

/// The body of a response: the first byte says how the others are cut.
fn body(bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let read = |size: usize| {
        let (mut lines, mut events) = (Lines::new(40), Events::new(40));
        let (mut all, mut data) = (Vec::new(), Vec::new());
        let keep = |into: &mut Vec<Vec<u8>>, bytes: &[u8]| {
            assert!(bytes.len() <= 40);
            into.push(bytes.to_vec());
            Ok::<_, TooLong>(())
        };
        let lined = bytes.chunks(size).try_for_each(|piece| lines.push(piece, |line| keep(&mut all, line)));
        let cut = bytes.chunks(size).try_for_each(|piece| events.push(piece, |event| keep(&mut data, event)));
        (all, lined, data, cut)
    };
    assert_eq!(read(bytes.len().max(1)), read(usize::from(*size) + 1));
}

/// A server's whole output: a client opens, lists, calls and pings, whatever comes.
fn server(bytes: &[u8]) {
    let paced = Paced { rest: bytes, pause: 0 };
    let (connection, driver) = Connection::over_stream(paced, tokio::io::sink(), LIMITS);
    let talk = async {
        let Ok(client) = connection.open(Opening::Handshake).await else { return };
        if let Ok(list) = client.tools(&name()).await {
            assert!(list.tools().len() <= LIMITS.tools);
        }
        let tool = Tool::new(&name(), "a".into(), None, serde_json::from_str("{}").unwrap(), &LIMITS).unwrap();
        if let Ok(answer) = client.call(&tool, &Arguments::default(), &mut |_| ()).await {
            check(answer.as_untrusted());
        }
        let _ = client.ping().await;
        assert!(client.take_logs().len() <= LIMITS.logs);
    };
    let both = async { tokio::join!(talk, driver.run()) };
    let mut both = pin!(both);
    let waker = Waker::from(Arc::new(Still));
    // Bytes in memory are always there: every look goes on, and the end of them ends all.
    for _ in 0..10_000 {
        if both.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            return;
        }
    }
    panic!("a server that has ended is waited for");
}

/// Gives a line at a time, and between two of them time to ask for more.
struct Paced<'a> {
    rest: &'a [u8],
    pause: u8,
}

impl AsyncRead for Paced<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.pause > 0 {
            self.pause -= 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let line = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |at| at + 1);
        let (piece, rest) = self.rest.split_at(line.min(into.remaining()));
        into.put_slice(piece);
        (self.rest, self.pause) = (rest, 4);
        Poll::Ready(Ok(()))
    }
}

struct Still;

impl Wake for Still {
    fn wake(self: Arc<Self>) {}
}

fn config(bytes: &[u8]) {
    match Servers::parse(bytes) {
        Ok(servers) => assert!(servers.servers.len() <= 64),
        Err(error) => assert!(error.place.starts_with("file") || error.place.starts_with("message"), "{error}"),
    }
}
