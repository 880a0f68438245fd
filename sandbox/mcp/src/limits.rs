//! How much of a server's words is read and kept.

/// The bounds of one server. Whatever it sends, no more than this is held in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The bytes of one message, each way. A longer one from the server ends the channel that carried it.
    pub message_bytes: usize,
    /// How deep the values of a message nest. Above 127 the parser itself refuses.
    pub depth: usize,
    /// The values in one message, each element and member counted. A value takes some 50 bytes of memory, so that this and not the
    /// length of the text bounds what a message costs.
    pub values: usize,
    /// The requests that wait for an answer at a time, cancelled ones included whose cancellation is not yet written.
    pub pending: usize,
    /// The answers to requests of the server that wait to be written. The server is not answered beyond them.
    pub replies: usize,
    /// The messages between two answers, on one channel. One more ends it: the server floods.
    pub unsolicited: u64,
    /// The progress notices kept for one call until it looks. Older ones are dropped and counted.
    pub progress: usize,
    /// The log messages kept for the owner. Older ones are dropped and counted.
    pub logs: usize,
    /// The bytes of each short text: a log message, a note of progress, a server's words in an error, its name and version.
    pub text_bytes: usize,
    /// The pages of a list of tools.
    pub pages: usize,
    /// The tools of a server, rejected ones included.
    pub tools: usize,
    /// The bytes of all tools of a server together, as compact JSON.
    pub list_bytes: usize,
    /// The bytes of a tool's name.
    pub name_bytes: usize,
    /// The bytes of a tool's description.
    pub description_bytes: usize,
    /// The bytes of a tool's schema, as compact JSON.
    pub schema_bytes: usize,
    /// The parts of an answer that are kept.
    pub parts: usize,
    /// The bytes of an answer that are kept, all parts and the structured content together; images count decoded.
    pub answer_bytes: usize,
}

impl Limits {
    /// Wide enough for the servers in use. Of a hostile one a stream holds at most six messages at a time, each with up to 8 MiB of text and
    /// 200,000 values; over HTTP, each call that waits holds one.
    pub const DEFAULT: Self = Self {
        message_bytes: 8 << 20,
        depth: 64,
        values: 200_000,
        pending: 64,
        replies: 64,
        unsolicited: 100_000,
        progress: 32,
        logs: 64,
        text_bytes: 2000,
        pages: 64,
        tools: 256,
        list_bytes: 1 << 20,
        name_bytes: 128,
        description_bytes: 16 << 10,
        schema_bytes: 64 << 10,
        parts: 256,
        answer_bytes: 4 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
