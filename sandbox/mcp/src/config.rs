//! A `mcpServers` file, as Claude's programs and others read it.
//!
//! Values stand as they are written: `${NAME}` is not replaced, since only the node reads the environment.

use std::collections::{BTreeMap, BTreeSet};

use ephor_base::{Secret, arguments::Value};

use crate::{
    limits::Limits,
    tools::{BadServerName, ServerName, is_token},
    wire::{Fields, Lie, Malformed, read_json},
};

/// The bounds of a file: its bytes and its depth as of one message, and these.
const BYTES: usize = 256 << 10;
const SERVERS: usize = 64;
const ARGUMENTS: usize = 128;
const VARIABLES: usize = 128;
const TEXT: usize = 32 << 10;
const URL: usize = 2048;

/// The servers that a file names.
#[derive(Debug, Default)]
pub struct Servers {
    /// They, sorted by name.
    pub servers: BTreeMap<ServerName, Configured>,
    /// The fields beside `mcpServers`. Nothing was done with them.
    pub unknown: BTreeSet<String>,
}

/// One server.
#[derive(Debug)]
pub struct Configured {
    /// How it is reached.
    pub way: Way,
    /// Fields that mean nothing here, such as `disabled` or `autoApprove`. Nothing was done with them; an operator is to be told.
    pub unknown: BTreeMap<String, Value>,
}

/// How a server is reached.
#[derive(Debug)]
pub enum Way {
    /// As a command, over its input and output.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment. Values are often keys.
        env: BTreeMap<String, Secret<String>>,
    },
    /// At an address, over streamable HTTP.
    Http {
        /// The address: `http` or `https`, visible ASCII. It is not parsed further.
        url: String,
        /// The headers of each request, by name as it is written. Values are often keys.
        headers: BTreeMap<String, Secret<String>>,
    },
}

/// A file that is not understood. No server of it is given out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct ConfigError {
    /// Where, as a path from the file on; `file` is the whole.
    pub place: String,
    /// What is wrong there.
    pub fault: ConfigFault,
}

