//! How a session follows from the record: what was recorded of it, taken in one after another.
//!
//! The door and a retrial run the same code, so that they cannot come to differ.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ephor_base::{
    ActionKind, CallId, Confidentiality, Decision, Digest, EndReason, Envelope, Integrity, MessageId, Outcome, Product,
    Repeat, Reply, Seq, SessionId, SpanId, TicketId, ToolName, TurnReport, Usage, Verdict,
};
use ephor_governance::{
    Ask, Carried, Case, Decided, Evidence, Gate, Precedent, Principal, Rights, Ruled, Scope, SpanTable, ToolAsk,
    TurnState,
    gate::call_digest,
    origin::{self, Harms},
    plan::Call,
};
use ephor_record::{Appointment, Chosen, Content, Fact, Grounds, Pin, RulingOn};

use super::{
    MESSAGE,
    asked::{Meant, with_notice},
    inbox::Event,
    planning::{PlanOf, Planning, scope_of},
    ruling::Approvers,
    session::{Answered, Deferred, Moment, Parked, Request, Session, Standing, Told},
    turn::Turn,
};
use crate::judgments::{Said, Suspended};

/// How a ruling says that a question is asked anew, because the law or the tool is another one by now.
pub(crate) const LAPSED: &str = "lapsed";

/// What a guest has been shown so far, joined: how far it is trusted, and who may see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) integrity: Integrity,
    pub(crate) confidentiality: Confidentiality,
}

impl Read {
    fn join(&mut self, integrity: Integrity, confidentiality: Confidentiality) {
        self.integrity = self.integrity.min(integrity);
        self.confidentiality = self.confidentiality.max(confidentiality);
    }
}

/// A call that was permitted and has no outcome yet.
pub(crate) struct Begun {
    kind: ActionKind,
    context: Confidentiality,
    chosen: Option<Chosen>,
    within: Option<CallId>,
    tool: Option<(ToolName, Carried)>,
    /// What its guest may ask of the door.
    rights: Rights,
    /// What its guest has read, and so may have put into what it asks; of a model call, what the model was shown.
    read: Read,
    /// Whether what chose it was shown anything untrusted.
    tainted: bool,
    /// What a planner was shown, if a plan was the question.
    plans: Option<Vec<SpanId>>,
}

/// Everything of a session that a decision depends on.
pub(crate) struct Position {
    pub(crate) rights: Rights,
    pub(crate) familiar: bool,
    pub(crate) evidence: Evidence,
    pub(crate) who: Arc<Principal>,
    pub(crate) spans: Arc<SpanTable>,
    pub(crate) turn: TurnState,
    /// Whether what chose it was shown anything untrusted.
    pub(crate) tainted: bool,
    /// The bytes that were kept of what the session replaced.
    pub(crate) kept: u64,
    pub(crate) plan: PlanOf,
    /// The call, which a rerun is too.
    pub(crate) call: CallId,
    /// After how many events this is so.
    pub(crate) at: u64,
}

impl Position {
    /// Asks the gate.
    pub(crate) fn decide(&self, gate: &Gate, ask: Ask<'_>, grounds: &Grounds, heard: &Heard) -> Decided {
        if grounds.over {
            return Decided::plain(gate.gone());
        }
        gate.decide(&Case {
            ask,
            who: &self.who,
            rights: &self.rights,
            spans: &self.spans,
            turn: &self.turn,
            call: self.call,
            tainted: self.tainted,
            kept: self.kept,
            plan: self.plan.planned(),
            familiar: self.familiar,
            context: grounds.context,
            budget: grounds.spent.map_or(Ok(()), Err),
            evidence: self.evidence,
            suspended: grounds.suspended,
            ruled: heard.ruled,
            approvers: heard.approvers,
            precedent: heard.precedent.as_deref(),
        })
    }
}

