//! What a request has used so far, so that one which is stopped in the middle is settled too.

use ephor_base::{Message, ModelTask, Span, Usage, outcome::tokens_of};

/// Counts along while an answer comes.
#[derive(Debug)]
pub(crate) struct Meter {
    input: u64,
    output_bytes: usize,
    reported: Option<Usage>,
    /// The provider has the request, as far as is known.
    sent: bool,
}

impl Meter {
    pub(crate) fn new(task: &ModelTask) -> Self {
        Self { input: prompt_tokens(task), output_bytes: 0, reported: None, sent: false }
    }

    /// The request is out: from here on it may cost something.
    pub(crate) const fn sent(&mut self) {
        self.sent = true;
    }

    /// The provider refused the request before it did anything.
    pub(crate) const fn refused(&mut self) {
        self.sent = false;
    }

    /// More of the answer came.
    pub(crate) const fn wrote(&mut self, bytes: usize) {
        self.output_bytes = self.output_bytes.saturating_add(bytes);
    }

    /// The provider says how much it is; the last word counts.
    pub(crate) const fn report(&mut self, input: u64, output: u64) {
        self.reported = Some(Usage { input, output, estimated: false });
    }

    pub(crate) const fn output_bytes(&self) -> usize {
        self.output_bytes
    }

    /// The use of an answer that came whole: the provider's word, or the local count.
    pub(crate) fn whole(&self) -> Usage {
        self.reported.unwrap_or_else(|| self.counted())
    }

    /// The use of an answer that broke off: the larger of the two.
    pub(crate) fn partial(&self) -> Usage {
        let counted = self.counted();
        match self.reported {
            _ if !self.sent => Usage::default(),
            Some(reported) if total(reported) >= total(counted) => reported,
            _ => counted,
        }
    }

    const fn counted(&self) -> Usage {
        Usage { input: self.input, output: tokens_of(self.output_bytes), estimated: true }
    }
}

const fn total(usage: Usage) -> u64 {
    usage.input.saturating_add(usage.output)
}

/// The tokens of everything a model is shown, tools included: bytes / 3, rounded up.
pub(crate) fn prompt_tokens(task: &ModelTask) -> u64 {
    let messages: usize = task.messages.iter().map(message_bytes).sum();
    let tools: usize =
        task.tools.iter().map(|tool| tool.name.as_str().len() + tool.description.len() + tool.schema.len()).sum();
    tokens_of(messages + tools)
}

fn message_bytes(message: &Message) -> usize {
    match message {
        Message::System(spans) | Message::User(spans) | Message::Tool { spans, .. } => {
            spans.iter().map(|Span { text, .. }| text.len()).sum()
        }
        Message::Assistant { text, tool_uses } => {
            let uses: usize = tool_uses.iter().map(|tool| tool.name.len() + tool.arguments.len()).sum();
            text.len() + uses
        }
    }
}
