//! A value that never prints.

use std::fmt;

use zeroize::Zeroize;

/// Holds a secret, shows `[secret]` whatever asks, and overwrites it when dropped.
///
/// Neither `Clone` nor serialisable: to copy one is a decision, made with [`Secret::expose`].
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes custody of `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Named so that each use is seen in a review.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<T: Zeroize> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new(String::from("hunter2"));
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "[secret] [secret] Some([secret])");
    }
}
