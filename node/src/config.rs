//! `ephor.toml`: what the operator has configured. An unknown key is an error; zero means zero.

mod agents;
mod providers;
mod shell;

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::{Context, bail};
use ephor_agents::TurnLimits;
use ephor_base::{Budget, ToolName};
use ephor_governance::{Environment, OperatorPolicy};
use ephor_kernel::{Appointments, Patience};
use ephor_record::Retention;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny},
};

pub(crate) use self::providers::{Key, Providers};
use self::shell::Shell;
use crate::{bytes::Bytes, files};

/// The whole file. Every key may be left out.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The model of agents that name none.
    pub(crate) model: String,
    /// `dev`, `staging` or `production`.
    pub(crate) environment: Environment,
    pub(crate) limits: Limits,
    pub(crate) budget: BudgetLimits,
    pub(crate) policy: Policy,
    pub(crate) providers: Providers,
    /// What earlier versions had in the place of `providers`.
    openai: Option<IgnoredAny>,
    pub(crate) shell: Shell,
    pub(crate) chain: Chain,
    /// The time zone of the person: what "tomorrow" is counted in. UTC, if it is left out.
    zone: Option<String>,
    agents: BTreeMap<String, agents::Agent>,
    roles: BTreeMap<String, agents::Role>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: "builtin/scout".to_owned(),
            environment: Environment::Dev,
            limits: Limits::default(),
            budget: BudgetLimits::default(),
            policy: Policy::default(),
            providers: Providers::default(),
            openai: None,
            shell: Shell::default(),
            chain: Chain::default(),
            zone: None,
            agents: BTreeMap::new(),
            roles: BTreeMap::new(),
        }
    }
}

/// Limits of turns and calls.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    rounds: usize,
    turn_seconds: u64,
    model_seconds: u64,
    tool_seconds: u64,
    approval_seconds: u64,
    max_output_tokens: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let (turn, patience) = (TurnLimits::default(), Patience::default());
        Self {
            rounds: turn.rounds,
            turn_seconds: turn.time.as_secs(),
            model_seconds: patience.model.as_secs(),
            tool_seconds: patience.tool.as_secs(),
            approval_seconds: patience.ticket.as_secs(),
            max_output_tokens: turn.max_output_tokens,
        }
    }
}

/// What one session may use.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BudgetLimits {
    tokens: u64,
    usd: f64,
    wall_seconds: u64,
    tool_calls: u64,
    messages: u64,
}

impl Default for BudgetLimits {
    /// A million tokens, five dollars, an hour in drivers, a thousand tool calls, ten thousand messages.
    fn default() -> Self {
        Self { tokens: 1_000_000, usd: 5.0, wall_seconds: 3600, tool_calls: 1000, messages: 10_000 }
    }
}

/// What narrows the constitution.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Policy {
    /// Tools that never run, whatever anyone rules.
    never: Vec<ToolName>,
}

/// The signed record.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Chain {
    /// How many bytes the chain and the vault may have, such as `20 GiB`; without it, as many as the disk has.
    quota: Option<Bytes>,
    /// How long entries stay at least before `ephor chain prune` may take them, such as `365d`; 180 days at least.
    #[serde(deserialize_with = "retention")]
    keep: Retention,
}

fn retention<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Retention, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

impl Config {
    /// The configuration of a home; the defaults if there is no file.
    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let Some(text) = files::of_home(path)? else { return Ok(Self::default()) };
        let mut config: Self = toml::from_str(&text)
            .with_context(|| format!("`{}` is not a configuration; correct or remove the key", path.display()))?;
        config.providers.found_from(path.parent().unwrap_or(Path::new("/")));
        if config.openai.is_some() {
            bail!(
                "`[openai]` in `{}` is `[providers.openai]` now, and `[openai.prices.…]` is `[providers.openai.prices.…]`; rename them: the keys in them are the same",
                path.display()
            );
        }
        if config.limits.model_seconds > config.budget.wall_seconds {
            bail!(
                "`limits.model_seconds` in `{}` is {}, more than `budget.wall_seconds`, which is {}: no model call could begin",
                path.display(),
                config.limits.model_seconds,
                config.budget.wall_seconds
            );
        }
        if !config.budget.usd.is_finite() || config.budget.usd < 0.0 {
            bail!("`budget.usd` in `{}` is not an amount of money", path.display());
        }
        config.providers.check().with_context(|| format!("`{}`", path.display()))?;
        config.appointments().with_context(|| format!("`{}`", path.display()))?;
        Ok(config)
    }

    /// What agents there are.
    ///
    /// # Errors
    /// Something under `[agents]` or `[roles]` does not fit together.
    pub(crate) fn appointments(&self) -> anyhow::Result<Appointments> {
        agents::appointments(&self.agents, &self.roles, self.zone.as_deref())
    }

    /// The most bytes of the chain and the vault.
    pub(crate) fn quota(&self) -> Option<u64> {
        self.chain.quota.map(|Bytes(bytes)| bytes)
    }

    /// How long entries of the chain stay at least.
    pub(crate) const fn keep(&self) -> Retention {
        self.chain.keep
    }

    pub(crate) fn turn_limits(&self) -> TurnLimits {
        TurnLimits {
            rounds: self.limits.rounds,
            time: Duration::from_secs(self.limits.turn_seconds),
            max_output_tokens: self.limits.max_output_tokens,
            ..TurnLimits::default()
        }
    }

    /// What the kernel bounds of a turn, whatever its agent does: each round may be asked for four times, which is itself,
    /// two repeats behind failures, and a refusal; one round more has no tools, and one says what a request needs.
    ///
    /// # Errors
    /// `limits.rounds` is more than can be counted so.
    pub(crate) fn turn(&self) -> anyhow::Result<ephor_kernel::TurnLimits> {
        let rounds = u32::try_from(self.limits.rounds).ok();
        let requests = rounds.and_then(|rounds| rounds.checked_add(2)?.checked_mul(4));
        let requests = requests.with_context(|| format!("`limits.rounds` of {} are too many", self.limits.rounds))?;
        let time = Duration::from_secs(self.limits.turn_seconds);
        Ok(ephor_kernel::TurnLimits { requests, time, ..ephor_kernel::TurnLimits::default() })
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience {
            model: Duration::from_secs(self.limits.model_seconds),
            tool: Duration::from_secs(self.limits.tool_seconds),
            ticket: Duration::from_secs(self.limits.approval_seconds),
            ..Patience::default()
        }
    }

    pub(crate) fn session_budget(&self) -> Budget {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be finite and not negative"
        )]
        let micro_usd = (self.budget.usd * 1e6) as u64;
        Budget {
            tokens: self.budget.tokens,
            micro_usd,
            wall_ms: self.budget.wall_seconds.saturating_mul(1000),
            tool_calls: self.budget.tool_calls,
            messages: self.budget.messages,
            ..Budget::ZERO
        }
    }

    pub(crate) fn operator_policy(&self) -> OperatorPolicy {
        let (environment, never, models) = (self.environment, self.policy.never.clone(), self.providers.reach());
        OperatorPolicy { environment, never, models, ..OperatorPolicy::default() }
    }
}
