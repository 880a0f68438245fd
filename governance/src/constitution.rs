//! The law: what is permitted, deferred or denied, whoever asks.

use ephor_base::{Capability, Confidentiality, Decision, EffectVector, PerMille};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// Where a node runs, and so how much effect needs no person.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Environment {
    /// One person's own machine.
    #[n(0)]
    Dev,
    /// Like production, without its data.
    #[n(1)]
    Staging,
    /// Where it counts.
    #[n(2)]
    Production,
}

impl Environment {
    /// A component of the effect vector at or over this defers.
    #[must_use]
    pub const fn threshold(self) -> PerMille {
        PerMille::saturating(match self {
            Self::Dev => 900,
            Self::Staging => 600,
            Self::Production => 300,
        })
    }

    /// Its name in configuration and record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Staging => "staging",
            Self::Production => "production",
        }
    }
}

/// One article: what happens to actions that need `capability`.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Article {
    /// The capability it speaks of.
    #[n(0)]
    pub capability: Capability,
    /// What it decides.
    #[n(1)]
    pub decision: Decision,
    /// Its name in reasons.
    #[n(2)]
    pub code: String,
    /// The most confidential text that may reach such an action.
    #[n(3)]
    pub clearance: Confidentiality,
}

/// A file name that raises the effects of whatever touches it.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct SensitivePath {
    /// A component of the path, compared without case: `.git`, or `*.pem` for an ending.
    #[n(0)]
    pub component: String,
    /// What is joined to the effect vector.
    #[n(1)]
    pub effects: EffectVector,
}

/// All articles. An action that no article speaks of is denied.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Constitution {
    /// At most one a capability counts: the strictest.
    #[n(0)]
    pub articles: Vec<Article>,
    /// Names that are more than files.
    #[n(1)]
    pub sensitive: Vec<SensitivePath>,
}

impl Default for Constitution {
    /// Reads inside the workspace are permitted, writes are asked about, models and the person see what is not
    /// confidential, and everything else is denied.
    fn default() -> Self {
        let article = |capability, decision, code: &str, clearance| Article {
            capability,
            decision,
            code: code.into(),
            clearance,
        };
        let sensitive = |component: &str| SensitivePath {
            component: component.into(),
            effects: EffectVector::new(0, 0, 700, 0, 700),
        };
        let names =
            [".git", ".ssh", ".gnupg", ".aws", ".env", ".npmrc", ".netrc", "*.pem", "*.key", "id_rsa", "id_ed25519"];
        Self {
            articles: vec![
                article(Capability::Model, Decision::Permit, "model-may-be-asked", Confidentiality::Internal),
                article(Capability::Reply, Decision::Permit, "person-may-be-answered", Confidentiality::Confidential),
                article(Capability::FsRead, Decision::Permit, "workspace-may-be-read", Confidentiality::Confidential),
                article(Capability::FsWrite, Decision::Defer, "write-needs-approval", Confidentiality::Confidential),
            ],
            sensitive: names.into_iter().map(sensitive).collect(),
        }
    }
}

impl Constitution {
    /// The strictest article on `capability`.
    #[must_use]
    pub fn article(&self, capability: Capability) -> Option<&Article> {
        self.articles.iter().filter(|article| article.capability == capability).max_by_key(|article| article.decision)
    }

    /// The least clearance of any article on `capability`: the most confidential text that may reach it.
    #[must_use]
    pub fn clearance(&self, capability: Capability) -> Option<Confidentiality> {
        let articles = self.articles.iter().filter(|article| article.capability == capability);
        articles.map(|article| article.clearance).min()
    }

    /// What touching `path` adds to the effects of an action.
    #[must_use]
    pub fn effects_of_path(&self, path: &str) -> EffectVector {
        let touched = |rule: &&SensitivePath| path.split(['/', '\\']).any(|component| rule.matches(component));
        self.sensitive.iter().filter(touched).fold(EffectVector::NONE, |sum, rule| sum.join(&rule.effects))
    }
}

impl SensitivePath {
    fn matches(&self, component: &str) -> bool {
        let (rule, component) = (folded(&self.component), folded(component));
        rule.strip_prefix('*').map_or(component == rule, |ending| component.ends_with(ending))
    }
}

/// A name as the most forgiving file system compares it: without case, without characters that do not show, and without
/// the dots and spaces that some cut off at the end.
fn folded(name: &str) -> String {
    let shows = |c: &char| !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let name: String = name.chars().filter(shows).collect();
    // Upper case first: a long s folds to an s only that way.
    name.trim_end_matches(['.', ' ']).to_uppercase().to_lowercase()
}
