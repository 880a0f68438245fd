//! Names: of servers as the operator gives them, of tools as models are told them.

use std::{fmt, str::FromStr, sync::Arc};

use ephor_base::{Digest, ToolName};

/// The name of a server: 1 to 24 of `a`–`z`, `0`–`9`, `_`, `-`. It has no dot, so that `mcp.SERVER.TOOL` can be read one way only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerName(Arc<str>);

/// A text that cannot name a server.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` cannot name a server: a name is 1 to 24 of a–z, 0–9, `_`, `-`")]
pub struct BadServerName(String);

impl ServerName {
    /// The most bytes of one. It leaves 35 for the name of a tool.
    pub const LONGEST: usize = 24;

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerName {
    type Err = BadServerName;
    fn from_str(text: &str) -> Result<Self, BadServerName> {
        let fits = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-');
        if (1..=Self::LONGEST).contains(&text.len()) && text.chars().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(BadServerName(text.chars().take(80).collect()))
        }
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The most bytes of a [`ToolName`].
const LONGEST: usize = 64;

/// The name under which models are told of the tool that `server` calls `name`: letters in lower case, `_` for what a [`ToolName`]
/// cannot have, and where that is too long its beginning with eight digits of the whole name's digest.
pub(super) fn told(server: &ServerName, name: &str) -> Option<ToolName> {
    let fits = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
    let plain = name.chars().map(|c| c.to_ascii_lowercase()).map(|c| if fits(c) { c } else { '_' });
    let whole: String = format!("mcp.{server}.").chars().chain(plain).collect();
    if whole.len() <= LONGEST {
        return whole.parse().ok();
    }
    let digits = Digest::of(name.as_bytes()).short();
    let kept = LONGEST.checked_sub(digits.len())?.checked_sub(1)?;
    format!("{}-{digits}", whole.get(..kept)?).parse().ok()
}
