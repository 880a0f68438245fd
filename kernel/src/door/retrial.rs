//! Deciding again what was decided: from the record alone, by the code that decided it.
//!
//! A verdict is a pure function of what stands before it on the record and of the grounds that stand in it. A retrial reads
//! the entries in order, follows each session as the door did, and asks the gate again. What cannot be known, because a log
//! of an earlier version does not have it or because it was erased, is never guessed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use ephor_base::{
    ActionKind, Arguments, Budget, CallId, Capability, Digest, EffectVector, ModelRef, Registration, Seat, Seq,
    SessionId, Span, ToolName, Verdict, Workspace, cbor,
};
use ephor_chain::{Private, Stored};
use ephor_governance::{
    Ask, Constitution, Environment, Finding, Gate, OperatorPolicy, Precedent, Principal, Registry, Ruled, Scope,
    effects::{self, Circumstances, Named, Part},
};
use ephor_record::{
    Appointment, Content, Entry, Fact, Grounds, Opening, Pruning, Reused, Snapshot, Terms, operators::operator_id,
};

use super::{
    SessionSpec,
    appointments::recorded,
    asked::Meant,
    history::{Heard, Position, Reuse},
    inbox::{Event, PREVIEW, changes_a_session},
    precedents::{Called, counts, precedent},
    ruling::Approvers,
    session::Session,
};

/// Decides again what was decided. Feed it every entry of a log, in order, from the first.
#[derive(Default)]
pub struct Retrial {
    documents: HashMap<Digest, Document>,
    law: Law,
    gates: HashMap<Digest, Result<Arc<Gates>, Undecidable>>,
    sessions: HashMap<SessionId, Followed>,
    approvers: Approvers,
    /// The answers that were ever to be used again, and what people said to tickets.
    precedents: BTreeMap<Seq, Reusable>,
    notes: HashMap<Seq, String>,
    other: Option<Other>,
    explained: Option<Seq>,
    /// The sessions that are to be taken up again. Then they alone are followed, and nothing is decided.
    taking_up: Option<BTreeSet<SessionId>>,
}

/// A session as the record has it, and what it goes on under.
pub(crate) struct TakenUp {
    pub(crate) session: Box<Session>,
    /// What its seat may use in all.
    pub(crate) budget: Budget,
}

/// A verdict that was decided again.
#[derive(Clone, PartialEq, Debug)]
pub struct Retried {
    /// Where it stands.
    pub seq: Seq,
    /// The conversation.
    pub session: Option<SessionId>,
    /// The call.
    pub call: Option<CallId>,
    /// What was asked.
    pub action: ActionKind,
    /// The tool, the model, or the end of the turn.
    pub target: String,
    /// As it stands on the record.
    pub recorded: Verdict,
    /// As it comes out again.
    pub again: Result<Again, Undecidable>,
}

impl Retried {
    /// Whether it came out the same, bit for bit.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.again.as_ref().is_ok_and(|again| cbor::to_vec(&again.verdict) == cbor::to_vec(&self.recorded))
    }
}

/// A decision, made again.
#[derive(Clone, PartialEq, Debug)]
pub struct Again {
    /// The verdict.
    pub verdict: Verdict,
    /// Where the critical arguments come from.
    pub findings: Vec<Finding>,
    /// What another constitution says of the same case, if there is one and it fits the tools of then.
    pub other: Option<Result<Verdict, Undecidable>>,
    /// What it rests on, for the one that was to be explained.
    pub inputs: Option<Box<Inputs>>,
}

