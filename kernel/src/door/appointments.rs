//! What the agents of a node are: names, roles and namespaces, tools, and how their conduct is judged.
//!
//! The configuration of the operator says so when the node starts, and nothing else ever does. It is recorded when a
//! session is opened, and again where a session is taken up of whose agent the configuration says something else by now;
//! so what a decision depends on stands on the record before it.

use std::collections::{BTreeMap, BTreeSet};

use ephor_base::Capability;
use ephor_governance::{Rights, evidence::DEFAULT_P0};
use ephor_record::{Appointment, Fact};

use super::Session;

/// The agents of a node, by name. There is always one named [`Appointments::DEFAULT`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Appointments(BTreeMap<String, Appointment>);

impl Appointments {
    /// The name of the agent that is meant where none is named.
    pub const DEFAULT: &'static str = "default";

    /// The role and the namespace of an agent whose operator says nothing of it.
    pub const ROLE: &'static str = "agent";
    /// See [`Appointments::ROLE`].
    pub const NAMESPACE: &'static str = "default";

    /// These, the last of each name, and the agent that is meant where none is named.
    #[must_use]
    pub fn new(all: impl IntoIterator<Item = Appointment>) -> Self {
        let default = [Self::plain(Self::DEFAULT)].into_iter();
        // The record has tools in order, and the same ones in another order are the same.
        let in_order = |one: Appointment| {
            let tools: Option<BTreeSet<_>> = one.tools.map(|tools| tools.into_iter().collect());
            Appointment { tools: tools.map(|tools| tools.into_iter().collect()), ..one }
        };
        Self(default.chain(all).map(|one| (one.agent.clone(), in_order(one))).collect())
    }

    /// An agent of which nothing is said but its name: it may have every tool.
    #[must_use]
    pub fn plain(agent: &str) -> Appointment {
        let (role, namespace) = (Self::ROLE.to_owned(), Self::NAMESPACE.to_owned());
        Appointment {
            agent: agent.to_owned(),
            role,
            namespace,
            p0: DEFAULT_P0,
            tools: None,
            zone: None,
            planned: false,
        }
    }

    /// The agent of this name.
    #[must_use]
    pub fn of(&self, agent: &str) -> Option<&Appointment> {
        self.0.get(agent)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Appointment> {
        self.0.values()
    }
}

impl Default for Appointments {
    fn default() -> Self {
        Self::new([])
    }
}

/// As far as these rights are for the tools that an agent may have.
pub(crate) fn within(rights: Rights, agent: &Appointment) -> Rights {
    match &agent.tools {
        Some(tools) => rights.only(tools.iter().cloned()),
        None => rights,
    }
}

/// How the record says of an opened session what its agent is, with the rights of its seat.
pub(crate) fn opened(agent: &Appointment, rights: &Rights) -> Fact {
    let Appointment { agent, role, namespace, p0, tools: _, zone, planned } = agent.clone();
    let tools = rights.tools().map(|tools| tools.iter().cloned().collect());
    let (rights, agent, p0) = (rights.iter().collect(), Some(agent), Some(p0));
    Fact::Opened { rights, role, namespace, agent, p0, tools, zone, planned }
}

/// What the record says of it, and the rights of its seat; nothing if the fact is no opening.
pub(crate) fn recorded(fact: &Fact) -> Option<(Appointment, Rights)> {
    let Fact::Opened { rights, role, namespace, agent, p0, tools, zone, planned } = fact else { return None };
    let appointment = Appointment {
        agent: agent.clone().unwrap_or_else(|| Appointments::DEFAULT.to_owned()),
        role: role.clone(),
        namespace: namespace.clone(),
        p0: p0.unwrap_or(DEFAULT_P0),
        tools: tools.clone(),
        zone: zone.clone(),
        planned: *planned,
    };
    let rights = within(Rights::of(rights.iter().copied()), &appointment);
    Some((appointment, rights))
}

impl Session {
    /// From here on its agent is this. What its seat has done stays with it.
    pub(crate) fn appoint(&mut self, agent: &Appointment) {
        let capabilities: Vec<Capability> = self.spec.rights.iter().collect();
        self.spec.rights = within(Rights::of(capabilities), agent);
        self.evidence = self.evidence.onwards_under(agent.p0);
        self.spec.agent = agent.clone();
    }
}
