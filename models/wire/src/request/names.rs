//! Tool names on the wire, where only `A`–`Z`, `a`–`z`, `0`–`9`, `_` and `-` may stand.
//!
//! A name of ours ([`ephor_base::ToolName`]) has no upper case, and the wire has no dot. So a dot and the letter after it are that letter in upper
//! case, and a dot before anything else, or before `z`, is a `Z`: `fs.read` is `fsRead`, `a.1` is `aZ1`, `a.z` is `aZz`. No name grows,
//! no two names are the same on the wire, and no table is kept: a tool that is offered no more is named as it was.

use ephor_base::{Digest, ToolName};

/// The longest name the wire takes.
pub(super) const LONGEST: usize = 64;

/// A dot that no letter stands for.
const BARE_DOT: char = 'Z';

/// Whether `name` may stand on the wire.
pub(super) fn fits(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'))
}

/// The name on the wire. What is no tool's name (a model makes names up) is written as well as can be.
#[must_use]
pub fn wire_name(name: &str) -> String {
    if name.parse::<ToolName>().is_err() {
        return fitted(name);
    }
    let mut wire = String::with_capacity(name.len());
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('.', Some(letter @ 'a'..='y')) => {
                wire.push(letter.to_ascii_uppercase());
                chars.next();
            }
            ('.', _) => wire.push(BARE_DOT),
            (c, _) => wire.push(c),
        }
    }
    wire
}

/// The tool of a name on the wire; a name that no tool can have there stays as it came, for the door to refuse.
#[must_use]
pub fn tool_of(wire: &str) -> String {
    let mut name = String::with_capacity(wire.len() + 8);
    for c in wire.chars() {
        match c {
            BARE_DOT => name.push('.'),
            c if c.is_ascii_uppercase() => name.extend(['.', c.to_ascii_lowercase()]),
            c => name.push(c),
        }
    }
    if wire_name(&name) == wire { name } else { wire.to_owned() }
}

fn fitted(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let fitted: String = name.chars().map(fits).take(LONGEST).collect();
    if fitted.is_empty() { "_".to_owned() } else { fitted }
}

/// The id of a call on the wire: its own where that fits, and else one made of it, the same each time.
pub(crate) fn wire_id(id: &str) -> String {
    if fits(id) {
        return id.to_owned();
    }
    let digest = Digest::of(id.as_bytes()).to_string();
    format!("call_{}", digest.get(..32).unwrap_or(&digest))
}