/// Everything that a decision rests on.
#[derive(Clone, PartialEq, Debug)]
pub struct Inputs {
    /// Where the node ran.
    pub environment: Environment,
    /// What the agent is: its name, its role and namespace, its tools, and the null of the evidence on its conduct.
    pub agent: Appointment,
    /// What the seat could ask for in this place.
    pub rights: Vec<Capability>,
    /// The registration of the tool, if it has one.
    pub tool: Option<Registration>,
    /// The arguments of the tool.
    pub arguments: Option<Arguments>,
    /// The spans of the session.
    pub spans: Vec<Span>,
    /// The grounds on the record.
    pub grounds: Grounds,
    /// What an operator had said.
    pub ruled: Option<Ruled>,
    /// The entry of the ruling it rests on, whether that was a precedent in force, and the person's words.
    pub ruling: Option<Seq>,
    /// See `ruling`.
    pub by_precedent: bool,
    /// See `ruling`.
    pub note: Option<String>,
    /// Whether the session had called the tool before.
    pub familiar: bool,
    /// Whether untrusted content was in the context.
    pub tainted: bool,
    /// What was pinned for the turn, if anything was.
    pub pinned: Option<Scope>,
    /// Whether that says that a tool was asked for: not if a model named it, or it was named after untrusted content had entered.
    pub vouches: bool,
    /// How many calls the evidence on the seat's conduct rests on, and whether it alarms.
    pub evidence: (u64, bool),
    /// What adds to the effect vector, and how much.
    pub effects: Vec<(String, EffectVector)>,
    /// The policies that decided, by name, as canonical Cedar.
    pub articles: Vec<(String, String)>,
}

/// Why something cannot be decided again.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Undecidable {
    /// What was said in its session was erased, or its key is not at hand.
    #[error("it cannot be decided again: what was said in its session was erased")]
    Erased,
    /// Something that it rests on was never recorded: the log of an earlier version, or one that was made up.
    #[error("it cannot be decided again: {0}")]
    NotRecorded(String),
}

/// A document, as far as its parts were read.
#[derive(Default)]
struct Document {
    bytes: Vec<u8>,
    next: u32,
    whole: bool,
}

/// The law in force.
#[derive(Default)]
struct Law {
    policy: Option<(Digest, String, Option<Terms>)>,
    tools: BTreeMap<ToolName, Digest>,
    name: Option<Digest>,
}

/// The gate of a law, and the one under another constitution.
struct Gates {
    gate: Gate,
    other: Option<Result<Gate, Undecidable>>,
}

/// Another constitution to hold the same cases against.
struct Other {
    constitution: Constitution,
    environment: Option<Environment>,
}

/// An answer that is to be used again; nothing if what it speaks of cannot be read.
struct Reusable {
    session: SessionId,
    precedent: Option<Arc<Precedent>>,
    stands: bool,
}

/// A session, as far as it can be followed.
struct Followed {
    state: Result<Box<Session>, Undecidable>,
    budget: Option<Budget>,
    /// The law under which its principal was made.
    law: Option<Digest>,
}

/// A verdict on the record.
struct Case<'a> {
    action: ActionKind,
    target: &'a str,
    attempt: u32,
    ruling: Option<Seq>,
    grounds: &'a Grounds,
}

impl Case<'_> {
    /// The tool call that it speaks of, if it is of one.
    fn meant(&self, session: &Session, gate: &Gate, content: Option<&Content>) -> Result<Option<Meant>, Undecidable> {
        if self.action != ActionKind::Tool {
            return Ok(None);
        }
        let meant = Meant::recorded(session, gate, self.target, self.grounds.chosen, content);
        meant.map(Some).map_err(Undecidable::NotRecorded)
    }

    fn ask<'a>(&self, meant: Option<&'a Meant>, gate: &'a Gate) -> Ask<'a> {
        match (meant, self.action) {
            (Some(meant), _) => meant.what.ask(gate.registry()),
            (None, ActionKind::Model) => Ask::Model,
            (None, _) => Ask::Reply,
        }
    }
}

impl Retrial {
    /// Also says what `constitution` decides in each case, in its own environment or in `environment`.
    #[must_use]
    pub fn against(mut self, constitution: Constitution, environment: Option<Environment>) -> Self {
        self.other = Some(Other { constitution, environment });
        self
    }

