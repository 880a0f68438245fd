//! The constitution over the tools of a node, cut into slices when it is loaded.
//!
//! A decision looks only at the policies whose scope could match: those for its target, and of these the ones for
//! anybody, for its seat, its role and its namespace. A policy that is nothing but such a scope says the same of every case
//! there, and is not evaluated again; Cedar evaluates the others. Where several slices concern the principal that asks they are
//! joined into one, once for all who have the same, as each question to Cedar costs about a microsecond by itself. Permits are
//! evaluated apart from forbids, because Cedar names only what decided, and every policy that applies is a reason here.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Display,
    sync::{Arc, PoisonError, RwLock},
};

use cedar_policy::{
    ActionConstraint, Authorizer, Context, Effect, Entities, Entity, EntityId, EntityTypeName, EntityUid, Policy,
    PolicySet, PrincipalConstraint, Request, ResourceConstraint, Response, RestrictedExpression,
};
use ephor_base::{Capability, Confidentiality, Decision, EffectVector, ToolName};

use super::{BadConstitution, Constitution};
use crate::registry::{Registry, Tool};

/// Who asks, as the constitution knows it. Made once for a session.
#[derive(Clone, Debug)]
pub struct Principal {
    seat: EntityUid,
    scopes: [Scope; 4],
    entities: Entities,
}

/// Which principals a policy speaks of: any, or one entity and what is in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Scope(Option<EntityUid>);

/// What of a case a constitution can speak of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) environment: &'static str,
    pub(crate) effects: EffectVector,
    pub(crate) confidentiality: Confidentiality,
    pub(crate) untrusted: bool,
    pub(crate) tainted: bool,
    pub(crate) reversible: bool,
    pub(crate) planned: bool,
    pub(crate) pinned: bool,
}

/// What one policy says of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Article {
    pub(crate) decision: Decision,
    pub(crate) code: String,
}

/// The law for every target of a node.
#[derive(Debug)]
pub(crate) struct Law {
    authorizer: Authorizer,
    entities: Entities,
    model: Target,
    person: Target,
    tools: BTreeMap<ToolName, Target>,
}

/// The policies that could concern one target.
#[derive(Debug)]
struct Target {
    action: EntityUid,
    resource: EntityUid,
    /// Where the slice for a scope is in `slices`.
    places: HashMap<Scope, usize>,
    slices: Vec<Arc<Slice>>,
    /// What several slices say together, by their places. At most one for each
    /// combination of a seat, a role and a namespace that the law names.
    joined: RwLock<HashMap<Places, Arc<Slice>>>,
    reads: Reads,
}

/// Where the slices for a principal are: those that there are for anybody, and for the seat, the role and the namespace.
type Places = [Option<usize>; 4];

/// Those of them for one scope of principals, or for several.
#[derive(Debug, Default)]
struct Slice {
    /// What those say that have no condition.
    always: Vec<Article>,
    /// What depends on the case.
    permits: PolicySet,
    /// What depends on the case, to deny or to ask a person.
    forbids: PolicySet,
}