impl Session {
    /// How it stands for `call` of `tool`, chosen by a model, made within another call, or by itself.
    pub(crate) fn position(
        &self,
        call: CallId,
        tool: Option<&ToolName>,
        (chosen, within): (Option<Chosen>, Option<CallId>),
    ) -> Position {
        let guest = |call| self.calls.get(&call).map(|begun| begun.rights.clone()).unwrap_or_default();
        // What it is entitled to by its tools alone does not keep an operator from putting back what these did.
        let every_tool = self.is_errand().then(|| Rights::of(self.spec.rights.iter()));
        let rights = every_tool.as_ref().unwrap_or(&self.spec.rights);
        Position {
            rights: within.map_or_else(|| rights.clone(), |call| rights.intersect(&guest(call))),
            familiar: tool.is_some_and(|tool| self.familiar.contains(tool)),
            // What an operator has done is no conduct of the seat, and its conduct does not keep them from it.
            evidence: if self.is_errand() { Evidence::under(self.spec.agent.p0) } else { self.evidence },
            who: self.who.clone(),
            spans: self.table.clone(),
            turn: self.conduct.clone(),
            tainted: self.is_tainted(chosen, within),
            kept: self.kept,
            plan: self.plan(),
            call,
            at: self.taken_in,
        }
    }

    /// How far what led to the calls of a guest is trusted: what chose its own call, and what it has read since.
    pub(crate) fn read_within(&self, call: CallId) -> Integrity {
        let trusted = |begun: &&Begun| !begun.tainted;
        self.calls.get(&call).filter(trusted).map_or(Integrity::Untrusted, |begun| begun.read.integrity)
    }

    /// What the guest of a call has read.
    pub(crate) fn read_by(&self, call: CallId) -> Confidentiality {
        self.calls.get(&call).map_or(Confidentiality::Confidential, |begun| begun.read.confidentiality)
    }

    /// What an operator has said to a call that was deferred, if the verdict in question comes after that.
    pub(crate) fn ruled(
        &self,
        call: CallId,
        attempt: u32,
        ruling: Option<Seq>,
        (law, approvers): (Digest, &Approvers),
        reused: Reuse,
    ) -> Result<Heard, String> {
        let Some(seq) = ruling else {
            let ruled = self.deferred.contains_key(&(call, attempt)).then_some(Ruled::Refuse);
            return Ok(Heard { ruled, ..Heard::default() });
        };
        // An answer to this very call is that, whatever else it is for.
        let own = |(_, _, ticket): &(Ruled, Option<Digest>, TicketId)| {
            self.parked(call, attempt).is_some_and(|parked| parked.ticket == *ticket)
        };
        match reused {
            Reuse::Precedent(precedent) if !self.rulings.get(&seq).is_some_and(own) => {
                return Ok(Heard { precedent, ..Heard::default() });
            }
            Reuse::Precedent(_) | Reuse::None => {}
        }
        if let Some((ruled, policy, ticket)) = self.rulings.get(&seq) {
            let Tally { permits, is_refused } = self.tally(*ticket, law, approvers);
            let ruled = if is_refused { Ruled::Refuse } else { in_force(*ruled, *policy, law) };
            return Ok(Heard { ruled: Some(ruled), approvers: permits, precedent: None });
        }
        let heard = |standing: &Standing| Heard {
            ruled: Some(in_force(Ruled::Permit, standing.policy, law)),
            approvers: standing.by.is_some_and(|by| approvers.count(by)).into(),
            precedent: None,
        };
        let standing = self.standing.iter().find(|standing| standing.ruling == seq);
        standing.map(heard).ok_or_else(|| format!("the ruling {seq} it rests on is not one of its session"))
    }

