//! Why a process ended.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// The exit reason of a process, with OTP's meaning: only `Normal`, `Shutdown` and `ShutdownFor` are not crashes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// It finished.
    #[n(0)]
    Normal,
    /// Its supervisor or the operator stopped it.
    #[n(1)]
    Shutdown,
    /// It was killed.
    #[n(2)]
    Killed,
    /// It panicked, with this message.
    #[n(3)]
    Panicked(#[n(0)] String),
    /// It gave up, for this reason.
    #[n(4)]
    Error(#[n(0)] String),
    /// It ended in good order, and says why (OTP `{shutdown, Term}`).
    #[n(5)]
    ShutdownFor(#[n(0)] String),
    /// It did not yield, or worked on one message for too long, and was replaced.
    #[n(6)]
    Hung,
}

impl ExitReason {
    /// Whether a transient child is restarted after it.
    #[must_use]
    pub const fn is_abnormal(&self) -> bool {
        !matches!(self, Self::Normal | Self::Shutdown | Self::ShutdownFor(_))
    }

    /// One word for the record; the message goes into the vault.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Shutdown | Self::ShutdownFor(_) => "shutdown",
            Self::Killed => "killed",
            Self::Panicked(_) => "panicked",
            Self::Error(_) => "error",
            Self::Hung => "hung",
        }
    }
}
