//! What a supervisor is told once: its flags and its children's specifications (OTP `sup_flags`, `child_spec`).

use std::{fmt, sync::Arc, time::Duration};

use ephor_base::ExitReason;

use super::Backoff;

/// Which children a restart takes along (OTP `strategy`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// Only the child that exited.
    OneForOne,
    /// Every child: all others are stopped in reverse order, then all are started in order.
    OneForAll,
    /// The child that exited and those started after it.
    RestForOne,
    /// Only the child that exited; all children are of one kind and are added while it runs (OTP `simple_one_for_one`).
    Dynamic,
}

/// When a child that exits is started again (OTP `restart`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// Always.
    Permanent,
    /// After an abnormal exit.
    Transient,
    /// Never.
    Temporary,
}

impl Restart {
    /// Whether a child that exited with `reason` is started again.
    #[must_use]
    pub const fn is_due(self, reason: &ExitReason) -> bool {
        match self {
            Self::Permanent => true,
            Self::Transient => reason.is_abnormal(),
            Self::Temporary => false,
        }
    }
}

/// How a child is stopped (OTP `shutdown`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shutdown {
    /// It is killed at once.
    Brutal,
    /// It is asked, and killed if it still runs after this time.
    Within(Duration),
    /// It is asked, and waited for. What OTP asks for where the child is a supervisor.
    Infinite,
}

/// Whether a supervisor ends with its significant children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AutoShutdown {
    /// It does not.
    Never,
    /// It ends when one of them ends and is not started again.
    AnySignificant,
    /// It ends when the last of them has ended.
    AllSignificant,
}

/// A worker or a supervisor. Only counted, and shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It works.
    Worker,
    /// It supervises.
    Supervisor,
}

/// How often children may be restarted before the supervisor itself gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intensity {
    /// Restarts allowed within the period.
    pub restarts: usize,
    /// The period. A restart that is exactly this old still counts.
    pub period: Duration,
}

impl Intensity {
    /// OTP's default, for trees: 1 restart in 5 seconds.
    pub const TREE: Self = Self { restarts: 1, period: Duration::from_secs(5) };
    /// For agents, whose work is less sure: 5 restarts in 60 seconds.
    pub const AGENT: Self = Self { restarts: 5, period: Duration::from_secs(60) };
}

/// The name of a child, unique among its siblings (OTP `id`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(Arc<str>);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a supervisor knows of a child before it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// Its name. Dynamic children have none; there this names the kind.
    pub name: Name,
    /// When it is started again.
    pub restart: Restart,
    /// Whether its end counts for the supervisor's own; see [`AutoShutdown`].
    pub significant: bool,
    /// How it is stopped.
    pub shutdown: Shutdown,
    /// What it is.
    pub kind: Kind,
}

/// How a supervisor works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flags {
    /// Which children a restart takes along.
    pub strategy: Strategy,
    /// How many restarts it bears.
    pub intensity: Intensity,
    /// Whether it ends with its significant children.
    pub auto_shutdown: AutoShutdown,
    /// How long it waits before a restart; OTP does not wait.
    pub backoff: Backoff,
    /// Whether its children have nothing to do with one another, so that at its end all are asked to stop at once and none waits
    /// for another. OTP has that for dynamic children alone, and stops all others one after another, the last started first.
    pub independent: bool,
}

impl Flags {
    /// One for one, without automatic shutdown and without waiting.
    #[must_use]
    pub const fn one_for_one(intensity: Intensity) -> Self {
        Self {
            strategy: Strategy::OneForOne,
            intensity,
            auto_shutdown: AutoShutdown::Never,
            backoff: Backoff::NONE,
            independent: false,
        }
    }

    /// Whether a child of this specification may live below these flags (OTP `bad_combination`).
    pub(super) const fn admits(&self, spec: &Spec) -> bool {
        let is_bad = matches!(self.auto_shutdown, AutoShutdown::Never) || matches!(spec.restart, Restart::Permanent);
        !(spec.significant && is_bad)
    }
}

/// A supervisor cannot begin with these specifications. Nothing was started; the caller's fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadSpec {
    /// Two children have the same name.
    #[error("two children are called `{0}`")]
    Duplicate(Name),
    /// A child is significant that is always restarted, or whose supervisor never shuts down by itself.
    #[error("`{0}` is significant, and cannot be with its restart type or this supervisor")]
    Significant(Name),
    /// A dynamic supervisor has one specification for all of its children, and any other supervisor is not dynamic.
    #[error("a dynamic supervisor has exactly one specification, for all of its children")]
    Template,
}