    /// Also says what the verdict at `seq` rests on.
    #[must_use]
    pub const fn explaining(mut self, seq: Seq) -> Self {
        self.explained = Some(seq);
        self
    }

    /// Follows these sessions only, and decides nothing.
    pub(crate) fn of(sessions: BTreeSet<SessionId>) -> Self {
        Self { taking_up: Some(sessions), ..Self::default() }
    }

    /// A session as the entries taken in have it.
    ///
    /// # Errors
    /// [`Undecidable`]: it does not follow from them.
    pub(crate) fn take_up(&mut self, id: SessionId) -> Result<TakenUp, Undecidable> {
        let followed = self.sessions.remove(&id);
        let followed = followed.ok_or_else(|| not_recorded("the opening of its session is not on the record"))?;
        let session = followed.state?;
        if let Some(why) = &session.lost {
            return Err(Undecidable::NotRecorded(why.clone()));
        }
        let budget = followed.budget.ok_or_else(|| not_recorded("its budget is not on the record"))?;
        Ok(TakenUp { session, budget })
    }

    /// A session that is followed.
    pub(super) fn followed(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id).and_then(|followed| followed.state.as_deref().ok())
    }

    /// Nothing is known of the session of an entry that cannot be taken in.
    pub(crate) fn cannot_follow(&mut self, entry: &Entry) {
        let followed = entry.subject.session.and_then(|session| self.sessions.get_mut(&session));
        if let Some(followed) = followed {
            followed.state = Err(Undecidable::NotRecorded(format!("entry {} cannot be read", entry.seq)));
        }
    }

    /// The kinds of entries that decisions of any session may rest on, whatever it is they speak of. Of the others, the session's own
    /// are enough.
    pub const OF_ALL: [&str; 13] = [
        "document",
        "enacted",
        "enrolled",
        "dismissed",
        "erase",
        "limit",
        "policy",
        "prune",
        "ranked",
        "revoked",
        "ruling",
        "snapshot",
        "tool",
    ];

    /// No entry of this session follows: nothing of it is kept.
    pub fn forget(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    /// Takes the next entry in. If it is a verdict, it is decided again.
    pub fn take(&mut self, stored: &Stored) -> Option<Retried> {
        let Stored { entry, receipt, content } = stored;
        let Entry { time, subject, fact, .. } = entry;
        let open = match content {
            Private::Open(content) => Some(content),
            Private::None | Private::Sealed => None,
        };
        let event = Event { receipt: *receipt, time: *time, subject, fact, content: open };
        self.reuse(&event);
        match fact {
            Fact::Document { digest, part, of, bytes } => self.read(*digest, *part, *of, bytes),
            Fact::Policy { digest, environment, terms } => {
                self.law = Law { policy: Some((*digest, environment.clone(), terms.clone())), ..Law::default() };
            }
            Fact::Enrolled { key, role, .. } => self.approvers.change(operator_id(key), Some(*role)),
            Fact::Ranked { operator, role, .. } => self.approvers.change(*operator, Some(*role)),
            Fact::Dismissed { operator, .. } => self.approvers.change(*operator, None),
            Fact::Snapshot(snapshot) => self.offices(snapshot),
            // Where a log begins that was pruned, this alone says who was in office; later it is of a time that is over.
            Fact::Prune(Pruning { state, .. }) if self.approvers == Approvers::default() => self.offices(state),
            // The tools stay as they are.
            Fact::Enacted { policy, terms, environment, .. } => {
                self.law.policy = Some((*policy, environment.clone(), Some(terms.clone())));
                self.law.name = None;
            }
            Fact::Tool { name, registration, .. } => {
                self.law.tools.insert(name.clone(), *registration);
                self.law.name = None;
            }
            Fact::Limit { limit, .. } => self.limit(subject.seat.as_ref(), *limit),
            Fact::Revoked { ruling, .. } => self.end_reuse(|seq, _| *seq == *ruling),
            Fact::Erase { session, .. } => self.end_reuse(|_, one| one.session == *session),
            fact if self.passes_over(subject.session, fact) => {}
            Fact::Opened { .. } => self.open(&event, *content == Private::Sealed),
            Fact::Verdict { .. } if self.taking_up.is_none() => return self.retry(&event, *content == Private::Sealed),
            fact if changes_a_session(fact) => self.follow(&event, *content == Private::Sealed),
            _ => {}
        }
        None
    }

    /// What a person said to a ticket, and whether it is to be used again.
    fn reuse(&mut self, event: &Event<'_>) {
        let Fact::Ruling { note, .. } = event.fact else { return };
        let seq = event.receipt.seq;
        self.notes.extend(note.clone().map(|note| (seq, note)));
        if let Some(reused) = Reused::of(seq, event.subject, event.fact) {
            let precedent = Called::recorded(event.content).map(|same| Arc::new(precedent(&reused, &same)));
            self.precedents.insert(seq, Reusable { session: reused.session, precedent, stands: true });
        }
    }

    fn end_reuse(&mut self, is_over: impl Fn(&Seq, &Reusable) -> bool) {
        for (seq, one) in &mut self.precedents {
            one.stands = one.stands && !is_over(seq, one);
        }
    }

    /// What a ruling was as a precedent, for a verdict of this seat at this time.
    fn reused(&self, ruling: Option<Seq>, event: &Event<'_>) -> Result<Reuse, Undecidable> {
        let Some(one) = ruling.and_then(|seq| self.precedents.get(&seq)) else { return Ok(Reuse::None) };
        let precedent = one.precedent.clone().ok_or(Undecidable::Erased)?;
        let seat = event.subject.seat.as_ref().ok_or_else(|| not_recorded("it is of no seat"))?;
        let in_force = one.stands && counts(&precedent, seat, event.time, &self.approvers);
        Ok(Reuse::Precedent(in_force.then_some(precedent)))
    }

    /// Who is in office, as a snapshot has it.
    fn offices(&mut self, snapshot: &Snapshot) {
        for one in snapshot.standing.iter().filter_map(|part| part.operators.as_ref()).flatten() {
            self.approvers.change(operator_id(&one.key), one.role);
        }
    }

    /// Whether nothing of this is wanted.
    fn passes_over(&self, session: Option<SessionId>, fact: &Fact) -> bool {
        let of_law = matches!(fact, Fact::Document { .. } | Fact::Policy { .. } | Fact::Tool { .. });
        let wanted = |of: &BTreeSet<SessionId>| session.is_some_and(|session| of.contains(&session));
        !of_law && self.taking_up.as_ref().is_some_and(|of| !wanted(of))
    }

    /// An operator gave a seat another limit.
    fn limit(&mut self, seat: Option<&Seat>, limit: Budget) {
        let of_seat = |followed: &&mut Followed| followed.state.as_ref().is_ok_and(|one| Some(&one.seat) == seat);
        self.sessions.values_mut().filter(of_seat).for_each(|followed| followed.budget = Some(limit));
    }

    fn read(&mut self, digest: Digest, part: u32, of: u32, bytes: &[u8]) {
        let document = self.documents.entry(digest).or_default();
        if document.whole {
            return;
        }
        if part == 0 {
            *document = Document::default();
        }
        if part == document.next {
            document.bytes.extend_from_slice(bytes);
            document.next = part.saturating_add(1);
            document.whole = document.next == of && Digest::of(&document.bytes) == digest;
        }
    }

    fn open(&mut self, event: &Event<'_>, sealed: bool) {
        let Some(id) = event.subject.session else { return };
        let state = match (sealed, self.sessions.contains_key(&id)) {
            (true, _) => Err(Undecidable::Erased),
            (_, true) => Err(not_recorded("its session was opened twice, or late")),
            _ => self.opened(id, event),
        };
        let budget = match event.content {
            Some(Content::Opening(opening)) => opening.budget,
            _ => None,
        };
        self.sessions.insert(id, Followed { state, budget, law: self.law.name });
    }

    fn opened(&mut self, id: SessionId, event: &Event<'_>) -> Result<Box<Session>, Undecidable> {
        let gates = self.gates()?;
        let (agent, rights) = recorded(event.fact).ok_or_else(|| not_recorded("it opens no session"))?;
        let Some(Content::Opening(Opening { instructions, provider, model, workspace, script, .. })) = event.content
        else {
            return Err(not_recorded("the opening of its session is not on the record"));
        };
        let (Some(seat), Some(operator)) = (&event.subject.seat, event.subject.operator) else {
            return Err(not_recorded("its session was opened in no seat, or for nobody"));
        };
        let workspace = Workspace::new(workspace.into()).ok_or_else(|| not_recorded("its workspace is no path"))?;
        let who = gates.gate.principal(seat.as_str(), &agent.role, &agent.namespace);
        let who = who.map_err(|error| Undecidable::NotRecorded(error.to_string()))?;
        let model = ModelRef {
            provider: provider.clone(),
            name: model.clone(),
            script: script.as_deref().unwrap_or_default().into(),
        };
        let instructions = instructions.clone();
        let spec = SessionSpec { operator, model, workspace, agent, rights, instructions };
        Ok(Box::new(Session::new(id, seat.clone(), spec, who)))
    }

    /// Takes an entry into its session.
    fn follow(&mut self, event: &Event<'_>, sealed: bool) {
        let gates = self.gates();
        let followed = event.subject.session.and_then(|session| self.sessions.get_mut(&session));
        let Some(followed) = followed else { return };
        if sealed {
            followed.state = Err(Undecidable::Erased);
            return;
        }
        match (&mut followed.state, gates) {
            (Ok(session), Ok(gates)) => session.take_in(&gates.gate, event),
            (Err(_), _) => {}
            (Ok(_), Err(why)) => followed.state = Err(why),
        }
    }

    fn retry(&mut self, event: &Event<'_>, sealed: bool) -> Option<Retried> {
        let Fact::Verdict { action, target, attempt, verdict, ruling, grounds, .. } = event.fact else { return None };
        let again = if sealed {
            Err(Undecidable::Erased)
        } else {
            match grounds {
                Some(grounds) => {
                    let case = Case { action: *action, target, attempt: *attempt, ruling: *ruling, grounds };
                    self.decide(event, &case)
                }
                None => Err(not_recorded("what it was decided on is not on the record")),
            }
        };
        if changes_a_session(event.fact) {
            self.follow(event, sealed);
        }
        Some(Retried {
            seq: event.receipt.seq,
            session: event.subject.session,
            call: event.subject.call,
            action: *action,
            target: target.clone(),
            recorded: verdict.clone(),
            again,
        })
    }

    fn decide(&mut self, event: &Event<'_>, case: &Case<'_>) -> Result<Again, Undecidable> {
        let (gates, explained) = (self.gates()?, self.explained == Some(event.receipt.seq));
        let (approvers, reused) = (self.approvers.clone(), self.reused(case.ruling, event)?);
        let note = case.ruling.and_then(|ruling| self.notes.get(&ruling)).cloned();
        let session = self.session(event.subject.session, &gates.gate)?;
        let call = event.subject.call.ok_or_else(|| not_recorded("it is of no call"))?;
        let meant = case.meant(session, &gates.gate, event.content)?;
        // Whether a model's words may be shown is no person's to answer.
        let ruled = if case.target == PREVIEW {
            Ok(Heard::default())
        } else {
            session.ruled(call, case.attempt, case.ruling, (gates.gate.digest(), &approvers), reused)
        };
        let heard = ruled.map_err(Undecidable::NotRecorded)?;
        let tool = meant.as_ref().and_then(Meant::call).map(|(name, _)| name);
        let position = session.position(call, tool, (case.grounds.chosen, case.grounds.within));
        let decided = position.decide(&gates.gate, case.ask(meant.as_ref(), &gates.gate), case.grounds, &heard);
        let inputs = explained.then(|| {
            let findings = &decided.findings;
            let workspace = session.spec.workspace.as_str();
            let told = Told { gate: &gates.gate, workspace, position: &position, meant: meant.as_ref(), findings };
            let spans = session.spans().to_vec();
            let rests_on = (case.ruling, heard.precedent.is_some(), note);
            Box::new(told.inputs(
                spans,
                session.spec.agent.clone(),
                *case.grounds,
                (heard.ruled, rests_on),
                &decided.verdict,
            ))
        });
        let other = gates.other.as_ref().map(|other| {
            let gate = other.as_ref().map_err(Clone::clone)?;
            let position = Position { who: Arc::new(principal(session, gate)?), ..position };
            Ok(position.decide(gate, case.ask(meant.as_ref(), gate), case.grounds, &heard).verdict)
        });
        Ok(Again { verdict: decided.verdict, findings: decided.findings, other, inputs })
    }

    /// The session, under the law in force.
    fn session(&mut self, id: Option<SessionId>, gate: &Gate) -> Result<&Session, Undecidable> {
        let followed = id.and_then(|id| self.sessions.get_mut(&id));
        let followed = followed.ok_or_else(|| not_recorded("the opening of its session is not on the record"))?;
        let Followed { state, law, .. } = followed;
        let session = state.as_mut().map_err(|why| why.clone())?;
        if let Some(why) = &session.lost {
            return Err(Undecidable::NotRecorded(why.clone()));
        }
        if *law != self.law.name {
            session.who = Arc::new(principal(session, gate)?);
            *law = self.law.name;
        }
        Ok(session)
    }

    /// The gate of the law in force.
    fn gates(&mut self) -> Result<Arc<Gates>, Undecidable> {
        let Some((digest, _, _)) = &self.law.policy else { return Err(not_recorded("no policy was in force")) };
        let name = self.law.name.unwrap_or_else(|| {
            let tools: Vec<_> =
                self.law.tools.iter().flat_map(|(name, tool)| [name.as_str().as_bytes(), &tool.0]).collect();
            Digest::of_parts(&[[digest.0.as_slice()].as_slice(), &tools].concat())
        });
        self.law.name = Some(name);
        if let Some(known) = self.gates.get(&name) {
            return known.clone();
        }
        let made = self.make_gates().map(Arc::new);
        // A document that is not there yet may still come.
        if made.is_ok() {
            self.gates.insert(name, made.clone());
        }
        made
    }

    fn make_gates(&self) -> Result<Gates, Undecidable> {
        let (digest, constitution, policy) = self.terms()?;
        let gate = Gate::new(constitution, policy.clone(), self.registry()?).map_err(unfit)?;
        if gate.digest() != digest {
            return Err(not_recorded(
                "the policy was read by another version of Ephor, and means something else to this one",
            ));
        }
        let other = self.other.as_ref().map(|Other { constitution, environment }| {
            let policy = OperatorPolicy { environment: environment.unwrap_or(policy.environment), ..policy.clone() };
            Gate::new(constitution.clone(), policy, self.registry()?).map_err(unfit)
        });
        Ok(Gates { gate, other })
    }

    fn terms(&self) -> Result<(Digest, Constitution, OperatorPolicy), Undecidable> {
        let Some((digest, environment, Some(terms))) = &self.law.policy else {
            return Err(not_recorded("the constitution is not on the record"));
        };
        let text = self.document(&terms.constitution).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| not_recorded("the text of the constitution is not on the record"))?;
        let constitution = Constitution::parse(text).map_err(unfit)?;
        let environment = Environment::ALL.into_iter().find(|known| known.name() == environment);
        let environment = environment.ok_or_else(|| not_recorded("its environment is none that is known"))?;
        let Terms { capabilities, never, models, .. } = terms.clone();
        Ok((*digest, constitution, OperatorPolicy { environment, capabilities, never, models }))
    }

    fn registry(&self) -> Result<Registry, Undecidable> {
        let mut registry = Registry::default();
        for (name, digest) in &self.law.tools {
            let unknown = || Undecidable::NotRecorded(format!("the registration of `{name}` is not on the record"));
            let bytes = self.document(digest).ok_or_else(unknown)?;
            let registration: Registration = cbor::from_slice(bytes).map_err(|_| unknown())?;
            registry.add(registration).map_err(|error| Undecidable::NotRecorded(error.to_string()))?;
        }
        Ok(registry)
    }

    fn document(&self, digest: &Digest) -> Option<&[u8]> {
        self.documents.get(digest).filter(|document| document.whole).map(|document| document.bytes.as_slice())
    }
}