    /// Counts the answers to a ticket: each person once, those in office alone, and what was said under this law alone. A refusal
    /// stands, from whichever person.
    pub(crate) fn tally(&self, ticket: TicketId, law: Digest, approvers: &Approvers) -> Tally {
        let answers = self.answers_to.get(&ticket).map(Vec::as_slice).unwrap_or_default();
        let counts = |answered: &&Answered| answered.permits && answered.policy.is_none_or(|policy| policy == law);
        let people: BTreeSet<_> = answers.iter().filter(counts).filter_map(|answered| answered.by).collect();
        let permits = people.into_iter().filter(|by| approvers.count(*by)).count();
        let is_refused = answers.iter().any(|answered| !answered.permits);
        Tally { permits: u32::try_from(permits).unwrap_or(u32::MAX), is_refused }
    }

    /// What came of a ticket, if anything has: it is open as long as people in office have to permit it, and none has refused.
    pub(crate) fn settled(&self, parked: &Parked, law: Digest, approvers: &Approvers) -> Option<Ruled> {
        let (ruled, _) = parked.last?;
        let Tally { permits, is_refused } = self.tally(parked.ticket, law, approvers);
        match ruled {
            Ruled::Permit if is_refused => Some(Ruled::Refuse),
            Ruled::Permit => (permits >= parked.quorum).then_some(Ruled::Permit),
            other => Some(other),
        }
    }

