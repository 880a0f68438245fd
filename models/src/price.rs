//! What tokens cost.

use std::collections::BTreeMap;

use ephor_base::Usage;

/// A price, in millionths of a US dollar for a million tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Price {
    /// Tokens shown to the model.
    pub input: u64,
    /// Those of them that the provider had in a cache.
    pub cached: u64,
    /// Tokens written by it.
    pub output: u64,
}

/// What an operator says that models cost, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// The name that stands for every model that has no price of its own.
    pub const OTHERS: &str = "*";

    /// The price of `model`, if the operator has said one.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<Price> {
        self.0.get(model).or_else(|| self.0.get(Self::OTHERS)).copied()
    }
}

/// An amount that is no price.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("`{0}` is no price: one is a number of US dollars for a million tokens, 0 to 10,000")]
pub struct BadPrice(f64);

/// From which day the prices of OpenAI's models on the list are; those of Anthropic's and Google's are as published in March 2026.
pub const LISTED_ON: &str = "2026-11-21";

/// List prices, cached input not deducted, and the most tokens each model may be asked to write. A name counts with a date after it too. Where a
/// price has steps, the highest counts that a request of ours can reach: input of Anthropic's costs what it costs to be written into a cache
/// for five minutes, and that of Gemini's what it costs in a long prompt.
const LIST: &[(&str, Price, u64)] = &[
    ("gpt-5.2", dollars(175, 1_400), 128_000),
    ("gpt-5.1", dollars(125, 1_000), 128_000),
    ("gpt-5", dollars(125, 1_000), 128_000),
    ("gpt-5-mini", dollars(25, 200), 128_000),
    ("gpt-5-nano", dollars(5, 40), 128_000),
    ("gpt-4.1", dollars(200, 800), 32_768),
    ("gpt-4.1-mini", dollars(40, 160), 32_768),
    ("gpt-4.1-nano", dollars(10, 40), 32_768),
    ("gpt-4o", dollars(500, 1_500), 16_384),
    ("gpt-4o-mini", dollars(15, 60), 16_384),
    ("gpt-4-turbo", dollars(1_000, 3_000), 4_096),
    ("gpt-4", dollars(3_000, 6_000), 8_192),
    ("gpt-3.5-turbo", dollars(150, 200), 4_096),
    ("o1", dollars(1_500, 6_000), 100_000),
    ("o3", dollars(200, 800), 100_000),
    ("o3-mini", dollars(110, 440), 100_000),
    ("o4-mini", dollars(110, 440), 100_000),
    ("claude-opus-4-6", dollars(625, 2_500), 128_000),
    ("claude-opus-4-5", dollars(625, 2_500), 64_000),
    ("claude-opus-4-1", dollars(1_875, 7_500), 32_000),
    ("claude-opus-4", dollars(1_875, 7_500), 32_000),
    ("claude-sonnet-4-6", dollars(375, 1_500), 64_000),
    ("claude-sonnet-4-5", dollars(375, 1_500), 64_000),
    ("claude-sonnet-4", dollars(375, 1_500), 64_000),
    ("claude-haiku-4-5", dollars(125, 500), 64_000),
    ("claude-3-5-haiku", dollars(100, 400), 8_192),
    ("claude-3-haiku", dollars(30, 125), 4_096),
    ("gemini-2.5-pro", dollars(250, 1_500), 65_536),
    ("gemini-2.5-flash", dollars(30, 250), 65_536),
    ("gemini-2.5-flash-lite", dollars(10, 40), 65_536),
    ("gemini-2.0-flash", dollars(10, 40), 8_192),
];

/// From US cents for a million tokens.
const fn dollars(input: u64, output: u64) -> Price {
    Price { input: input * 10_000, cached: input * 10_000, output: output * 10_000 }
}

impl Price {
    /// Nothing, as models that are built in cost.
    pub const FREE: Self = Self { input: 0, cached: 0, output: 0 };

