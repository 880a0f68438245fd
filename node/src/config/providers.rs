//! `[providers.NAME]`: who serves the models `NAME/…`.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, ensure};
use ephor_base::Reach;
use ephor_egress::{Authorities, BaseUrl, Egress, Limits, Policy};
use ephor_models::{Kind, Named, Price, Prices, is_provider};
use serde::Deserialize;

use crate::files;

/// How long a server may be waited for, in seconds: an hour at most.
const SECONDS: RangeInclusive<u64> = 1..=3600;

/// Those that are there without a configuration, each at its own provider.
const BUILT_IN: [(&str, Kind); 4] =
    [("openai", Kind::OpenAi), ("anthropic", Kind::Anthropic), ("gemini", Kind::Gemini), ("ollama", Kind::Ollama)];

/// Everything under `[providers]`, and those that are there anyway.
#[derive(Deserialize, Clone, Debug)]
#[serde(from = "BTreeMap<String, Provider>")]
pub(crate) struct Providers(BTreeMap<String, Provider>);

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Provider {
    /// The API that it has; that of its name, where that is one of those that are there anyway.
    kind: Option<Kind>,
    /// The base URL; that of the provider whose API it is, if it is left out.
    base_url: Option<String>,
    /// Files that hold a key each.
    key_file: Listed<PathBuf>,
    /// Variables of the node's environment that hold a key each.
    key_env: Listed<String>,
    /// A certificate authority in PEM form, for a server behind a private one.
    ca_file: Option<PathBuf>,
    /// The proxy; the environment's are never used.
    proxy: Option<String>,
    /// Addresses that are not public and that the server's name may lead to.
    addresses: Vec<IpAddr>,
    /// Headers that are sent with each request.
    headers: BTreeMap<String, String>,
    /// How long it may take to begin an answer.
    first_byte_seconds: Option<u64>,
    /// How long it may pause in an answer.
    idle_seconds: Option<u64>,
    /// What models cost, by name; `*` is every other.
    prices: BTreeMap<String, PriceOf>,
}

/// One, or several of them.
#[derive(Deserialize, Clone, Debug)]
#[serde(untagged)]
enum Listed<T> {
    One(T),
    Several(Vec<T>),
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

/// Where a key is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    File(PathBuf),
    Variable(String),
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl<T> Listed<T> {
    fn all(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(all) => all,
        }
    }

    fn all_mut(&mut self) -> &mut [T] {
        match self {
            Self::One(one) => std::slice::from_mut(one),
            Self::Several(all) => all,
        }
    }
}

impl Default for Providers {
    fn default() -> Self {
        Self::from(BTreeMap::new())
    }
}

impl From<BTreeMap<String, Provider>> for Providers {
    fn from(mut all: BTreeMap<String, Provider>) -> Self {
        for (name, kind) in BUILT_IN {
            all.entry(name.to_owned()).or_default().kind.get_or_insert(kind);
        }
        Self(all)
    }
}

impl Providers {
    /// Names of files are relative to `folder`: a node may stand anywhere, and the file that names another does not move.
    pub(super) fn found_from(&mut self, folder: &Path) {
        for provider in self.0.values_mut() {
            for named in provider.key_file.all_mut().iter_mut().chain(&mut provider.ca_file) {
                *named = folder.join(&named);
            }
        }
    }

    /// Whether each is one. What the files hold that they name is not looked at.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.0.iter().try_for_each(|(name, provider)| {
            ensure!(
                is_provider(name),
                "`[providers.{name}]`: the name of a provider is 1 to 32 of a-z, 0-9, `-` and `_`, a letter first"
            );
            provider.check(name)
        })
    }

    /// What requests to models may lease and reach. Each name begins with that of its provider, so that a request to one has nothing of another.
    pub(super) fn reach(&self) -> Reach {
        let mut reach = Reach::default();
        for (name, provider) in &self.0 {
            // One that has no base URL is told of where the models are made, and is reached by nothing.
            let Ok(base_url) = provider.base_url() else { continue };
            reach.secrets.extend(secrets(name, provider.keys(&base_url).len()));
            reach.origins.push(format!("{name} {base_url}"));
        }
        reach
    }

    /// The providers as the models' driver has them.
    pub(crate) fn open(&self) -> anyhow::Result<Vec<ephor_models::Provider>> {
        self.0.iter().map(|(name, provider)| provider.open(name)).collect()
    }

    /// Where the secrets are that drivers may lease, by name.
    pub(crate) fn keys(&self) -> BTreeMap<String, Key> {
        let of = |(name, provider): (&String, &Provider)| {
            let keys = provider.base_url().map(|base_url| provider.keys(&base_url)).unwrap_or_default();
            secrets(name, keys.len()).into_iter().zip(keys).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }
}

/// The names of the keys of a provider: its own name, and that with a number behind it.
fn secrets(name: &str, count: usize) -> Vec<String> {
    (1..=count).map(|at| if at == 1 { name.to_owned() } else { format!("{name} {at}") }).collect()
}

