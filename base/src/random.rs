//! Randomness, as it is injected.

/// A source of random bytes fit for keys.
pub trait Random: Send + Sync + 'static {
    /// Fills `into` with random bytes.
    fn fill(&self, into: &mut [u8]);
}
