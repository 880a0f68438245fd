//! `[openai]`: OpenAI, or any server that speaks Chat Completions.

use std::{collections::BTreeMap, net::IpAddr, ops::RangeInclusive, path::PathBuf, time::Duration};

use anyhow::{Context, ensure};
use ephor_egress::Limits;
use ephor_models::{Price, Prices};
use serde::Deserialize;

/// The variable that holds the key where nothing else is configured.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// How long a server may be waited for, in seconds. Nobody waits for an hour.
const SECONDS: RangeInclusive<u64> = 1..=3600;

#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OpenAi {
    pub(crate) base_url: String,
    /// A file that holds the key.
    pub(super) key_file: Option<PathBuf>,
    /// The variable of the node's environment that holds it.
    key_env: Option<String>,
    /// A certificate authority in PEM form, for a server behind a private one.
    pub(crate) ca_file: Option<PathBuf>,
    /// The proxy; the environment's are never used.
    pub(crate) proxy: Option<String>,
    /// Addresses that are not public and that the server's name may lead to.
    pub(crate) addresses: Vec<IpAddr>,
    /// How long it may take to begin an answer.
    first_byte_seconds: u64,
    /// How long it may pause in an answer.
    idle_seconds: u64,
    /// What models cost, by name; `*` is every other.
    prices: BTreeMap<String, PriceOf>,
}

/// US dollars for a million tokens.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(deny_unknown_fields)]
struct PriceOf {
    input: f64,
    output: f64,
    /// Input that the provider had in a cache; as other input, if it is left out.
    cached: Option<f64>,
}

/// Where the key is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    File(PathBuf),
    Variable(String),
    /// The server is not given one.
    None,
}

impl Default for OpenAi {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            base_url: "https://api.openai.com/v1".to_owned(),
            key_file: None,
            key_env: None,
            ca_file: None,
            proxy: None,
            addresses: Vec::new(),
            first_byte_seconds: limits.first_byte.as_secs(),
            idle_seconds: limits.idle.as_secs(),
            prices: BTreeMap::new(),
        }
    }
}

impl OpenAi {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let times = [("first_byte_seconds", self.first_byte_seconds), ("idle_seconds", self.idle_seconds)];
        for (name, seconds) in times {
            let (least, most) = (SECONDS.start(), SECONDS.end());
            ensure!(SECONDS.contains(&seconds), "`openai.{name}` is {seconds}; it may be {least} to {most}");
        }
        let is_once = self.key_file.is_none() || self.key_env.is_none();
        ensure!(is_once, "`openai.key_file` and `openai.key_env` both name a key; leave one of them out");
        self.prices().map(drop)
    }

    /// The key that is sent to the server: the one that the operator has named, to whichever server the operator has named. Without
    /// either it is that of the environment, for a server elsewhere alone: nobody means it for a server on this machine.
    pub(crate) fn key(&self, is_local: bool) -> Key {
        match (&self.key_file, &self.key_env) {
            (Some(file), _) => Key::File(file.clone()),
            (None, Some(name)) => Key::Variable(name.clone()),
            (None, None) if is_local => Key::None,
            (None, None) => Key::Variable(KEY_VARIABLE.to_owned()),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            first_byte: Duration::from_secs(self.first_byte_seconds),
            idle: Duration::from_secs(self.idle_seconds),
            ..Limits::default()
        }
    }

    pub(crate) fn prices(&self) -> anyhow::Result<Prices> {
        let price = |(name, price): (&String, &PriceOf)| {
            let PriceOf { input, output, cached } = *price;
            let named = |key: &str| format!("`{key}` under `[openai.prices.{name}]`");
            let input = Price::millionths(input).with_context(|| named("input"))?;
            let output = Price::millionths(output).with_context(|| named("output"))?;
            let cached = cached.map(Price::millionths).transpose().with_context(|| named("cached"))?.unwrap_or(input);
            Ok((name.clone(), Price { input, cached, output }))
        };
        self.prices.iter().map(price).collect::<anyhow::Result<_>>().map(Prices)
    }
}

impl Key {
    /// What to do where it is missing, or is not accepted: the end of a sentence.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::File(file) => {
                format!("put the key into `{}`, which `openai.key_file` in ephor.toml names", file.display())
            }
            Self::Variable(name) => format!("set `{name}` where the node starts, or `openai.key_file` in ephor.toml"),
            Self::None => {
                format!(
                    "it was given none: name one with `openai.key_file`, or with `openai.key_env = \"{KEY_VARIABLE}\"`, in ephor.toml"
                )
            }
        }
    }
}
