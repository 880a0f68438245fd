//! Which model: from what a person types to a reference, and what the first line says of it.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use ephor_base::ModelRef;

use crate::{BadScript, Script};

/// What `--model` asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModelChoice {
    /// A model that is ready to be asked.
    Ready(ModelRef),
    /// A script in a file that is still to be read; see [`script_model`].
    Script(PathBuf),
}

/// A text that names no model.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnknownModel {
    /// It has neither `/` nor `script:`.
    #[error("`{0}` names no model; {MODELS}")]
    NoProvider(String),
    /// The provider is none of those that exist.
    #[error(
        "there is no provider `{name}`; there are {there}, and `[providers.NAME]` in ephor.toml makes one; {MODELS}"
    )]
    Provider {
        /// What was asked for.
        name: String,
        /// Those there are.
        there: String,
    },
    /// `builtin/` and something else than `scout`.
    #[error("there is no built-in model `{0}`; the one there is is `builtin/scout`")]
    Builtin(String),
    /// The provider's part is there, the name is not, or holds blanks or control characters.
    #[error("`{0}` lacks a usable name; {MODELS}")]
    Name(String),
}

const MODELS: &str = "choose `builtin/scout` (built in, needs nothing), `PROVIDER/MODEL` such as `openai/NAME`, `anthropic/NAME`, \
                      `gemini/NAME` or `ollama/NAME`, or `script:FILE` (replays the lines of a file)";

/// Whether `name` may name a provider: 1 to 32 of a–z, 0–9, `-` and `_`, a letter first, and none that is built in.
#[must_use]
pub fn is_provider(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    begins && name.len() <= 32 && name.chars().all(fits) && !matches!(name, "builtin" | "script")
}

impl UnknownModel {
    pub(crate) fn provider<'a>(name: &str, there: impl Iterator<Item = &'a str>) -> Self {
        let there = there.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Self::Provider { name: shown(name), there }
    }
}

/// Parses what a person typed. Whether there is such a provider, [`crate::Models::served`] says.
///
/// # Errors
/// [`UnknownModel`] lists what there is.
pub fn parse_model(text: &str) -> Result<ModelChoice, UnknownModel> {
    let text = text.trim();
    if let Some(file) = text.strip_prefix("script:") {
        return if file.is_empty() {
            Err(UnknownModel::Name(shown(text)))
        } else {
            Ok(ModelChoice::Script(file.into()))
        };
    }
    let Some((provider, name)) = text.split_once('/') else {
        return Err(UnknownModel::NoProvider(shown(text)));
    };
    match provider {
        "builtin" if name == "scout" => {}
        "builtin" => return Err(UnknownModel::Builtin(shown(name))),
        provider if !is_provider(provider) => return Err(UnknownModel::NoProvider(shown(text))),
        _ if is_name(name) => {}
        _ => return Err(UnknownModel::Name(shown(text))),
    }
    Ok(ModelChoice::Ready(ModelRef { provider: provider.to_owned(), name: name.to_owned(), script: "".into() }))
}

/// The model that replays `lines`, which were read from `file`.
///
/// # Errors
/// [`BadScript`] names the line.
pub fn script_model(file: &Path, lines: &str) -> Result<ModelRef, BadScript> {
    Script::parse(lines)?;
    Ok(ModelRef { provider: "script".to_owned(), name: file.display().to_string(), script: lines.into() })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|c| c.is_control() || c.is_whitespace())
}

/// Enough of a text to recognise it, and nothing that moves a cursor.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// Who answers, and from where: what the first line says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    /// The model as it is chosen, such as `openai/gpt-5`.
    pub model: String,
    /// The provider, such as `openai`.
    pub provider: String,
    /// The host that is asked, with an unusual port; nothing where no network is used.
    pub host: Option<String>,
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.provider.as_str()) {
            (Some(host), _) => write!(f, "{} at {host}", self.model),
            (None, "script") => write!(f, "{} (scripted, no network)", self.model),
            (None, _) => write!(f, "{} (built in, no network)", self.model),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ModelChoice, parse_model, script_model};

    #[test]
    fn what_exists_is_parsed() {
        for (text, shown) in [
            ("builtin/scout", "builtin/scout"),
            (" openai/gpt-5 ", "openai/gpt-5"),
            ("openai/meta/llama:8b", "openai/meta/llama:8b"),
            ("my_box-2/qwen3", "my_box-2/qwen3"),
        ] {
            match parse_model(text).unwrap() {
                ModelChoice::Ready(model) => assert_eq!(model.to_string(), shown),
                ModelChoice::Script(_) => unreachable!(),
            }
        }
        assert_eq!(parse_model("script:a/b c.jsonl").unwrap(), ModelChoice::Script("a/b c.jsonl".into()));
    }

    #[test]
    fn what_does_not_exist_is_told_with_what_does() {
        for text in [
            "",
            "gpt-5",
            "anthropic/",
            "Anthropic/claude",
            "script/x",
            "openai/",
            "openai/a b",
            "script:",
            "builtin/",
            "builtin/other",
            "\u{1b}[2J/x",
        ] {
            let error = parse_model(text).unwrap_err().to_string();
            assert!(error.contains("builtin/scout") && !error.contains('\u{1b}'), "{text}: {error}");
        }
    }

    #[test]
    fn a_script_is_checked_before_it_is_a_model() {
        assert_eq!(script_model("demo.jsonl".as_ref(), "{}\n").unwrap().to_string(), "script:demo.jsonl");
        assert!(script_model("demo.jsonl".as_ref(), "{]\n").is_err());
    }
}
