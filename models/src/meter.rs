//! What a request has used so far, so that one which is stopped in the middle is settled too.

use ephor_base::{Message, ModelTask, Span, Usage, outcome::tokens_of};
use ephor_wire::Reported;

/// Tokens that a provider may add to a prompt: its own instructions, and the form in which it puts messages and tools.
const ADDED: u64 = 16 * 1024;

/// Counts along while an answer comes.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Bytes that the model is shown.
    shown: u64,
    most_output: u64,
    written: u64,
    reported: Reported,
    /// The provider has the request, as far as is known.
    sent: bool,
    /// What a request before this one took, of the same call.
    before: Usage,
}

impl Meter {
    pub(crate) fn new(task: &ModelTask) -> Self {
        let shown = prompt_bytes(task) as u64;
        Self {
            shown,
            most_output: task.max_output_tokens,
            written: 0,
            reported: Reported::default(),
            sent: false,
            before: Usage::default(),
        }
    }

    /// The same for a request that follows another one of the same call.
    pub(crate) fn behind(task: &ModelTask, before: Usage) -> Self {
        Self { before, ..Self::new(task) }
    }

    /// The request is out: from here on it may cost something.
    pub(crate) const fn sent(&mut self) {
        self.sent = true;
    }

    /// The provider refused the request before it did anything.
    pub(crate) const fn refused(&mut self) {
        self.sent = false;
    }

    /// More of the answer came, shown or not.
    pub(crate) const fn wrote(&mut self, bytes: usize) {
        self.written = self.written.saturating_add(bytes as u64);
    }

    /// So many bytes of the answer came so far, shown or not.
    pub(crate) const fn has_written(&mut self, bytes: usize) {
        self.written = bytes as u64;
    }

    /// The provider says how much it is; its last word on each number counts.
    pub(crate) fn report(&mut self, said: Reported) {
        self.reported = self.reported.then(said);
    }

    /// The use of an answer that came whole: the provider's word where it can be true, or the local count.
    ///
    /// What it says cannot be true where it is less than half of the local count, since no tokenizer takes that many bytes of text for a
    /// token, nor where it is more than there are bytes, and room for what a provider adds to a prompt and for what it thinks.
    pub(crate) fn whole(&self) -> Usage {
        let counted = self.counted();
        let input = believed(self.reported.input, counted.input, self.shown.saturating_add(ADDED));
        let output = believed(self.reported.output, counted.output, self.most_output.max(self.written));
        let part =
            |said: Option<u64>, whole: Option<u64>| said.filter(|part| whole.is_some_and(|whole| *part <= whole));
        self.besides(Usage {
            input: input.unwrap_or(counted.input),
            output: output.unwrap_or(counted.output),
            estimated: input.is_none() || output.is_none(),
            cached: part(self.reported.cached, input).unwrap_or(0),
            reasoning: part(self.reported.reasoning, output).unwrap_or(0),
        })
    }

    /// How many bytes the model was shown, and how many tokens its provider says they were, if that can be true.
    pub(crate) fn learnt(&self) -> Option<(usize, u64)> {
        let input = believed(self.reported.input, self.counted().input, self.shown.saturating_add(ADDED));
        usize::try_from(self.shown).ok().zip(input)
    }

    /// With what the request before this one took.
    fn besides(&self, own: Usage) -> Usage {
        let Usage { input, output, estimated, cached, reasoning } = self.before;
        Usage {
            input: own.input.saturating_add(input),
            output: own.output.saturating_add(output),
            estimated: own.estimated || estimated,
            cached: own.cached.saturating_add(cached),
            reasoning: own.reasoning.saturating_add(reasoning),
        }
    }

    /// The use of an answer that no provider made: it costs nothing, and is no more than what the request allows.
    pub(crate) fn free(&self) -> Usage {
        let counted = self.counted();
        Usage { output: counted.output.min(self.most_output), ..counted }
    }

