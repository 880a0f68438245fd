//! How many tokens a request will be, before it is sent.
//!
//! A tokenizer costs 30 to 40 MB and there is one for each family of models; a count of what a text is made of costs a pass over it. So the tokens
//! of a text are first guessed from its letters, words, digits, marks and characters beyond ASCII, by weights that fit three tokenizers about
//! equally. For each model the line through what its provider reports over these guesses is learnt: how much of the guess a token is, and how many
//! tokens are added to every request. Only IEEE 754's basic operations are used, so the same reports give the same estimates, to the bit.

use crate::{Message, Part, Request, Shown};

/// What a text, or a request, is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Letters of ASCII.
    letters: u64,
    /// Runs of letters.
    words: u64,
    /// Digits of ASCII.
    digits: u64,
    /// Any other character of ASCII but blanks.
    marks: u64,
    /// Runs of blanks.
    blanks: u64,
    /// Characters beyond ASCII.
    wide: u64,
    /// Messages, parts and tools: what a provider puts something around.
    parts: u64,
    /// Pictures.
    images: u64,
}

/// Thousandths of a token for each of what a text is made of; fitted to prose, code, tables and JSON in several languages.
const LETTER: u64 = 175;
const WORD: u64 = 110;
const DIGIT: u64 = 1000;
const MARK: u64 = 600;
const BLANK: u64 = 320;
const WIDE: u64 = 550;
/// A message costs about four tokens of its own in most grammars.
const PART: u64 = 4000;
/// A picture of about a megapixel.
const IMAGE: u64 = 1_200_000;

/// What the last character belonged to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Letters,
    Blanks,
    Other,
}

impl Sizes {
    /// What `text` is made of.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let (mut sizes, mut run) = (Self::default(), Run::Other);
        for c in text.chars() {
            let now = match c {
                'a'..='z' | 'A'..='Z' => {
                    sizes.letters += 1;
                    sizes.words += u64::from(run != Run::Letters);
                    Run::Letters
                }
                ' ' | '\t' | '\r' | '\n' => {
                    sizes.blanks += u64::from(run != Run::Blanks);
                    Run::Blanks
                }
                '0'..='9' => {
                    sizes.digits += 1;
                    Run::Other
                }
                c if c.is_ascii() => {
                    sizes.marks += 1;
                    Run::Other
                }
                _ => {
                    sizes.wide += 1;
                    Run::Other
                }
            };
            run = now;
        }
        sizes
    }

    /// A text of so many bytes of which nothing else is known: it is taken for letters.
    #[must_use]
    pub const fn of_length(bytes: usize) -> Self {
        let letters = bytes as u64;
        Self { letters, words: 0, digits: 0, marks: 0, blanks: 0, wide: 0, parts: 0, images: 0 }
    }

    /// What `request` is made of: all that its model is shown.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        let mut sizes = Self::of_text(&request.instructions).as_part();
        for tool in &request.tools {
            let texts = [tool.name.as_str(), &tool.description, &tool.schema];
            texts.into_iter().for_each(|text| sizes = sizes.and(Self::of_text(text)));
            sizes.parts += 1;
        }
        request.messages.iter().map(Self::of_message).fold(sizes, Self::and)
    }

    fn of_message(message: &Message) -> Self {
        match message {
            Message::User(shown) => Self::of_shown(shown).as_part(),
            Message::Assistant(parts) => parts.iter().map(Self::of_part).fold(Self::default(), Self::and).as_part(),
            Message::Results(results) => {
                let result = |result: &crate::ToolResult| Self::of_shown(&result.shown).as_part();
                results.iter().map(result).fold(Self::default(), Self::and)
            }
        }
    }

    fn of_shown(shown: &[Shown]) -> Self {
        let part = |part: &Shown| match part {
            Shown::Text(text) => Self::of_text(text),
            Shown::Image(_) => Self { images: 1, ..Self::default() },
        };
        shown.iter().map(part).fold(Self::default(), Self::and)
    }

    /// A provider's state is not among what the model reads as text, and thinking is not sent back.
    fn of_part(part: &Part) -> Self {
        match part {
            Part::Text(text) => Self::of_text(text),
            Part::Call(call) => Self::of_text(&call.name).and(Self::of_text(&call.arguments)).as_part(),
            Part::Thinking(_) | Part::State(_) => Self::default(),
        }
    }

    const fn as_part(self) -> Self {
        Self { parts: self.parts + 1, ..self }
    }

    /// Both together. A request has at most [`Request::BYTES`], so no sum of them overflows.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            letters: self.letters + other.letters,
            words: self.words + other.words,
            digits: self.digits + other.digits,
            marks: self.marks + other.marks,
            blanks: self.blanks + other.blanks,
            wide: self.wide + other.wide,
            parts: self.parts + other.parts,
            images: self.images + other.images,
        }
    }

    /// The first guess, in thousandths of a token; at least one token.
    const fn guess(self) -> u64 {
        let text = self.letters * LETTER + self.words * WORD + self.digits * DIGIT + self.marks * MARK;
        let guess = text + self.blanks * BLANK + self.wide * WIDE + self.parts * PART + self.images * IMAGE;
        if guess < 1000 { 1000 } else { guess }
    }
}