/// What an explanation is made from.
struct Told<'a> {
    gate: &'a Gate,
    workspace: &'a str,
    position: &'a Position,
    meant: Option<&'a Meant>,
    findings: &'a [Finding],
}

impl Told<'_> {
    fn inputs(
        &self,
        spans: Vec<Span>,
        agent: Appointment,
        grounds: Grounds,
        (ruled, (ruling, by_precedent, note)): (Option<Ruled>, (Option<Seq>, bool, Option<String>)),
        verdict: &Verdict,
    ) -> Inputs {
        let Position { rights, familiar, evidence, turn, .. } = self.position;
        let call = self.meant.and_then(Meant::call);
        let said = |name: &String| verdict.reasons.iter().any(|reason| reason.code == *name);
        Inputs {
            environment: self.gate.policy().environment,
            agent,
            rights: rights.intersect(&self.gate.policy().rights()).iter().collect(),
            tool: call.and_then(|(name, _)| self.gate.registry().find(name)).cloned(),
            arguments: call.map(|(_, arguments)| arguments.clone()),
            spans,
            grounds,
            ruled,
            ruling,
            by_precedent,
            note,
            familiar: *familiar,
            tainted: self.position.tainted,
            pinned: turn.scope().cloned(),
            vouches: turn.vouches(),
            evidence: (evidence.calls(), evidence.alarms()),
            effects: self.effects(),
            articles: self.gate.constitution().articles().filter(|(name, _)| said(name)).collect(),
        }
    }

    fn effects(&self) -> Vec<(String, EffectVector)> {
        let mut found = Vec::new();
        let Some((name, arguments)) = self.meant.and_then(Meant::call) else { return found };
        let Some(tool) = self.gate.registry().tool(name) else { return found };
        let now = Circumstances {
            familiar: self.position.familiar,
            tainted: self.position.tainted,
            untrusted: self.findings.iter().any(|finding| !finding.trusted),
        };
        let named = Named {
            workspace: self.workspace,
            written: arguments,
            reached: self.meant.and_then(Meant::reached).unwrap_or(arguments),
        };
        effects::parts(tool, named, self.gate.constitution().sensitive(), now, |part, adds| {
            let part = match part {
                Part::Registration => "the registration".to_owned(),
                Part::Path(argument, rule) => format!("`{argument}` touches `{}`: {}", rule.pattern, rule.why),
                Part::Rule(rule) => format!("a rule on `{}`", rule.argument),
                Part::Novelty => "novelty".to_owned(),
                Part::Untrusted => "an argument that is not trusted".to_owned(),
            };
            found.push((part, adds));
        });
        found
    }
}

fn principal(session: &Session, gate: &Gate) -> Result<Principal, Undecidable> {
    let Appointment { role, namespace, .. } = &session.spec.agent;
    gate.principal(session.seat.as_str(), role, namespace).map_err(unfit)
}

fn not_recorded(why: &str) -> Undecidable {
    Undecidable::NotRecorded(why.to_owned())
}

fn unfit(error: ephor_governance::BadConstitution) -> Undecidable {
    Undecidable::NotRecorded(error.to_string())
}