impl Provider {
    fn kind(&self) -> anyhow::Result<Kind> {
        self.kind
            .context("`kind` says which API it has: `openai`, `openai-responses`, `anthropic`, `gemini` or `ollama`")
    }

    fn base_url(&self) -> anyhow::Result<BaseUrl> {
        let official = self.kind()?.base_url();
        Ok(self.base_url.as_deref().unwrap_or(official).parse()?)
    }

    /// The keys, in the order in which they are taken: those that the operator has named, which are sent to whichever server the operator has
    /// named. Without any it is that of the environment, for the provider alone that it is of.
    fn keys(&self, base_url: &BaseUrl) -> Vec<Key> {
        let files = self.key_file.all().iter().cloned().map(Key::File);
        let named: Vec<Key> = files.chain(self.key_env.all().iter().cloned().map(Key::Variable)).collect();
        let usual = || {
            let kind = self.kind.filter(|kind| kind.is_official(base_url));
            kind.and_then(Kind::key_variable).map(|name| Key::Variable(name.to_owned()))
        };
        if named.is_empty() { usual().into_iter().collect() } else { named }
    }

    fn check(&self, name: &str) -> anyhow::Result<()> {
        let times = [("first_byte_seconds", self.first_byte_seconds), ("idle_seconds", self.idle_seconds)];
        for (key, seconds) in times {
            let (least, most) = (SECONDS.start(), SECONDS.end());
            let fits = seconds.is_none_or(|seconds| SECONDS.contains(&seconds));
            let seconds = seconds.unwrap_or_default();
            ensure!(fits, "`providers.{name}.{key}` is {seconds}; it may be {least} to {most}");
        }
        let kind = self.kind().with_context(|| format!("`[providers.{name}]`"))?;
        let reserved = self.headers.keys().find(|header| kind.reserved(header));
        ensure!(
            reserved.is_none(),
            "`providers.{name}.headers` names `{}`, which is not for a configuration to say; a key goes into `key_file` or `key_env`",
            reserved.map(String::as_str).unwrap_or_default()
        );
        self.prices(name).map(drop)
    }

    fn open(&self, name: &str) -> anyhow::Result<ephor_models::Provider> {
        let configured_as = format!("providers.{name}");
        let named = |key: &str| format!("`{configured_as}.{key}` in the configuration");
        let base_url = self.base_url().with_context(|| named("base_url"))?;
        let authorities = match &self.ca_file {
            Some(file) => {
                let pem = files::named_bytes(file, files::MOST_TEXT).with_context(|| named("ca_file"))?;
                Authorities::parse(&pem).with_context(|| format!("{}: `{}`", named("ca_file"), file.display()))?
            }
            None => Authorities::default(),
        };
        let proxy = self.proxy.as_deref().map(str::parse).transpose().with_context(|| named("proxy"))?;
        let policy = Policy {
            owner: name.to_owned(),
            origins: vec![base_url.clone()],
            addresses: self.addresses.clone(),
            proxy,
            authorities,
            limits: self.limits(),
        };
        let keys = self.keys(&base_url);
        let named = Named {
            name: name.to_owned(),
            kind: self.kind()?,
            key_hint: hint(keys.first(), name, self.kind()?),
            keys: secrets(name, keys.len()),
            base_url,
            headers: self.headers.clone().into_iter().collect(),
            prices: self.prices(name)?,
            configured_as,
        };
        Ok(ephor_models::Provider::new(named, Egress::new(policy)))
    }

    fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            first_byte: self.first_byte_seconds.map_or(usual.first_byte, Duration::from_secs),
            idle: self.idle_seconds.map_or(usual.idle, Duration::from_secs),
            ..usual
        }
    }

    fn prices(&self, name: &str) -> anyhow::Result<Prices> {
        let price = |(model, price): (&String, &PriceOf)| {
            let PriceOf { input, output, cached } = *price;
            let named = |key: &str| format!("`{key}` under `[providers.{name}.prices.{model}]`");
            let input = Price::millionths(input).with_context(|| named("input"))?;
            let output = Price::millionths(output).with_context(|| named("output"))?;
            let cached = cached.map(Price::millionths).transpose().with_context(|| named("cached"))?.unwrap_or(input);
            Ok((model.clone(), Price { input, cached, output }))
        };
        self.prices.iter().map(price).collect::<anyhow::Result<_>>().map(Prices)
    }
}

/// What to do where the key is missing, or is not accepted: the end of a sentence.
fn hint(key: Option<&Key>, name: &str, kind: Kind) -> String {
    match key {
        Some(Key::File(file)) => {
            format!("put the key into `{}`, which `providers.{name}.key_file` in ephor.toml names", file.display())
        }
        Some(Key::Variable(variable)) => {
            format!("set `{variable}` where the node starts, or `providers.{name}.key_file` in ephor.toml")
        }
        None => {
            let usual = kind.key_variable().unwrap_or("MY_KEY");
            format!(
                "it was given none: name one with `providers.{name}.key_file`, or with `providers.{name}.key_env = \"{usual}\"`, in ephor.toml"
            )
        }
    }
}
