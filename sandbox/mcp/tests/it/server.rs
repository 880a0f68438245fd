//! A server in memory that says what a test has it say.

use std::{future::Future, time::Duration};

use ephor_base::{Arguments, arguments::Value as Own};
use ephor_mcp::{Answer, CallError, Client, Closed, Connection, Limits, Opening, ServerName, Tool, Untrusted};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split};

/// Long enough for the slowest machine; a test that hangs fails.
const HANGS: Duration = Duration::from_secs(120);

/// What a client of a test is told: bounds so small that they are reached.
pub(crate) const SMALL: Limits = Limits {
    message_bytes: 4000,
    depth: 16,
    values: 300,
    pending: 4,
    replies: 3,
    unsolicited: 20,
    progress: 4,
    logs: 3,
    text_bytes: 100,
    pages: 4,
    tools: 6,
    list_bytes: 3000,
    name_bytes: 32,
    description_bytes: 200,
    schema_bytes: 500,
    parts: 4,
    answer_bytes: 600,
};

/// The server's end of a connection.
pub(crate) struct End {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

impl End {
    fn new(stream: DuplexStream) -> Self {
        let (reader, writer) = split(stream);
        Self { reader: BufReader::new(reader), writer }
    }

    /// The next message of the client; none when it is gone.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line).await {
            Ok(count) if count > 0 => Some(serde_json::from_str(&line).expect("the client writes JSON")),
            _ => None,
        }
    }

    /// The next message, which is a request of this method; its id and parameters.
    pub(crate) async fn request(&mut self, method: &str) -> (Value, Value) {
        let message = self.next().await.unwrap_or_else(|| panic!("the client left before `{method}`"));
        assert_eq!(message["method"], method, "{message}");
        (message["id"].clone(), message["params"].clone())
    }

    /// Writes bytes as they are. A client that has gone is no failure.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        let _ = self.writer.write_all(bytes).await;
        let _ = self.writer.flush().await;
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.raw(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn answer(&mut self, id: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    /// Answers `initialize` as a server of 2025-11-25 that has tools.
    pub(crate) async fn shake_hands(&mut self) {
        let (id, params) = self.request("initialize").await;
        assert_eq!(params["protocolVersion"], "2025-11-25");
        self.answer(&id, greeting("2025-11-25")).await;
        self.request("notifications/initialized").await;
    }

    /// Waits until the client is gone.
    pub(crate) async fn left(&mut self) {
        while self.next().await.is_some() {}
    }
}

pub(crate) fn greeting(revision: &str) -> Value {
    json!({"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}})
}

/// Runs a test in a runtime of its own, which spawns nothing.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async { tokio::time::timeout(HANGS, test).await.expect("the test hangs") })
}

/// A connection whose server is `script`, and whose client is not yet opened.
pub(crate) fn connected<T>(
    limits: Limits,
    script: impl AsyncFnOnce(&mut End),
    test: impl AsyncFnOnce(Connection) -> T,
) -> (T, Closed) {
    piped(1 << 16, limits, script, test)
}

/// As [`connected`], with pipes that hold this many bytes.
pub(crate) fn piped<T>(
    holds: usize,
    limits: Limits,
    script: impl AsyncFnOnce(&mut End),
    test: impl AsyncFnOnce(Connection) -> T,
) -> (T, Closed) {
    block_on(async {
        let (ours, theirs) = duplex(holds);
        let (output, input) = split(ours);
        let (connection, driver) = Connection::over_stream(output, input, limits);
        let serve = async {
            let mut end = End::new(theirs);
            script(&mut end).await;
        };
        let (closed, (), done) = tokio::join!(driver.run(), serve, test(connection));
        (done, closed)
    })
}

/// A client that has shaken hands with a server that goes on as `script`.
pub(crate) fn served<T>(
    limits: Limits,
    script: impl AsyncFnOnce(&mut End),
    test: impl AsyncFnOnce(Client) -> T,
) -> (T, Closed) {
    let whole = async |end: &mut End| {
        end.shake_hands().await;
        script(end).await;
    };
    connected(limits, whole, async |connection| {
        test(connection.open(Opening::Handshake).await.expect("the server shakes hands")).await
    })
}

pub(crate) fn name() -> ServerName {
    "t".parse().expect("a name")
}

/// A tool called `echo`.
pub(crate) fn echo() -> Tool {
    let schema = own(json!({"type": "object"}));
    Tool::new(&name(), "echo".into(), None, schema, &Limits::DEFAULT).expect("a tool")
}

/// Test JSON as a value of ours.
pub(crate) fn own(value: Value) -> Own {
    serde_json::from_value(value).expect("it is JSON")
}

pub(crate) fn arguments(value: Value) -> Arguments {
    Arguments::parse(&value.to_string()).expect("an object")
}

pub(crate) async fn call(client: &Client) -> Result<Untrusted<Answer>, CallError> {
    client.call(&echo(), &Arguments::default(), &mut |_| ()).await
}

/// A result of one text.
pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The one text of a result.
pub(crate) fn said(answer: Result<Untrusted<Answer>, CallError>) -> String {
    answer.expect("an answer").into_untrusted().to_text()
}