    /// Takes in what was recorded next.
    pub(crate) fn take_in(&mut self, gate: &Gate, event: &Event<'_>) {
        self.taken_in = self.taken_in.saturating_add(1);
        let taken = match event.fact {
            Fact::Message { id, spans, from, scope, .. } => {
                // Only the operator pins anything.
                let scope = scope.as_ref().filter(|_| from.is_none());
                let looks = matches!(event.content, Some(Content::Pinned(pinned)) if pinned.looks);
                let scope = scope.map(|tools| pinned(tools, event.content));
                self.asked(Request { message: *id, scope, looks, spans: spans.clone() });
                self.said(gate, (*id, *from), spans, event)
            }
            Fact::Verdict { action, target, attempt, verdict, grounds, .. } => match (grounds, event.subject.call) {
                (Some(grounds), Some(call)) => {
                    let case = Weighed { action: *action, target, call, attempt: *attempt, verdict, grounds };
                    self.weighed(gate, &case, event)
                }
                _ => Err("the grounds of a verdict are not on the record".to_owned()),
            },
            Fact::Outcome { .. } => self.came_out(gate, event),
            Fact::Ruling { .. } => {
                self.was_ruled(event);
                Ok(())
            }
            Fact::Lifted { since, .. } => {
                self.lifted(*since);
                Ok(())
            }
            Fact::Appointed(agent) => self.appointed(gate, agent),
            Fact::Ticket { .. } => self.parks(event),
            Fact::TurnEnd { message, end, report } => {
                self.turn_ended(*message, *end, *report);
                Ok(())
            }
            Fact::Dead { message, .. } => {
                self.waiting.retain(|waiting| waiting.id != *message);
                self.died(*message);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(why) = taken {
            self.lost.get_or_insert_with(|| format!("{why} (entry {})", event.receipt.seq));
        }
    }

    /// The configuration says something else of its agent.
    fn appointed(&mut self, gate: &Gate, agent: &Appointment) -> Result<(), String> {
        let who = gate.principal(self.seat.as_str(), &agent.role, &agent.namespace);
        self.who = Arc::new(who.map_err(|error| error.to_string())?);
        self.appoint(agent);
        Ok(())
    }

    /// A message waits for its turn. What it needs is pinned when that begins, before anything else of it enters.
    fn asked(&mut self, request: Request) {
        self.requests.push_back(request);
        if self.requests.len() == 1 {
            self.pin();
        }
    }

    /// A message was answered; the turn of the next one begins.
    fn answered_to(&mut self, message: MessageId) {
        self.requests.retain(|request| request.message != message);
        self.pin();
    }

    /// A message will not be answered: what it pinned is not pinned when those before it are answered.
    fn died(&mut self, message: MessageId) {
        let was_first = self.requests.front().is_some_and(|request| request.message == message);
        self.requests.retain(|request| request.message != message);
        if self.turn.as_ref().is_some_and(|turn| turn.message == message) {
            self.turn = None;
            self.parked.clear();
        }
        if was_first {
            // Its own turn is over, or never comes: nothing of it is left for the next.
            self.conduct.begin();
            self.begin_sources();
            self.planning = Planning::Unasked;
            self.pin();
        }
    }

    fn pin(&mut self) {
        let Some(Request { scope, looks, .. }) = self.requests.front() else { return };
        if *looks {
            self.conduct.look();
        }
        if let Some(scope) = scope {
            self.conduct.pin(scope.clone());
        }
        self.plan_as_given();
    }

    /// The plan that an operator gave with the message that is answered next is in force from here on.
    fn plan_as_given(&mut self) {
        let Some(Request { spans, .. }) = self.requests.front() else { return };
        match self.given(spans) {
            Planning::Unasked => {}
            given => self.planning = given,
        }
    }

    fn said(
        &mut self,
        gate: &Gate,
        (id, from): (MessageId, Option<SessionId>),
        spans: &[SpanId],
        event: &Event<'_>,
    ) -> Result<(), String> {
        let parts = event.content.and_then(Content::parts).ok_or("a message is not on the record")?;
        self.used = self.used.plus(&MESSAGE).map_err(|error| error.to_string())?;
        let entered = self.enter_parts(gate, from, parts);
        if entered != spans {
            return Err("the spans of a message are not the next of its session".into());
        }
        let operator = event.subject.operator.unwrap_or(self.spec.operator);
        let (session, accepted, seq) = (self.id, event.time, event.receipt.seq);
        self.waiting.push(Envelope { id, session, operator, accepted, seq, spans: entered });
        if self.requests.len() == 1 {
            self.plan_as_given();
        }
        Ok(())
    }

    /// A call that was deferred waits on a ticket.
    fn parks(&mut self, event: &Event<'_>) -> Result<(), String> {
        let Fact::Ticket { id, arguments, policy, expires, registration, quorum, .. } = event.fact else {
            return Ok(());
        };
        let of_call = |((call, _), _): &(&(CallId, u32), &Deferred)| Some(*call) == event.subject.call;
        let ((call, attempt), deferred) =
            self.deferred.iter().rev().find(of_call).ok_or("a ticket is of a call that was not deferred")?;
        let parked = Parked {
            ticket: *id,
            call: *call,
            attempt: *attempt,
            chosen: deferred.chosen,
            files: deferred.files.clone(),
            arguments: *arguments,
            policy: *policy,
            registration: *registration,
            expires: *expires,
            verdict: deferred.verdict.clone(),
            quorum: quorum.unwrap_or(1),
            last: None,
        };
        self.parked.insert(*id, parked);
        Ok(())
    }

    fn turn_ended(&mut self, message: MessageId, end: EndReason, report: TurnReport) {
        self.conduct.begin();
        self.begin_sources();
        self.planning = Planning::Unasked;
        self.answered_to(message);
        self.waiting.retain(|waiting| waiting.id != message);
        if self.turn.as_ref().is_some_and(|turn| turn.message == message) {
            self.turn = None;
        }
        // No call waits on them any more.
        self.parked.clear();
        self.moments.push(Moment::TurnEnded(end));
        let (text, receipts) =
            self.saying.take().unwrap_or_else(|| (with_notice(self, String::new(), end), Vec::new()));
        self.last = Some(Reply { session: self.id, text, end, receipts, report });
    }

    /// The first that is recorded of a turn is the question to the model: it shows which message is answered.
    fn begins(&mut self, event: &Event<'_>) {
        let Some(Content::Prompt(shown) | Content::Request(shown)) = event.content else { return };
        if self.turn.is_some() {
            return;
        }
        let is_shown = |waiting: &&Envelope| waiting.spans.iter().any(|span| shown.contains(span));
        if let Some(envelope) = self.waiting.iter().find(is_shown).cloned() {
            self.begin_turn(&envelope, Duration::ZERO);
        }
    }

    fn was_ruled(&mut self, event: &Event<'_>) {
        let Fact::Ruling { on, decision, how, policy, note, .. } = event.fact else { return };
        let (decision, how, policy) = (*decision, how.as_str(), *policy);
        let (by, ruling) = (event.subject.operator, event.receipt.seq);
        match on {
            RulingOn::Tools(tools) => self.standing.push(Standing { tools: tools.clone(), ruling, policy, by }),
            RulingOn::Ticket(ticket) => {
                if how == "answered" {
                    let answered = Answered { by, permits: decision == Decision::Permit, note: note.clone(), policy };
                    self.answers_to.entry(*ticket).or_default().push(answered);
                }
                let ruled = match (how, decision) {
                    ("answered", Decision::Permit) => Ruled::Permit,
                    ("answered", _) => Ruled::Refuse,
                    ("nobody-to-ask", _) => Ruled::NobodyToAsk,
                    ("withdrawn", _) => Ruled::Withdrawn,
                    _ => Ruled::Expired,
                };
                self.rulings.insert(ruling, (ruled, policy, *ticket));
                if how == LAPSED {
                    self.parked.remove(ticket);
                } else if let Some(parked) = self.parked.get_mut(ticket) {
                    parked.last = Some((ruled, ruling));
                }
            }
        }
    }

    fn weighed(&mut self, gate: &Gate, case: &Weighed<'_>, event: &Event<'_>) -> Result<(), String> {
        let attempt = (case.call, case.attempt);
        self.deferred.remove(&attempt);
        self.begins(event);
        if let Some(turn) = &mut self.turn {
            turn.was_decided(case.action);
        }
        if case.verdict.decision == Decision::Defer {
            let files = match event.content {
                Some(Content::Call { files, .. }) => files.clone(),
                _ => Vec::new(),
            };
            let deferred = Deferred { chosen: case.grounds.chosen, files, verdict: case.verdict.clone() };
            self.deferred.insert(attempt, deferred);
            if let Some(chosen) = case.grounds.chosen {
                self.attempted(chosen, case.call, case.attempt);
            }
            if case.action == ActionKind::Tool {
                let meant = Meant::recorded(self, gate, case.target, case.grounds.chosen, event.content)?;
                self.acts(gate, case, &meant, false);
            }
            return Ok(());
        }
        self.parked.retain(|_, parked| (parked.call, parked.attempt) != attempt);
        if case.verdict.decision == Decision::Permit {
            return self.begin(gate, case, event.content);
        }
        self.refused(gate, case, event);
        Ok(())
    }

    /// A call was permitted.
    fn begin(&mut self, gate: &Gate, case: &Weighed<'_>, content: Option<&Content>) -> Result<(), String> {
        let Grounds { context, chosen, within, .. } = *case.grounds;
        let (mut tool, mut rights, mut integrity) = (None, Rights::default(), Integrity::Trusted);
        if case.action == ActionKind::Tool {
            let meant = Meant::recorded(self, gate, case.target, chosen, content)?;
            let (name, arguments) = meant.call().ok_or("a call was permitted that makes no sense")?;
            let known = gate.registry().tool(name).ok_or("a tool was permitted that is not registered")?;
            rights = Rights::of(known.registration().nested.iter().copied());
            if let Some(within) = within {
                // Two calls deep a guest may do no more than the one around it.
                let outer = self.calls.get(&within).map(|begun| begun.rights.clone()).unwrap_or_default();
                rights = rights.intersect(&outer);
            }
            // What it answers it has read, and by that it chooses its nested calls.
            integrity = known.registration().integrity;
            let carried = self.table.carried(known, arguments);
            self.acts(gate, case, &meant, true);
            tool = Some((name.clone(), carried));
        }
        if let Some(chosen) = chosen {
            self.attempted(chosen, case.call, case.attempt);
        }
        self.report(|report| match case.action {
            ActionKind::Model => report.requests = report.requests.saturating_add(1),
            ActionKind::Tool => report.tool_calls = report.tool_calls.saturating_add(1),
            ActionKind::Reply => {}
        });
        if let (ActionKind::Reply, Some(Content::Text(text))) = (case.action, content) {
            let receipts = self.turn.as_ref().map(|turn| turn.receipts.clone()).unwrap_or_default();
            self.saying = Some((text.clone(), receipts));
        }
        let (integrity, plans) = match (case.action, content) {
            (ActionKind::Model, Some(Content::Request(spans))) => (Integrity::Trusted, Some(spans.clone())),
            (ActionKind::Model, Some(Content::Prompt(spans))) => (self.integrity_of(spans), None),
            (ActionKind::Model, _) => (Integrity::Untrusted, None),
            _ => (integrity, None),
        };
        let tainted = self.is_tainted(chosen, within);
        let read = Read { integrity, confidentiality: context };
        let begun = Begun { kind: case.action, context, chosen, within, tool, rights, read, tainted, plans };
        self.calls.insert(case.call, begun);
        Ok(())
    }

    /// A call that acts was permitted, or waits for a person: it takes its step of the plan.
    fn acts(&mut self, gate: &Gate, case: &Weighed<'_>, meant: &Meant, permitted: bool) {
        let Some((name, arguments)) = meant.call() else { return };
        let Some(tool) = gate.registry().tool(name).filter(|tool| tool.acts()) else { return };
        let tainted = self.is_tainted(case.grounds.chosen, case.grounds.within);
        let plan = self.plan();
        let ask = meant.what.ask(gate.registry());
        let harms = Harms { tainted, reversible: ask.is_reversible(self.kept) };
        let origins =
            origin::of((case.call, tool, arguments), harms, plan.planned(), self.conduct.spent(), &self.table);
        let digest = call_digest(name, arguments);
        if permitted {
            // What a person permitted for want of a plan is done of the one made later.
            let unplanned = matches!(plan, PlanOf::Missing).then(|| Call { id: case.call, tool, arguments }.taken());
            self.conduct.permitted(case.call, digest, origins.step.or(unplanned));
            if let (true, Ask::Tool(ToolAsk::Known { keeps: Some(bytes), .. })) = (harms.reversible, ask) {
                // The most that are kept has been held against it.
                self.kept += bytes;
            }
        } else {
            self.conduct.waits(case.call, digest, origins.step);
        }
    }

    /// A call was refused, and the model is told.
    fn refused(&mut self, gate: &Gate, case: &Weighed<'_>, event: &Event<'_>) {
        self.receipt(event.receipt);
        let is_planning = matches!(event.content, Some(Content::Request(_)));
        if let (Some(turn), Some(spent), false) = (&mut self.turn, case.grounds.spent, is_planning) {
            turn.spent = Some(spent);
        }
        if case.action == ActionKind::Tool {
            self.behaved(true, event.receipt.seq);
            self.conduct.refused(case.call);
        }
        if is_planning && matches!(self.planning, Planning::Unasked) {
            self.planning = Planning::Failed;
        }
        let Some(chosen) = case.grounds.chosen else { return };
        self.attempted(chosen, case.call, case.attempt);
        // A tool use that its session does not have was never resolved, so it has no verdict either.
        let recorded = Meant::recorded(self, gate, case.target, Some(chosen), event.content);
        let used = || Meant::of_use(self, gate, chosen).map(|(meant, _)| meant);
        let Some(meant) = recorded.ok().or_else(|| used().ok()) else { return };
        let (fault, known) = (meant.fault(), meant.is_known());
        let text = format!("Refused: {}.", fault.clone().unwrap_or_else(|| case.verdict.why()));
        let told = match fault {
            Some(_) => Told::quoting(text, known, case.grounds.context),
            None => Told::by_the_door(text, known),
        };
        self.tool_ended(chosen.of, chosen.index, told);
    }

    /// A call is over.
    fn came_out(&mut self, gate: &Gate, event: &Event<'_>) -> Result<(), String> {
        if let Fact::Outcome { used, .. } = event.fact {
            self.used = self.used.plus(used).map_err(|error| error.to_string())?;
        }
        let outcome = match event.content {
            Some(Content::Outcome(outcome)) => outcome.clone(),
            // What the next boot says of a call that was cut off.
            None => Outcome::Indeterminate,
            Some(_) => return Err("an outcome is not on the record".to_owned()),
        };
        let call = event.subject.call.ok_or("an outcome is of no call")?;
        let begun = self.calls.remove(&call).ok_or("an outcome is of a call that was not begun")?;
        self.receipt(event.receipt);
        match (begun.kind, &begun.tool) {
            (ActionKind::Model, _) => {
                if let Outcome::Done(Product::Model(answer)) = &outcome {
                    self.answered_with(answer.usage)?;
                }
                match &begun.plans {
                    Some(shown) => self.planned(gate, shown, begun.context, &outcome),
                    None => self.model_ended(call, (begun.read.integrity, begun.context), &outcome),
                }
            }
            (ActionKind::Tool, Some((name, carried))) => {
                self.count(name, &outcome, event.receipt.seq);
                self.join(gate, &begun, name);
                let told = told(gate, name, carried, &outcome, begun.read);
                if let (Some(Chosen { of, index }), Some(told)) = (begun.chosen, told) {
                    self.tool_ended(of, index, told);
                }
            }
            (ActionKind::Tool, None) | (ActionKind::Reply, _) => {}
        }
        Ok(())
    }

    /// Counts the tokens of an answer.
    fn answered_with(&mut self, usage: Usage) -> Result<(), String> {
        let Some(Turn { report, .. }) = &mut self.turn else { return Ok(()) };
        let input = report.input_tokens.checked_add(usage.input);
        let output = report.output_tokens.checked_add(usage.output);
        let (input, output) = input.zip(output).ok_or("an answer took more tokens than can be counted")?;
        (report.input_tokens, report.output_tokens) = (input, output);
        Ok(())
    }

    /// What a tool call that was permitted says of conduct: that it was. Files that are not there are no misconduct.
    fn count(&mut self, name: &ToolName, outcome: &Outcome, at: Seq) {
        // One that was cancelled says nothing of conduct, or calls made to be cancelled would improve it. One that was cut
        // off with its node is not the seat's fault.
        if !matches!(outcome, Outcome::Cancelled | Outcome::Indeterminate) {
            self.behaved(false, at);
        }
        self.familiar.insert(name.clone());
    }

    /// One more call counts for the conduct of the seat, with the entry `at`.
    fn behaved(&mut self, bad: bool, at: Seq) {
        if self.is_errand() {
            return;
        }
        let was_alarmed = self.evidence.alarms();
        self.evidence = self.evidence.after(bad);
        self.bad_calls = self.bad_calls.saturating_add(bad.into());
        if self.evidence.alarms() && !was_alarmed {
            self.alarmed = Some(at);
        }
    }

    /// An approver lets the seat act again which its conduct suspended with the entry `since`. The evidence begins anew.
    fn lifted(&mut self, since: Seq) {
        if self.alarmed == Some(since) {
            (self.evidence, self.bad_calls, self.alarmed) = (Evidence::under(self.spec.agent.p0), 0, None);
        }
    }

    /// Whether its conduct has suspended the seat.
    pub(crate) fn suspended(&self) -> Option<Suspended> {
        let (session, seat, calls, bad) = (self.id, self.seat.clone(), self.evidence.calls(), self.bad_calls);
        self.alarmed.map(|since| Suspended { session, seat, since, calls, bad })
    }

    /// What people have answered to a ticket.
    pub(crate) fn answers(&self, ticket: TicketId) -> Vec<Said> {
        let said = |one: &Answered| Some(Said { operator: one.by?, permits: one.permits, note: one.note.clone() });
        self.answers_to.get(&ticket).into_iter().flatten().filter_map(said).collect()
    }

    /// What a nested call gave, the guest around it has read, and with it what the inner one had.
    fn join(&mut self, gate: &Gate, begun: &Begun, name: &ToolName) {
        let outer = begun.within.and_then(|within| self.calls.get_mut(&within));
        if let (Some(outer), Some(tool)) = (outer, gate.registry().find(name)) {
            outer.read.join(tool.integrity, tool.confidentiality);
            outer.read.join(begun.read.integrity, begun.read.confidentiality);
        }
    }
}

/// What is pinned by these names, and by the targets that stand beside a message.
fn pinned(tools: &[ToolName], content: Option<&Content>) -> Scope {
    let pins = match content {
        Some(Content::Pinned(pinned)) => pinned.pins.as_slice(),
        _ => &[],
    };
    scope_of(tools.iter().cloned().map(Pin::from).chain(pins.iter().cloned()))
}

/// What is known of a ruling as a precedent.
pub(crate) enum Reuse {
    /// It is none.
    None,
    /// It is one; nothing if it does not count now.
    Precedent(Option<Arc<Precedent>>),
}

/// What people have said to a deferred call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) ruled: Option<Ruled>,
    /// How many different people in office are behind a permission.
    pub(crate) approvers: u32,
    /// What a person in office has ruled before, for this seat and this time.
    pub(crate) precedent: Option<Arc<Precedent>>,
}

/// The answers to a ticket, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally {
    /// How many different people in office permit it.
    pub(crate) permits: u32,
    /// Whether anybody refuses it.
    pub(crate) is_refused: bool,
}

