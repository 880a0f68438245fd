//! Reads a response: bytes in, events and one answer out.

mod anthropic;
mod chat;
mod draft;
mod gemini;
mod limits;
mod ollama;
mod responses;

use ephor_base::FailureKind;

use self::draft::Draft;
use crate::{
    Answer, Complaint, Cut, End, Event, Grammar, Recourse,
    framing::{Frames, Uncut},
    json::{Fields, is_object},
};

pub use limits::Limits;

/// The status that an error in the middle of a stream stands for, if it names none: the provider failed, and may do better.
const IN_STREAM: u16 = 500;

/// The status that an error in place of an answer stands for, if it names none: the provider has looked at the request.
const IN_PLACE: u16 = 400;

/// What ends a stream of Chat Completions, and of others that learnt from it. It is no JSON.
const DONE: &str = "[DONE]";

/// What came breaks a bound, or is not the grammar. What came before it was given; nothing that comes after it is read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Broken {
    /// The provider sends a line, an event or an object beyond the bound.
    #[error("an event of the response is longer than {0} bytes")]
    EventTooLong(usize),
    /// The provider sends more bytes than any answer needs.
    #[error("the response is longer than {0} bytes")]
    ResponseTooLong(u64),
    /// The model writes more than the request allows: the answer is cut off there.
    #[error("the answer is longer than {0} bytes")]
    AnswerTooLong(usize),
    /// The model calls more tools than any does.
    #[error("the answer calls more than {0} tools")]
    TooManyCalls(usize),
    /// A web page came.
    #[error("the response is a web page")]
    Page,
    /// Something else came than this grammar.
    #[error("the response is not by the grammar `{0}`: {1}")]
    NotTheGrammar(Grammar, String),
}

/// What a reader made of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// It is one of the grammar.
    Known,
    /// It is not. That alone is no fault: grammars grow.
    Unknown,
}

/// One grammar's reader: what it has to remember from one object to the next.
#[derive(Clone, Debug)]
enum Reader {
    Anthropic(anthropic::Reader),
    Chat(chat::Reader),
    Responses(responses::Reader),
    Gemini,
    Ollama,
}

impl Reader {
    fn new(grammar: Grammar) -> Self {
        match grammar {
            Grammar::Anthropic => Self::Anthropic(anthropic::Reader::default()),
            Grammar::Chat => Self::Chat(chat::Reader::default()),
            Grammar::Responses => Self::Responses(responses::Reader::default()),
            Grammar::Gemini => Self::Gemini,
            Grammar::Ollama => Self::Ollama,
        }
    }

    fn take(&mut self, object: &Fields<'_>, draft: &mut Draft) -> Result<Seen, Broken> {
        match self {
            Self::Anthropic(reader) => reader.take(object, draft),
            Self::Chat(reader) => reader.take(object, draft),
            Self::Responses(reader) => reader.take(object, draft),
            Self::Gemini => gemini::take(object, draft),
            Self::Ollama => ollama::take(object, draft),
        }
    }

    /// The response is over.
    fn finish(&mut self, draft: &mut Draft) -> Result<(), Broken> {
        match self {
            Self::Chat(reader) => reader.finish(draft),
            Self::Anthropic(_) | Self::Responses(_) | Self::Gemini | Self::Ollama => Ok(()),
        }
    }
}

/// Reads one response.
///
/// It is fed with [`Decoder::push`] until [`Decoder::is_done`], or the bytes end, or it errs; then [`Decoder::finish`] gives the answer. However
/// the bytes are cut, the events and the answer are the same.
#[derive(Clone, Debug)]
pub struct Decoder {
    grammar: Grammar,
    frames: Option<Frames>,
    reader: Reader,
    draft: Draft,
    received: u64,
    /// How many objects were of the grammar, and how many not.
    seen: (u64, u64),
    broken: Option<Broken>,
}

impl Decoder {
    /// Reads a response in `grammar`, streamed or not. `turn` makes the ids of calls that the provider gives none: `call-TURN-AT`.
    #[must_use]
    pub fn new(grammar: Grammar, limits: Limits, turn: u64) -> Self {
        Self {
            grammar,
            frames: Some(Frames::new(limits.event)),
            reader: Reader::new(grammar),
            draft: Draft::new(limits, turn),
            received: 0,
            seen: (0, 0),
            broken: None,
        }
    }

