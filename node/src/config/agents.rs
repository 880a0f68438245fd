//! `[agents.NAME]` and `[roles.NAME]` in `ephor.toml`: what agents there are.
//!
//! An agent has one role. The constitution speaks of roles and namespaces (`principal in Role::"reader"`), so a role that
//! is misspelt here would slip past it: each has to be declared, with a table of its own or an empty one.

use std::collections::BTreeMap;

use anyhow::bail;
use ephor_base::ToolName;
use ephor_governance::evidence::{DEFAULT_P0, P0};
use ephor_kernel::Appointments;
use ephor_record::Appointment;
use ephor_sandbox::{APPLY, SHELL};
use serde::Deserialize;

use crate::timetable::{self, BadTimetable};

/// The longest name of an agent, a role or a namespace, in bytes.
const MAX_NAME: usize = 64;

/// `[agents.NAME]`.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Agent {
    /// Its role; `agent` if it is left out.
    role: Option<String>,
    /// Its namespace; `default` if it is left out.
    namespace: Option<String>,
    /// The only tools it may have; all of the node, if they are left out.
    tools: Option<Vec<ToolName>>,
    /// The time zone of its person; that of the home, if it is left out.
    zone: Option<String>,
    /// Whether its model is asked, with what people typed and nothing else, which acting calls a request needs, once something
    /// untrusted was read. Otherwise what acts needs literals of what was typed.
    planner: bool,
}

impl Default for Agent {
    fn default() -> Self {
        Self { role: None, namespace: None, tools: None, zone: None, planner: true }
    }
}

/// `[roles.NAME]`.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Role {
    /// How many of 1,000 tool calls of a seat may be refused before that counts against it.
    bad_calls_per_mille: Option<u16>,
}

/// What agents there are.
pub(super) fn appointments(
    agents: &BTreeMap<String, Agent>,
    roles: &BTreeMap<String, Role>,
    home: Option<&str>,
) -> anyhow::Result<Appointments> {
    for (name, Role { bad_calls_per_mille }) in roles {
        check_name("role", name)?;
        if let Some(p0) = bad_calls_per_mille.filter(|p0| !P0.contains(p0)) {
            let (least, most) = (P0.start(), P0.end());
            bail!("`bad_calls_per_mille` under `[roles.{name}]` is {p0}; it is a number from {least} to {most}");
        }
    }
    let p0 = |role: &str| roles.get(role).and_then(|role| role.bad_calls_per_mille).unwrap_or(DEFAULT_P0);
    let zones = agents.values().filter_map(|agent| agent.zone.as_deref());
    if let Some(unknown) = zones.chain(home).find(|zone| timetable::zone(zone).is_err()) {
        bail!(BadTimetable::Zone(unknown.to_owned()));
    }
    let default = Appointments::plain(Appointments::DEFAULT);
    let mut all =
        vec![Appointment { p0: p0(Appointments::ROLE), zone: home.map(str::to_owned), planned: true, ..default }];
    for (name, Agent { role, namespace, tools, zone, planner }) in agents {
        let plain = Appointments::plain(name);
        let (role, namespace) = (role.clone().unwrap_or(plain.role), namespace.clone().unwrap_or(plain.namespace));
        for (what, name) in [("agent", name), ("role", &role), ("namespace", &namespace)] {
            check_name(what, name)?;
        }
        if role != Appointments::ROLE && !roles.contains_key(&role) {
            bail!(
                "the agent `{name}` has the role `{role}`, which is not declared; correct it, or add `[roles.{role}]`"
            );
        }
        let (agent, mut tools, planned) = (name.clone(), tools.clone(), *planner);
        // With commands comes what applies their changes.
        if let Some(tools) = tools.as_mut().filter(|tools| tools.iter().any(|tool| tool.as_str() == SHELL)) {
            tools.push(APPLY.parse()?);
        }
        let zone = zone.clone().or_else(|| home.map(str::to_owned));
        all.push(Appointment { agent, p0: p0(&role), role, namespace, tools, zone, planned });
    }
    Ok(Appointments::new(all))
}

fn check_name(what: &str, name: &str) -> anyhow::Result<()> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) {
        bail!("`{name}` is no name of {}: 1 to {MAX_NAME} of a-z, 0-9, `.`, `_` and `-`", article(what));
    }
    Ok(())
}

fn article(what: &str) -> String {
    if what == "agent" { format!("an {what}") } else { format!("a {what}") }
}
