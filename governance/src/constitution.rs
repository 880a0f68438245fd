//! The constitution: what is permitted, deferred or denied, whichever principal asks. Cedar policies, checked against a schema.
//!
//! Each policy has an `@id`, which is its name in reasons. A `permit` permits, a `forbid` denies, and a `forbid` with
//! `@decision("defer")` asks a person, and with `@quorum("2")` beside it two different ones. What no policy permits is denied. A policy that cannot be evaluated denies: Cedar
//! itself would pass over it.

mod bounds;
mod law;

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use cedar_policy::{Effect, Policy, PolicyId, PolicySet, Schema, ValidationMode, Validator};
use ephor_base::Digest;

use crate::{Environment, sensitive::SensitivePath};

pub use law::Principal;
pub(crate) use law::{Article, Facts, Law};

const SCHEMA: &str = include_str!("../constitutions/schema.cedarschema");
const DEV: &str = include_str!("../constitutions/dev.cedar");
const STAGING: &str = include_str!("../constitutions/staging.cedar");
const PRODUCTION: &str = include_str!("../constitutions/production.cedar");

/// A text that is no constitution. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadConstitution {
    /// Longer, deeper or more entangled than the parser may be given.
    #[error("it is too much for one constitution: {0}")]
    Bounds(String),
    /// Not Cedar.
    #[error("it cannot be read: {0}")]
    Syntax(String),
    /// A policy without a name that can stand in a reason, or two of one name.
    #[error("every policy needs an `@id` of its own, of a–z, 0–9 and `-`; `{0}` has none such")]
    Name(String),
    /// An annotation that means nothing here.
    #[error("`@decision` may be \"defer\", and only on a `forbid`; policy `{0}` has it otherwise")]
    Decision(String),
    /// An annotation that means nothing here.
    #[error(
        "`@quorum` is a number from 1 to 16, and only beside `@decision(\"defer\")`; policy `{0}` has it otherwise"
    )]
    Quorum(String),
    /// It speaks of what the schema does not have, or compares what cannot be compared.
    #[error("it does not fit the schema: {0}")]
    Schema(String),
    /// It and the tools do not fit together.
    #[error("it does not fit the tools: {0}")]
    Tools(String),
}

/// A constitution, read and checked.
#[derive(Clone, Debug)]
pub struct Constitution {
    text: String,
    policies: Vec<Policy>,
    /// How many must permit what these articles defer, where it is more than one.
    quorums: BTreeMap<String, u32>,
    sensitive: Vec<SensitivePath>,
    digest: Digest,
}

impl Constitution {
    /// Reads Cedar policies and checks each against the schema.
    ///
    /// # Errors
    /// [`BadConstitution`] says what is wrong.
    pub fn parse(text: &str) -> Result<Self, BadConstitution> {
        bounds::check(text)?;
        let read = PolicySet::from_str(text).map_err(|error| BadConstitution::Syntax(error.to_string()))?;
        if let Some(template) = read.templates().next() {
            return Err(BadConstitution::Name(template.id().to_string()));
        }
        let quorums = read.policies().filter_map(|policy| quorum(policy).transpose()).collect::<Result<_, _>>()?;
        let mut policies: Vec<Policy> = read.policies().map(named).collect::<Result<_, _>>()?;
        policies.sort_by(|one, other| one.id().cmp(other.id()));
        let names: BTreeSet<_> = policies.iter().map(|policy| policy.id().clone()).collect();
        if names.len() != policies.len() {
            let twice = policies.windows(2).find(|pair| pair.first().map(Policy::id) == pair.last().map(Policy::id));
            return Err(BadConstitution::Name(
                twice.and_then(<[_]>::first).map_or_else(String::new, |policy| policy.id().to_string()),
            ));
        }
        let set = PolicySet::from_policies(policies.iter().cloned());
        let set = set.map_err(|error| BadConstitution::Syntax(error.to_string()))?;
        let checked = Validator::new(schema()?).validate(&set, ValidationMode::Strict);
        if !checked.validation_passed() {
            let errors: Vec<String> = checked.validation_errors().map(ToString::to_string).collect();
            return Err(BadConstitution::Schema(errors.join("; ")));
        }
        let sensitive = SensitivePath::defaults();
        let digest =
            Digest::of_parts(&[SCHEMA.as_bytes(), &[0], text.as_bytes(), &[0], &ephor_base::cbor::to_vec(&sensitive)]);
        Ok(Self { text: text.to_owned(), policies, quorums, sensitive, digest })
    }

    /// The constitution that a node in `environment` has if its operator gives it none.
    #[must_use]
    pub const fn default_text(environment: Environment) -> &'static str {
        match environment {
            Environment::Dev => DEV,
            Environment::Staging => STAGING,
            Environment::Production => PRODUCTION,
        }
    }

    /// The schema that every constitution is checked against.
    #[must_use]
    pub const fn schema_text() -> &'static str {
        SCHEMA
    }

    /// Its text, as it was read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Each policy by name, sorted, as canonical Cedar.
    pub fn articles(&self) -> impl Iterator<Item = (String, String)> {
        self.policies.iter().map(|policy| (policy.id().to_string(), policy.to_cedar().unwrap_or_default()))
    }

    /// How many different people must permit what the article of this name defers.
    #[must_use]
    pub fn quorum(&self, article: &str) -> u32 {
        self.quorums.get(article).copied().unwrap_or(1)
    }

    /// Names that are more than files.
    #[must_use]
    pub fn sensitive(&self) -> &[SensitivePath] {
        &self.sensitive
    }

    /// SHA-256 over schema, text and sensitive names.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }
}

fn schema() -> Result<Schema, BadConstitution> {
    let read = Schema::from_cedarschema_str(SCHEMA).map_err(|error| BadConstitution::Schema(error.to_string()))?;
    Ok(read.0)
}

/// The most people that can be asked to permit one action.
const MOST_PEOPLE: u32 = 16;

/// How many must permit what a policy defers, by its name.
fn quorum(policy: &Policy) -> Result<Option<(String, u32)>, BadConstitution> {
    let Some(text) = policy.annotation("quorum") else { return Ok(None) };
    let name = policy.annotation("id").unwrap_or_default().to_owned();
    let number = text.parse().ok().filter(|number| (1..=MOST_PEOPLE).contains(number) && text == number.to_string());
    match (number, policy.annotation("decision")) {
        (Some(number), Some("defer")) => Ok(Some((name, number))),
        _ => Err(BadConstitution::Quorum(name)),
    }
}

/// The policy under its own `@id`.
fn named(policy: &Policy) -> Result<Policy, BadConstitution> {
    let name = policy.annotation("id").unwrap_or_default();
    let fits = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-');
    if name.is_empty() || name.len() > 80 || !name.chars().all(fits) {
        return Err(BadConstitution::Name(if name.is_empty() { policy.id().to_string() } else { name.to_owned() }));
    }
    match (policy.annotation("decision"), policy.effect()) {
        (None, _) | (Some("defer"), Effect::Forbid) => Ok(policy.new_id(PolicyId::new(name))),
        _ => Err(BadConstitution::Decision(name.to_owned())),
    }
}