    /// Takes more bytes; puts the news behind those in `into`.
    ///
    /// # Errors
    /// [`Broken`], once a bound is broken or the response is not the grammar, and the same again for whatever comes after that. The news of what came
    /// before it are in `into` all the same. An answer that had ended by then is not taken back: then there is no error.
    pub fn push(&mut self, bytes: &[u8], into: &mut Vec<Event>) -> Result<(), Broken> {
        let read = match &self.broken {
            Some(broken) => Err(broken.clone()),
            None => self.read(bytes),
        };
        into.append(&mut self.draft.news);
        match read {
            Err(broken) => {
                self.broken = Some(broken.clone());
                self.frames = None;
                if self.has_ended() { Ok(()) } else { Err(broken) }
            }
            Ok(()) => Ok(()),
        }
    }

    /// Whether the answer is there. What comes behind it can only be about it, such as its usage, and no failure takes it back.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.draft.end.is_some()
    }

    /// Whether the provider has said that nothing more comes, or nothing more is read.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.draft.done || self.broken.is_some()
    }

    /// Bytes that the model has written so far, shown or not: for a count of our own where the provider reports none.
    #[must_use]
    pub const fn written(&self) -> usize {
        self.draft.written
    }

    /// The response is over: the last news, and the answer.
    pub fn finish(mut self, into: &mut Vec<Event>) -> Answer {
        let rest = self.rest().and_then(|()| self.reader.finish(&mut self.draft));
        if let Err(broken) = rest {
            self.broken.get_or_insert(broken);
        }
        let end = self.missing_end();
        self.draft.finish(end, into)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let most = self.draft.limits.total;
        let room = usize::try_from(most - self.received).unwrap_or(usize::MAX);
        let (mut bytes, beyond) = bytes.split_at(bytes.len().min(room));
        self.received += bytes.len() as u64;
        while !self.draft.done
            && let Some(frames) = &mut self.frames
        {
            let frame = frames.next(&mut bytes).map_err(|uncut| self.uncut(uncut))?;
            let Some(frame) = frame else { break };
            self.object(&frame)?;
        }
        if beyond.is_empty() || self.draft.done { Ok(()) } else { Err(Broken::ResponseTooLong(most)) }
    }

    /// Takes one event's data.
    fn object(&mut self, data: &str) -> Result<(), Broken> {
        let data = data.trim();
        if data == DONE {
            self.draft.done = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let fields = match Fields::parse(data) {
            Ok(fields) => fields,
            Err(_) if self.has_ended() => return Ok(()),
            Err(error) => return Err(Broken::NotTheGrammar(self.grammar, error.to_string())),
        };
        match self.reader.take(&fields, &mut self.draft)? {
            // Some servers fill pauses with an object that says nothing.
            Seen::Unknown if !fields.is_empty() => self.seen.1 += 1,
            Seen::Unknown => {}
            Seen::Known => self.seen.0 += 1,
        }
        Ok(())
    }

    /// Takes what was left: perhaps a whole object, perhaps half of one.
    fn rest(&mut self) -> Result<(), Broken> {
        let Some(frames) = self.frames.take().filter(|_| !self.draft.done) else { return Ok(()) };
        match frames.finish() {
            Err(uncut) => Err(self.uncut(uncut)),
            // What breaks off is no object, wherever it does.
            Ok(Some(data)) if is_object(&data) || data.trim() == DONE => self.object(&data),
            Ok(_) => Ok(()),
        }
    }

    fn uncut(&self, uncut: Uncut) -> Broken {
        match uncut {
            Uncut::TooLong => Broken::EventTooLong(self.draft.limits.event),
            Uncut::Page => Broken::Page,
            Uncut::Foreign => Broken::NotTheGrammar(self.grammar, "it holds neither events nor JSON".to_owned()),
        }
    }

    /// How an answer ended that does not say so itself.
    fn missing_end(&self) -> End {
        let failed = |kind, recourse, message: &str| End::Failed(Complaint::new(kind, recourse, message));
        match &self.broken {
            Some(Broken::AnswerTooLong(_)) => End::CutOff(Cut::Bound),
            Some(broken) => failed(FailureKind::Rejected, Recourse::Never, &broken.to_string()),
            None if self.seen.0 == 0 && self.seen.1 > 0 => {
                let broken = Broken::NotTheGrammar(self.grammar, "it sends JSON of another kind".to_owned());
                failed(FailureKind::Rejected, Recourse::Never, &broken.to_string())
            }
            None if self.draft.parts.is_empty() => {
                failed(FailureKind::Interrupted, Recourse::Backoff, "the response ended without an answer")
            }
            None => End::CutOff(Cut::Stream),
        }
    }
}