/// What can be wrong with a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigFault {
    /// It is no JSON within the bounds.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A value of another kind.
    #[error("this is not {0}")]
    Kind(&'static str),
    /// Too many of something.
    #[error("there are {count}, at most {most} are taken")]
    Many {
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A text that is too long.
    #[error("the text has {bytes} bytes, at most {most} are taken")]
    Long {
        /// Its length.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// A name that cannot be one of a server.
    #[error(transparent)]
    Name(#[from] BadServerName),
    /// Neither a command nor an address, or both.
    #[error("a server has either a `command` or a `url`")]
    Way,
    /// A transport that is not spoken.
    #[error("the transport `{0}` is not spoken; `stdio` and `http` are")]
    Transport(String),
    /// A text with characters that cannot be there.
    #[error("this holds characters that cannot be there")]
    Characters,
    /// Not an address of the web.
    #[error("an address begins with `http://` or `https://` and a host, and names no user")]
    Url,
    /// A header that the client sets itself.
    #[error("this header is the client's own")]
    Header,
}

impl From<Lie> for ConfigError {
    fn from(lie: Lie) -> Self {
        Self { place: lie.place, fault: ConfigFault::Kind(lie.expected) }
    }
}

fn at(place: impl Into<String>, fault: impl Into<ConfigFault>) -> ConfigError {
    ConfigError { place: place.into(), fault: fault.into() }
}

impl Servers {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`], with the place.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        let limits = Limits { message_bytes: BYTES, ..Limits::DEFAULT };
        let value = read_json(bytes, &limits).map_err(|malformed| at("file", malformed))?;
        let mut file = Fields::of(value, "file")?;
        let servers =
            file.fields("mcpServers")?.ok_or_else(|| at("file.mcpServers", ConfigFault::Kind("an object")))?;
        let servers = servers.rest();
        few(servers.len(), SERVERS, "file.mcpServers")?;
        let servers = servers.into_iter().map(|(name, value)| server(&name, value)).collect::<Result<_, _>>()?;
        Ok(Self { servers, unknown: file.rest().into_keys().collect() })
    }
}

fn few(count: usize, most: usize, place: &str) -> Result<(), ConfigError> {
    if count > most { Err(at(place, ConfigFault::Many { count, most })) } else { Ok(()) }
}

fn server(name: &str, value: Value) -> Result<(ServerName, Configured), ConfigError> {
    let parsed: ServerName = name.parse().map_err(|bad: BadServerName| at("file.mcpServers", bad))?;
    let mut fields = Fields::of(value, format!("file.mcpServers.{name}"))?;
    let kind = fields.text("type")?;
    let way = match (fields.text("command")?, fields.text("url")?) {
        (Some(command), None) => command_line(command, kind, &mut fields)?,
        (None, Some(url)) => address(url, kind, &mut fields)?,
        _ => return Err(at(fields.whole(), ConfigFault::Way)),
    };
    Ok((parsed, Configured { way, unknown: fields.rest() }))
}

fn spoken(kind: Option<String>, names: &[&str], fields: &Fields) -> Result<(), ConfigError> {
    match kind {
        Some(kind) if !names.contains(&kind.as_str()) => {
            Err(at(fields.place("type"), ConfigFault::Transport(kind.chars().take(40).collect())))
        }
        _ => Ok(()),
    }
}

fn command_line(command: String, kind: Option<String>, fields: &mut Fields) -> Result<Way, ConfigError> {
    spoken(kind, &["stdio"], fields)?;
    let command = plain(command, fields.place("command"))?;
    if command.is_empty() {
        return Err(at(fields.place("command"), ConfigFault::Characters));
    }
    let args = fields.list("args")?.unwrap_or_default();
    let place = fields.place("args");
    few(args.len(), ARGUMENTS, &place)?;
    let arg = |(index, value)| match value {
        Value::Text(text) => plain(text, format!("{place}[{index}]")),
        _ => Err(at(format!("{place}[{index}]"), ConfigFault::Kind("a string"))),
    };
    let args = args.into_iter().enumerate().map(arg).collect::<Result<_, _>>()?;
    let env = pairs(fields, "env", |name, _| !name.is_empty() && !name.contains(['=', '\0']))?;
    Ok(Way::Command { command, args, env })
}

fn address(url: String, kind: Option<String>, fields: &mut Fields) -> Result<Way, ConfigError> {
    spoken(kind, &["http", "streamable-http", "streamableHttp"], fields)?;
    let place = fields.place("url");
    if url.len() > URL {
        return Err(at(place, ConfigFault::Long { bytes: url.len(), most: URL }));
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).filter(|host| !host.is_empty());
    if host.is_none_or(|host| host.contains('@')) || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(at(place, ConfigFault::Url));
    }
    let fits = |byte: u8| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic();
    let headers = pairs(fields, "headers", |name, value| {
        !name.is_empty() && name.bytes().all(is_token) && value.bytes().all(fits)
    })?;
    match headers.keys().find(|name| is_own(name)) {
        Some(name) => Err(at(format!("{}.{name}", fields.place("headers")), ConfigFault::Header)),
        None => Ok(Way::Http { url, headers }),
    }
}

/// Whether the client, or HTTP itself, sets this header.
fn is_own(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let own = ["accept", "connection", "content-length", "content-type", "host", "te", "transfer-encoding", "upgrade"];
    own.contains(&name.as_str()) || name.starts_with("mcp-")
}

/// A text without NUL.
fn plain(text: String, place: String) -> Result<String, ConfigError> {
    if text.len() > TEXT {
        return Err(at(place, ConfigFault::Long { bytes: text.len(), most: TEXT }));
    }
    if text.contains('\0') { Err(at(place, ConfigFault::Characters)) } else { Ok(text) }
}

/// An object of strings.
fn pairs(
    fields: &mut Fields,
    name: &str,
    fits: impl Fn(&str, &str) -> bool,
) -> Result<BTreeMap<String, Secret<String>>, ConfigError> {
    let pairs = fields.fields(name)?.map(Fields::rest).unwrap_or_default();
    let place = fields.place(name);
    few(pairs.len(), VARIABLES, &place)?;
    let pair = |(key, value): (String, Value)| {
        let own = format!("{place}.{}", key.chars().take(80).collect::<String>());
        let Value::Text(value) = value else { return Err(at(own, ConfigFault::Kind("a string"))) };
        let value = plain(value, own.clone())?;
        if key.len() > URL || !fits(&key, &value) {
            return Err(at(own, ConfigFault::Characters));
        }
        Ok((key, Secret::new(value)))
    };
    pairs.into_iter().map(pair).collect()
}
