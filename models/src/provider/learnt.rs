//! How many tokens a model makes of what it is shown, learnt from what its provider reports.
//!
//! Before there is a verdict a driver sees the size of a request and nothing of its content, so that is what is learnt from.

use std::{collections::BTreeMap, sync::Mutex};

use ephor_base::outcome::tokens_of;
use ephor_wire::{Estimator, Sizes};

/// How many models are remembered.
const REMEMBERED: usize = 64;

/// What was learnt, by model.
#[derive(Debug, Default)]
pub(super) struct Learnt(Mutex<BTreeMap<String, Estimator>>);

impl Learnt {
    /// The tokens of `bytes` that are shown to `model`: by the rule for all until something was reported. It is never less than half of that: what
    /// then comes by the rule, because a provider reports nothing that can be true, must not be more than twice what was set aside.
    pub(super) fn tokens(&self, model: &str, bytes: usize) -> u64 {
        let known = self.0.lock().ok().and_then(|known| known.get(model).copied());
        let usual = tokens_of(bytes);
        known.map_or(usual, |known| known.estimate(&Sizes::of_length(bytes)).max(usual.div_ceil(2)))
    }

    /// `model` was shown `bytes`, and they were so many tokens. What cannot be true teaches nothing.
    pub(super) fn learn(&self, model: &str, bytes: usize, tokens: u64) {
        if let Ok(mut known) = self.0.lock()
            && (known.len() < REMEMBERED || known.contains_key(model))
        {
            let mut estimator = known.get(model).copied().unwrap_or_default();
            if estimator.learn(&Sizes::of_length(bytes), tokens).is_ok() {
                known.insert(model.to_owned(), estimator);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Learnt, REMEMBERED};

    #[test]
    fn after_ten_reports_an_estimate_is_near_and_other_models_are_as_they_were() {
        let learnt = Learnt::default();
        assert_eq!(learnt.tokens("m", 30_000), 10_000);
        // A conversation that grows: a token for each 4.4 bytes, and 300 that the provider adds.
        let tokens = |bytes: usize| (bytes as u64) * 10 / 44 + 300;
        for bytes in (1..=10).map(|round| 8_000 + round * 1_700) {
            learnt.learn("m", bytes, tokens(bytes));
        }
        for bytes in [20_000, 26_700, 40_000] {
            let (told, real) = (learnt.tokens("m", bytes), tokens(bytes));
            assert!(told.abs_diff(real) * 10 <= real, "{told} for {real}");
        }
        assert_eq!(learnt.tokens("other", 30_000), 10_000);
    }

    #[test]
    fn an_estimate_is_never_less_than_half_of_the_rule() {
        let learnt = Learnt::default();
        (0..10).for_each(|_| learnt.learn("m", 30_000, 1_400));
        assert_eq!(learnt.tokens("m", 30_000), 5_000);
    }

    #[test]
    fn what_cannot_be_true_and_one_model_too_many_teach_nothing() {
        let learnt = Learnt::default();
        learnt.learn("m", 30_000, u64::MAX);
        learnt.learn("m", 30_000, 0);
        assert_eq!(learnt.tokens("m", 30_000), 10_000);
        (0..REMEMBERED).for_each(|at| learnt.learn(&at.to_string(), 30_000, 7_000));
        learnt.learn("m", 30_000, 7_000);
        assert_eq!((learnt.tokens("m", 30_000), learnt.tokens("3", 30_000)), (10_000, 7_000));
    }
}
