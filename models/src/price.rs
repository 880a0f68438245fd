//! What tokens cost.

/// A price, in millionths of a US dollar for a million tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Price {
    /// Tokens shown to the model.
    pub input: u64,
    /// Tokens written by it.
    pub output: u64,
}

/// List prices of OpenAI's chat models, cached input not deducted. A name counts with a date after it too.
const LIST: &[(&str, Price)] = &[
    ("gpt-5.2", dollars(175, 1_400)),
    ("gpt-5.1", dollars(125, 1_000)),
    ("gpt-5", dollars(125, 1_000)),
    ("gpt-5-mini", dollars(25, 200)),
    ("gpt-5-nano", dollars(5, 40)),
    ("gpt-4.1", dollars(200, 800)),
    ("gpt-4.1-mini", dollars(40, 160)),
    ("gpt-4.1-nano", dollars(10, 40)),
    ("gpt-4o", dollars(500, 1_500)),
    ("gpt-4o-mini", dollars(15, 60)),
    ("gpt-4-turbo", dollars(1_000, 3_000)),
    ("gpt-4", dollars(3_000, 6_000)),
    ("gpt-3.5-turbo", dollars(150, 200)),
    ("o1", dollars(1_500, 6_000)),
    ("o3", dollars(200, 800)),
    ("o3-mini", dollars(110, 440)),
    ("o4-mini", dollars(110, 440)),
];

/// From US cents for a million tokens.
const fn dollars(input: u64, output: u64) -> Price {
    Price { input: input * 10_000, output: output * 10_000 }
}

impl Price {
    /// Nothing: the model runs on this machine.
    pub const FREE: Self = Self { input: 0, output: 0 };

    /// The list price of `model`, or the highest of the list where the model is not on it: a budget must not be
    /// overdrawn because a price is not known.
    #[must_use]
    pub fn listed(model: &str) -> Self {
        let known = LIST.iter().find(|(name, _)| model.strip_prefix(name).is_some_and(is_date));
        known.map_or_else(Self::highest, |(_, price)| *price)
    }

    /// The highest price of the list, in each direction.
    #[must_use]
    pub fn highest() -> Self {
        LIST.iter().fold(Self::FREE, |highest, (_, price)| Self {
            input: highest.input.max(price.input),
            output: highest.output.max(price.output),
        })
    }

    /// What so many tokens cost, in millionths of a US dollar, rounded up.
    #[must_use]
    pub fn of(&self, input: u64, output: u64) -> u64 {
        let millionths = u128::from(input) * u128::from(self.input) + u128::from(output) * u128::from(self.output);
        u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// Nothing, or `-2024-08-06`.
fn is_date(rest: &str) -> bool {
    rest.is_empty() || (rest.starts_with("-20") && rest.chars().all(|c| c == '-' || c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::Price;

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
    }

    #[test]
    fn costs_round_up_and_saturate() {
        let price = Price { input: 150_000, output: 600_000 };
        assert_eq!((price.of(0, 0), price.of(1, 0), price.of(1_000_000, 1_000_000)), (0, 1, 750_000));
        assert_eq!(Price::highest().of(u64::MAX, u64::MAX), u64::MAX);
    }
}