/// A report that cannot be true. Nothing was learnt from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reported} tokens are reported where about {guessed} were expected")]
pub struct Unbelievable {
    /// What the provider reports.
    pub reported: u64,
    /// What a text of these sizes is, at the first guess.
    pub guessed: u64,
}

/// Learns how many tokens one model makes of what a text is made of.
///
/// It keeps the sums of a weighted linear regression, in which a report counts for less with each that follows: a conversation grows by its end, so the
/// last requests are most like the next one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Estimator {
    weight: f64,
    guessed: f64,
    reported: f64,
    guessed_squared: f64,
    product: f64,
}

impl Estimator {
    /// What is left of the weight of a report with each that follows.
    const FADES: f64 = 0.75;
    /// Before anything was reported the guess is raised so: a request that does not fit is worse than room that is left.
    const CAUTION: f64 = 1.1;
    /// The variance of the guesses, in squares of their mean, below which a line through them says nothing.
    const FLAT: f64 = 0.02;
    /// How far a report may be from the guess, either way. No tokenizer is further from another.
    const FARTHEST: u64 = 4;
    /// Tokens that a provider may add of its own.
    const ADDED: u64 = 16 * 1024;

    /// Before anything was reported.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tokens that a request of these sizes will be.
    #[must_use]
    pub fn estimate(&self, sizes: &Sizes) -> u64 {
        let guess = tokens(sizes.guess());
        let (slope, added) = self.line();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is not negative, and far below 2^53"
        )]
        let tokens = (slope * guess + added).ceil() as u64;
        tokens
    }

    /// Tokens for each guessed token, and tokens added to every request.
    fn line(&self) -> (f64, f64) {
        if self.weight == 0.0 {
            return (Self::CAUTION, 0.0);
        }
        let ratio = self.reported / self.guessed;
        let variance = self.weight * self.guessed_squared - self.guessed * self.guessed;
        if variance <= Self::FLAT * self.guessed * self.guessed {
            return (ratio, 0.0);
        }
        let slope = (self.weight * self.product - self.guessed * self.reported) / variance;
        let added = (self.reported - slope * self.guessed) / self.weight;
        // No provider takes tokens away.
        if slope > 0.0 && added >= 0.0 { (slope, added) } else { (ratio, 0.0) }
    }

    /// Learns that a request of these sizes was `reported` tokens.
    ///
    /// # Errors
    /// [`Unbelievable`], if no tokenizer makes that of it; then nothing is learnt.
    pub fn learn(&mut self, sizes: &Sizes, reported: u64) -> Result<(), Unbelievable> {
        let guessed = sizes.guess() / 1000;
        let (least, most) = (guessed / Self::FARTHEST, guessed * Self::FARTHEST + Self::ADDED);
        if reported == 0 || reported < least || reported > most {
            return Err(Unbelievable { reported, guessed });
        }
        let (guess, report) = (tokens(sizes.guess()), tokens(reported * 1000));
        let fade = |sum: f64, more: f64| sum * Self::FADES + more;
        *self = Self {
            weight: fade(self.weight, 1.0),
            guessed: fade(self.guessed, guess),
            reported: fade(self.reported, report),
            guessed_squared: fade(self.guessed_squared, guess * guess),
            product: fade(self.product, guess * report),
        };
        Ok(())
    }
}

/// Tokens, from thousandths of them.
#[expect(clippy::cast_precision_loss, reason = "a request has far less than 2^53 thousandths")]
fn tokens(thousandths: u64) -> f64 {
    thousandths as f64 / 1000.0
}