    /// The use of an answer that broke off: of each number the larger.
    pub(crate) fn partial(&self) -> Usage {
        if !self.sent {
            return self.before;
        }
        let (said, counted) = (self.whole(), self.besides(self.counted()));
        Usage { input: said.input.max(counted.input), output: said.output.max(counted.output), ..said }
    }

    fn counted(&self) -> Usage {
        let tokens = |bytes: u64| tokens_of(usize::try_from(bytes).unwrap_or(usize::MAX));
        Usage { input: tokens(self.shown), output: tokens(self.written), estimated: true, ..Usage::default() }
    }
}

/// What a provider says of a number that was `counted` here, if that can be true.
fn believed(said: Option<u64>, counted: u64, most: u64) -> Option<u64> {
    said.filter(|said| (counted / 2..=most).contains(said))
}

/// The bytes of everything a model is shown, tools included.
fn prompt_bytes(task: &ModelTask) -> usize {
    let messages: usize = task.messages.iter().map(message_bytes).sum();
    let tools: usize =
        task.tools.iter().map(|tool| tool.name.as_str().len() + tool.description.len() + tool.schema.len()).sum();
    messages + tools
}

fn message_bytes(message: &Message) -> usize {
    match message {
        Message::System(spans) | Message::User(spans) | Message::Tool { spans, .. } => {
            spans.iter().map(|Span { text, .. }| text.len()).sum()
        }
        Message::Assistant(answer) => {
            let uses: usize = answer.tool_uses.iter().map(|tool| tool.name.len() + tool.arguments.len()).sum();
            answer.text.len() + uses + answer.state.as_ref().map_or(0, String::len)
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_base::{Message, Usage};

    use super::{Meter, Reported};
    use crate::testing::{said, task};

    /// 3,000 bytes shown and 300 written: 1,000 and 100 tokens by the local count.
    fn meter() -> Meter {
        let mut task = task("openai", "gpt-x", "", 0);
        task.messages = vec![Message::User(vec![said(&"x".repeat(3000))])];
        let mut meter = Meter::new(&task);
        meter.sent();
        meter.wrote(300);
        meter
    }

    fn reported(input: Option<u64>, output: Option<u64>) -> Meter {
        let mut meter = meter();
        meter.report(Reported { input, output, ..Reported::default() });
        meter
    }

    #[test]
    fn a_report_that_can_be_true_is_believed() {
        for (input, output) in [(750, 75), (500, 50), (3000 + 16_384, 4096)] {
            let used = reported(Some(input), Some(output)).whole();
            assert_eq!(used, Usage { input, output, ..Usage::default() });
        }
    }

    #[test]
    fn a_report_that_cannot_be_true_counts_as_none() {
        for (input, output) in [(0, 0), (499, 49), (3000 + 16_385, 4097), (u64::MAX, u64::MAX)] {
            let used = reported(Some(input), Some(output)).whole();
            assert_eq!((used.input, used.output, used.estimated), (1000, 100, true), "{input} {output}");
        }
        let used = reported(None, Some(75)).whole();
        assert_eq!((used.input, used.output, used.estimated), (1000, 75, true));
        assert_eq!(meter().whole(), Usage { input: 1000, output: 100, estimated: true, ..Usage::default() });
    }

    #[test]
    fn an_answer_that_broke_off_is_settled_at_the_larger_of_the_two() {
        let used = reported(Some(800), Some(2000)).partial();
        assert_eq!((used.input, used.output), (1000, 2000));
        let mut refused = meter();
        refused.refused();
        assert_eq!(refused.partial(), Usage::default());
    }

    #[test]
    fn a_part_is_no_more_than_its_whole() {
        for (cached, reasoning, believed) in [(700, 70, (700, 70)), (751, 76, (0, 0)), (u64::MAX, u64::MAX, (0, 0))] {
            let mut meter = reported(Some(750), Some(75));
            meter.report(Reported { cached: Some(cached), reasoning: Some(reasoning), ..Reported::default() });
            assert_eq!((meter.whole().cached, meter.whole().reasoning), believed);
        }
    }
}