/// What a ruling comes to under the law in force. One that permits counts only under the law it was given under; a log of an earlier
/// version does not say which that was, and its law changed at no other time than a boot.
pub(crate) fn in_force(ruled: Ruled, policy: Option<Digest>, law: Digest) -> Ruled {
    let over = policy.is_some_and(|policy| policy != law);
    if ruled == Ruled::Permit && over { Ruled::Withdrawn } else { ruled }
}

/// A verdict on the record.
struct Weighed<'a> {
    action: ActionKind,
    target: &'a str,
    call: CallId,
    attempt: u32,
    verdict: &'a Verdict,
    grounds: &'a Grounds,
}

/// What is said of a call that may or may not have taken effect.
const UNKNOWN: &str = "It was not made again. Find out what was done before you go on.";

/// What the model is told of a tool call that ended; nothing of one called again, as only one that does no harm twice is.
fn told(gate: &Gate, name: &ToolName, carried: &Carried, outcome: &Outcome, read: Read) -> Option<Told> {
    let registration = gate.registry().find(name)?;
    match outcome {
        Outcome::Done(Product::Tool(answer)) => {
            Some(Told::by_the_tool(answer.text.clone(), registration, read, carried.clone(), !answer.failed))
        }
        Outcome::Failed(failure) => {
            let level = registration.confidentiality.max(read.confidentiality);
            Some(Told::quoting(format!("The tool failed: {}.", failure.message()), true, level))
        }
        Outcome::Cancelled if registration.flow.repeat == Repeat::Unsafe => Some(Told::by_the_door(
            format!("It was cut off, and nobody knows whether it was done, or how far. {UNKNOWN}"),
            true,
        )),
        Outcome::Indeterminate if registration.flow.repeat == Repeat::Unsafe => {
            let why = "The node ended while it ran, and nobody knows whether it was done, or how far.";
            Some(Told::by_the_door(format!("{why} {UNKNOWN}"), true))
        }
        Outcome::Done(_) | Outcome::Cancelled | Outcome::Indeterminate => None,
    }
}