/// The attributes of the context that the policies of a target read.
#[derive(Clone, Debug, Default)]
struct Reads(BTreeSet<&'static str>);

const ATTRIBUTES: [&str; 12] = [
    "environment",
    "risk",
    "fairness",
    "privacy",
    "novelty",
    "security",
    "confidentiality",
    "untrusted",
    "tainted",
    "reversible",
    "planned",
    "pinned",
];

impl Law {
    /// Cuts `constitution` for the tools of `registry`.
    pub(crate) fn new(constitution: &Constitution, registry: &Registry) -> Result<Self, BadConstitution> {
        let schema = super::schema()?;
        let actions = schema.action_entities().map_err(|error| fault(&error))?;
        let tools: Vec<&Tool> = registry.tools().collect();
        let (model, person) = (uid("Model", "model")?, uid("Person", "person")?);
        let mut all = vec![Entity::with_uid(model.clone()), Entity::with_uid(person.clone())];
        for capability in Capability::ALL {
            all.push(Entity::with_uid(uid("Capability", capability.name())?));
        }
        for tool in &tools {
            all.push(tool_entity(tool)?);
        }
        let entities = actions.add_entities(all, Some(&schema)).map_err(|error| fault(&error))?;
        let target = |action, resource| Target::new(constitution, &entities, uid("Action", action)?, resource);
        let law = |tool: &&Tool| {
            let name = tool.registration().name.clone();
            let target = target("run", uid("Tool", name.as_str())?)?;
            Ok((name, target))
        };
        Ok(Self {
            authorizer: Authorizer::new(),
            model: target("ask", model)?,
            person: target("answer", person)?,
            tools: tools.iter().map(law).collect::<Result<_, BadConstitution>>()?,
            entities,
        })
    }

    /// Who asks from `seat`, in a role and a namespace.
    pub(crate) fn principal(&self, seat: &str, role: &str, namespace: &str) -> Result<Principal, BadConstitution> {
        let (seat, role, namespace) = (uid("Seat", seat)?, uid("Role", role)?, uid("Namespace", namespace)?);
        let own = Entity::new_no_attrs(seat.clone(), HashSet::from([role.clone(), namespace.clone()]));
        let all = [own, Entity::with_uid(role.clone()), Entity::with_uid(namespace.clone())];
        let entities = self.entities.clone().add_entities(all, None);
        let entities = entities.map_err(|error| fault(&error))?;
        Ok(Principal { scopes: [None, Some(seat.clone()), Some(role), Some(namespace)].map(Scope), seat, entities })
    }

    /// What the law says of asking a model.
    pub(crate) fn on_model(&self, principal: &Principal, facts: &Facts) -> Vec<Article> {
        self.weigh(&self.model, principal, facts)
    }

    /// What the law says of answering a person.
    pub(crate) fn on_person(&self, principal: &Principal, facts: &Facts) -> Vec<Article> {
        self.weigh(&self.person, principal, facts)
    }

    /// What the law says of running a tool.
    pub(crate) fn on_tool(&self, tool: &ToolName, principal: &Principal, facts: &Facts) -> Vec<Article> {
        self.tools
            .get(tool)
            .map_or_else(|| vec![deny("tool-is-unknown-to-the-law")], |target| self.weigh(target, principal, facts))
    }

    fn weigh(&self, target: &Target, principal: &Principal, facts: &Facts) -> Vec<Article> {
        let Some(request) = target.request(principal, facts) else { return vec![deny("law-cannot-be-applied")] };
        let Some(slice) = target.slice(principal) else { return vec![deny("law-cannot-be-applied")] };
        let mut found = slice.always.clone();
        for policies in [&slice.permits, &slice.forbids].into_iter().filter(|policies| !policies.is_empty()) {
            let answer = self.authorizer.is_authorized(&request, policies, &principal.entities);
            take_in(&answer, policies, &mut found);
        }
        if found.iter().all(|article| article.decision == Decision::Defer) {
            found.push(deny("no-article-allows-it"));
        }
        found.sort_by(|one, other| (one.decision, &one.code).cmp(&(other.decision, &other.code)));
        found
    }
}

/// The policies that apply, each with what it says. One that failed might have forbidden.
fn take_in(answer: &Response, policies: &PolicySet, found: &mut Vec<Article>) {
    let diagnostics = answer.diagnostics();
    found.extend(diagnostics.reason().filter_map(|id| policies.policy(id)).map(Article::of));
    if diagnostics.errors().next().is_some() {
        found.push(deny("law-cannot-be-applied"));
    }
}

impl Article {
    /// What a policy says where it applies.
    fn of(policy: &Policy) -> Self {
        let decision = match (policy.effect(), policy.annotation("decision")) {
            (Effect::Permit, _) => Decision::Permit,
            (Effect::Forbid, Some(_)) => Decision::Defer,
            (Effect::Forbid, None) => Decision::Deny,
        };
        Self { decision, code: policy.id().to_string() }
    }
}

fn deny(code: &str) -> Article {
    Article { decision: Decision::Deny, code: code.to_owned() }
}

impl Target {
    fn new(
        constitution: &Constitution,
        entities: &Entities,
        action: EntityUid,
        resource: EntityUid,
    ) -> Result<Self, BadConstitution> {
        let (places, joined) = (HashMap::new(), RwLock::default());
        let mut target = Self { action, resource, places, slices: Vec::new(), joined, reads: Reads::default() };
        let mut slices: HashMap<Scope, Slice> = HashMap::new();
        for policy in &constitution.policies {
            if !target.is_meant_by(policy, entities) {
                continue;
            }
            target.reads.take_in(policy);
            let (scope, is_met) = scope(policy);
            slices.entry(scope).or_default().take_in(policy, is_met)?;
        }
        for (place, (scope, slice)) in slices.into_iter().enumerate() {
            target.places.insert(scope, place);
            target.slices.push(Arc::new(slice));
        }
        Ok(target)
    }

    /// Whether the scope of the policy could match this target.
    fn is_meant_by(&self, policy: &Policy, entities: &Entities) -> bool {
        let within = |group: &EntityUid| *group == self.resource || entities.is_ancestor_of(group, &self.resource);
        let action = match policy.action_constraint() {
            ActionConstraint::Any => true,
            ActionConstraint::Eq(action) => action == self.action,
            ActionConstraint::In(actions) => actions.contains(&self.action),
        };
        action
            && match policy.resource_constraint() {
                ResourceConstraint::Any => true,
                ResourceConstraint::Eq(resource) => resource == self.resource,
                ResourceConstraint::In(group) => within(&group),
                ResourceConstraint::Is(kind) => kind == *self.resource.type_name(),
                ResourceConstraint::IsIn(kind, group) => kind == *self.resource.type_name() && within(&group),
            }
    }

    /// All that could concern `principal`, or nothing where it cannot be told.
    fn slice(&self, principal: &Principal) -> Option<Arc<Slice>> {
        let places = principal.scopes.each_ref().map(|scope| self.places.get(scope).copied());
        let mut some = places.iter().flatten();
        match (some.next(), some.next()) {
            (None, _) => Some(Arc::default()),
            (Some(place), None) => self.slices.get(*place).cloned(),
            _ => self.join(places),
        }
    }

    fn join(&self, places: Places) -> Option<Arc<Slice>> {
        if let Some(slice) = self.joined.read().unwrap_or_else(PoisonError::into_inner).get(&places) {
            return Some(Arc::clone(slice));
        }
        let mut all = Slice::default();
        for place in places.into_iter().flatten() {
            all.add(self.slices.get(place)?).ok()?;
        }
        let mut joined = self.joined.write().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(joined.entry(places).or_insert_with(|| Arc::new(all))))
    }

    fn request(&self, principal: &Principal, facts: &Facts) -> Option<Request> {
        let pairs = self.reads.0.iter().map(|name| ((*name).to_owned(), facts.attribute(name)));
        let context = Context::from_pairs(pairs).ok()?;
        Request::new(principal.seat.clone(), self.action.clone(), self.resource.clone(), context, None).ok()
    }
}