    /// Millionths of a US dollar, from US dollars as a person writes them.
    ///
    /// # Errors
    /// [`BadPrice`] says what is one.
    pub fn millionths(dollars: f64) -> Result<u64, BadPrice> {
        if !(0.0..=10_000.0).contains(&dollars) {
            return Err(BadPrice(dollars));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is at most ten thousand millions"
        )]
        let millionths = (dollars * 1e6).round() as u64;
        // What is not 0 never becomes it.
        Ok(millionths.max(u64::from(dollars > 0.0)))
    }

    /// The list price of `model`, or the highest of the list where the model is not on it: a budget must not be
    /// overdrawn because a price is not known.
    #[must_use]
    pub fn listed(model: &str) -> Self {
        known(model).map_or_else(Self::highest, |(_, price, _)| *price)
    }

    /// The highest price of the list, in each direction.
    #[must_use]
    pub fn highest() -> Self {
        LIST.iter().fold(Self::FREE, |highest, (_, price, _)| Self {
            input: highest.input.max(price.input),
            cached: highest.cached.max(price.cached),
            output: highest.output.max(price.output),
        })
    }

    /// What so many tokens cost, in millionths of a US dollar, rounded up.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> u64 {
        let cached = usage.cached.min(usage.input);
        let parts = [(usage.input - cached, self.input), (cached, self.cached), (usage.output, self.output)];
        let millionths: u128 = parts.into_iter().map(|(tokens, price)| u128::from(tokens) * u128::from(price)).sum();
        u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// The most tokens that `model` may be asked to write, where the list says: it refuses a request for more.
pub(crate) fn most_output(model: &str) -> Option<u64> {
    known(model).map(|(_, _, most)| *most)
}

fn known(model: &str) -> Option<&'static (&'static str, Price, u64)> {
    LIST.iter().find(|(name, ..)| model.strip_prefix(name).is_some_and(is_date))
}

/// Nothing, or `-2024-08-06`.
fn is_date(rest: &str) -> bool {
    rest.is_empty() || (rest.starts_with("-20") && rest.chars().all(|c| c == '-' || c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use ephor_base::Usage;

    use super::{Price, Prices};

    fn usage(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    #[test]
    fn what_the_operator_says_of_a_model_goes_before_what_is_said_of_all() {
        let price = |output| Price { output, ..Price::FREE };
        let prices = Prices([("a".to_owned(), price(1)), ("*".to_owned(), price(2))].into());
        assert_eq!((prices.of("a"), prices.of("b")), (Some(price(1)), Some(price(2))));
        assert_eq!(Prices::default().of("a"), None);
    }

    #[test]
    fn a_price_is_an_amount_of_money() {
        for (dollars, millionths) in
            [(0.0, 0), (0.15, 150_000), (1.25, 1_250_000), (0.000_000_1, 1), (10_000.0, 10_000_000_000)]
        {
            assert_eq!(Price::millionths(dollars), Ok(millionths));
        }
        for dollars in [-0.01, 10_000.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Price::millionths(dollars).is_err(), "{dollars}");
        }
    }

    #[test]
    fn what_was_in_a_cache_has_its_own_price() {
        let price = Price { input: 1_000_000, cached: 100_000, output: 0 };
        assert_eq!(price.of(&Usage { cached: 600, ..usage(1000, 7) }), 460);
    }

    #[test]
    fn an_unknown_model_costs_as_much_as_the_dearest_known_one() {
        assert_eq!(Price::listed("gpt-9-colossus"), Price::highest());
        assert_eq!(Price::listed("gpt-4o-audio-preview"), Price::highest());
        assert_ne!(Price::highest(), Price::FREE);
    }

    #[test]
    fn a_date_after_the_name_does_not_change_the_price() {
        assert_eq!(Price::listed("gpt-4.1-mini-2025-04-14"), Price::listed("gpt-4.1-mini"));
        assert_ne!(Price::listed("gpt-4.1-mini"), Price::listed("gpt-4.1"));
        assert_eq!(Price::listed("claude-opus-4-20250514"), Price::listed("claude-opus-4"));
        assert_ne!(Price::listed("claude-opus-4-5-20251101"), Price::listed("claude-opus-4"));
    }

    #[test]
    fn costs_round_up_and_saturate() {
        let price = Price { input: 150_000, cached: 150_000, output: 600_000 };
        let of = |input, output| price.of(&usage(input, output));
        assert_eq!((of(0, 0), of(1, 0), of(1_000_000, 1_000_000)), (0, 1, 750_000));
        assert_eq!(Price::highest().of(&usage(u64::MAX, u64::MAX)), u64::MAX);
    }
}