impl Slice {
    /// Takes a policy in. `is_met` is whether all who have the slice are meant by the policy.
    fn take_in(&mut self, policy: &Policy, is_met: bool) -> Result<(), BadConstitution> {
        if is_met && !policy.has_non_scope_constraint() {
            self.always.push(Article::of(policy));
            return Ok(());
        }
        self.ask(policy)
    }

    /// Takes a policy in that Cedar is asked about.
    fn ask(&mut self, policy: &Policy) -> Result<(), BadConstitution> {
        let policies = if policy.effect() == Effect::Permit { &mut self.permits } else { &mut self.forbids };
        policies.add(policy.clone()).map_err(|error| fault(&error))
    }

    fn add(&mut self, other: &Self) -> Result<(), BadConstitution> {
        self.always.extend_from_slice(&other.always);
        other.permits.policies().chain(other.forbids.policies()).try_for_each(|policy| self.ask(policy))
    }
}

/// Which principals a policy speaks of, and whether it speaks of all who are in that.
fn scope(policy: &Policy) -> (Scope, bool) {
    let (who, is_met) = match policy.principal_constraint() {
        PrincipalConstraint::Any => (None, true),
        PrincipalConstraint::In(who) => (Some(who), true),
        PrincipalConstraint::Is(_) => (None, false),
        PrincipalConstraint::Eq(who) | PrincipalConstraint::IsIn(_, who) => (Some(who), false),
    };
    (Scope(who), is_met)
}

impl Reads {
    /// Every attribute whose name stands in the policy. One too many does no harm; what is not read is not built.
    fn take_in(&mut self, policy: &Policy) {
        let text = policy.to_cedar().unwrap_or_default();
        // A policy that takes the context whole may read anything in it.
        let whole = text.matches("context").count() != text.matches("context.").count();
        self.0.extend(ATTRIBUTES.into_iter().filter(|name| whole || text.contains(name)));
    }
}

impl Facts {
    fn attribute(&self, name: &str) -> RestrictedExpression {
        let long = |value: u16| RestrictedExpression::new_long(value.into());
        match name {
            "environment" => RestrictedExpression::new_string(self.environment.to_owned()),
            "risk" => long(self.effects.risk.value()),
            "fairness" => long(self.effects.fairness.value()),
            "privacy" => long(self.effects.privacy.value()),
            "novelty" => long(self.effects.novelty.value()),
            "security" => long(self.effects.security.value()),
            "confidentiality" => long(level(self.confidentiality)),
            "untrusted" => RestrictedExpression::new_bool(self.untrusted),
            "tainted" => RestrictedExpression::new_bool(self.tainted),
            "reversible" => RestrictedExpression::new_bool(self.reversible),
            "planned" => RestrictedExpression::new_bool(self.planned),
            _ => RestrictedExpression::new_bool(self.pinned),
        }
    }
}

const fn level(confidentiality: Confidentiality) -> u16 {
    match confidentiality {
        Confidentiality::Public => 0,
        Confidentiality::Internal => 1,
        Confidentiality::Confidential => 2,
    }
}

fn uid(kind: &str, id: &str) -> Result<EntityUid, BadConstitution> {
    let name: EntityTypeName = kind.parse().map_err(|error| fault(&error))?;
    Ok(EntityUid::from_type_name_and_id(name, EntityId::new(id)))
}

fn fault(error: &dyn Display) -> BadConstitution {
    BadConstitution::Tools(error.to_string())
}

fn tool_entity(tool: &Tool) -> Result<Entity, BadConstitution> {
    let registration = tool.registration();
    let attributes = HashMap::from([
        ("consequential".to_owned(), RestrictedExpression::new_bool(registration.flow.consequential)),
        ("clearance".to_owned(), RestrictedExpression::new_long(level(registration.flow.clearance).into())),
    ]);
    let parents = HashSet::from([uid("Capability", registration.capability.name())?]);
    Entity::new(uid("Tool", registration.name.as_str())?, attributes, parents).map_err(|error| fault(&error))
}
