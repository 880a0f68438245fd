//! What an operator says to a deferred action.
//!
//! The ticket is on the record before anybody is asked, and outlives the process that waits on it, and its node. A ticket is
//! withdrawn when its turn is cancelled or ends; an incarnation that ends only leaves it to the next one.

use std::time::Duration;

use ephor_base::{Decision, Seq, TicketId, ToolName, Verdict};
use ephor_chain::{
    record::{Content, Fact},
    standing::Standing,
};
use ephor_governance::{Precedent, Ruled};

use super::Serving;
use crate::{
    door::{
        Answer, Refusal,
        asked::{Asked, ToolCall, What},
        history::Reuse,
        precedents::{Known, counts},
        ruling::Approvers,
        session::{self, Session, Turn},
    },
    seen::{Question, Seen},
};

/// How long a wait is at most before the clocks are read again: one that was set forward is noticed after this.
const LOOK: Duration = Duration::from_secs(1);

/// How a wait for an answer ends.
enum End {
    /// It was given; nothing, if its session is gone.
    Said(Option<Answer>),
    /// Nobody gave one in time.
    Unanswered(Ruled),
    /// Whoever waits is stopped.
    Stopped,
}

impl Serving {
    /// The answer that an attempt waits for which was begun before: by an incarnation that is over, or by a node. Nothing,
    /// if it waits for none.
    pub(super) async fn parked(&self, asked: &Asked) -> Result<Option<Answer>, Refusal> {
        let parked = |session: &mut Session| session.parked(asked.call, asked.attempt).cloned();
        let Some(parked) = self.door.with_session(self.caller.session, parked).flatten() else { return Ok(None) };
        self.answer_to(asked, parked.ticket).await.map(Some)
    }

    /// What an operator says to a deferred action: by a ruling that stands for this session, by a precedent unless `reuses` is
    /// false, or now, or not at all.
    pub(super) async fn ask(&self, asked: &Asked, verdict: &Verdict, reuses: bool) -> Result<Answer, Refusal> {
        let (What::Tool(tool), None) = (&asked.what, &self.within) else {
            return Ok(Answer { ruled: Ruled::Refuse, ruling: None });
        };
        let name = tool.task.name.clone();
        // One person's word for many calls is never that of several for one.
        let needed = self.door.gate().quorum(&verdict.reasons);
        let approvers = self.door.approvers();
        let covers = |standing: &&session::Standing| {
            needed == 1 && standing.covers(&name, verdict.policy) && standing.by.is_some_and(|by| approvers.count(by))
        };
        let standing = self.door.with_session(self.caller.session, |session| {
            session.standing.iter().find(covers).map(|standing| standing.ruling)
        });
        let precedent = || self.precedent(tool, verdict, needed, &approvers).filter(|_| reuses);
        match standing.flatten() {
            Some(ruling) => Ok(Answer { ruled: Ruled::Permit, ruling: Some(ruling) }),
            None => match precedent() {
                Some(answer) => Ok(answer),
                None => self.open_ticket(asked, name, verdict, needed).await,
            },
        }
    }

    /// What somebody has ruled before on what would be asked now.
    fn precedent(&self, tool: &ToolCall, verdict: &Verdict, needed: u32, approvers: &Approvers) -> Option<Answer> {
        let (name, now) = (&tool.task.name, self.door.clock().now());
        let registration = self.door.gate().registry().find(name)?.digest();
        let covers = |one: &Precedent| {
            let permits = needed == 1 && one.was_shown(&verdict.reasons, &verdict.effects);
            counts(one, &self.caller.seat, now, approvers)
                && one.policy == verdict.policy
                && one.speaks_of(name, registration, &tool.task.arguments)
                && (one.decision == Decision::Deny || permits)
        };
        let standing: Vec<Seq> = self.door.log().standing(|standing| standing.reused().map(|one| one.ruling).collect());
        let known: Vec<_> = standing.into_iter().filter_map(|seq| self.door.precedents.named(seq)).collect();
        let covering = known.iter().map(|one| &*one.precedent).filter(|one| covers(one));
        let found = Precedent::first(covering)?;
        let ruled = if found.decision == Decision::Permit { Ruled::Permit } else { Ruled::Refuse };
        Some(Answer { ruled, ruling: Some(found.ruling) })
    }

    /// What is known of the ruling that an answer names, as a precedent.
    pub(super) fn reused(&self, answer: Option<Answer>, approvers: &Approvers) -> Reuse {
        let ruling = answer.and_then(|answer| answer.ruling);
        let Some(Known { precedent, .. }) = ruling.and_then(|ruling| self.door.precedents.named(ruling)) else {
            return Reuse::None;
        };
        let stands = |standing: &Standing| standing.reused().any(|one| one.ruling == precedent.ruling);
        let in_force = self.door.log().standing(stands)
            && counts(&precedent, &self.caller.seat, self.door.clock().now(), approvers);
        Reuse::Precedent(in_force.then_some(precedent))
    }

    async fn open_ticket(
        &self,
        asked: &Asked,
        tool: ToolName,
        verdict: &Verdict,
        needed: u32,
    ) -> Result<Answer, Refusal> {
        let (session, patience) = (self.caller.session, self.door.parts.patience.ticket);
        let registration = self.door.gate().registry().find(&tool).ok_or(Refusal::Fenced)?.digest();
        let (id, now) = (self.door.fresh_ticket(), self.door.instant());
        let expires = now.wall.plus(patience);
        let (target, arguments, policy) = (asked.target.clone(), asked.digest, verdict.policy);
        let (registered, quorum) = (Some(registration), Some(needed).filter(|needed| *needed > 1));
        let fact = Fact::Ticket { id, target, arguments, policy, expires, quorum, registration: registered };
        let text = Content::Text(format!("{tool} {}: {}", asked.arguments_text(), verdict.why()));
        self.append(self.subject(asked), fact, Some(text)).await?;
        let question = Question {
            ticket: id,
            session,
            seat: self.caller.seat.clone(),
            call: asked.call,
            tool,
            arguments: asked.arguments_text(),
            digest: asked.digest,
            registration,
            verdict: verdict.clone(),
            expires,
            quorum: needed,
        };
        self.door.tickets.open(question, patience, now);
        if !self.door.watchers().can_answer(session) {
            return self.unanswered(id, Ruled::NobodyToAsk).await;
        }
        self.answer_to(asked, id).await
    }

    /// Waits for the answer to an open ticket. The clock of the turn stands meanwhile.
    async fn answer_to(&self, asked: &Asked, id: TicketId) -> Result<Answer, Refusal> {
        let Some((question, mut said)) = self.door.tickets.follow(id) else {
            // It is closed, and what closed it stands on the record.
            let last = |session: &mut Session| session.parked(asked.call, asked.attempt)?.last;
            let last = self.door.with_session(self.caller.session, last).flatten();
            return last.map(|(ruled, seq)| Answer { ruled, ruling: Some(seq) }).ok_or(Refusal::Fenced);
        };
        let policy = question.verdict.policy;
        self.wait(Turn::begin_wait);
        self.show(Seen::Deferred(Box::new(question))).await;
        // An answer that was taken counts, also when the time is up at the same moment.
        let end = tokio::select! {
            biased;
            said = said.wait_for(Option::is_some) => End::Said(said.ok().and_then(|said| *said)),
            () = self.time_is_up(id) => End::Unanswered(Ruled::Expired),
            () = self.stopped() => End::Stopped,
            // What was asked under an older law is not answered under this one.
            () = self.door.law.gone(policy) => End::Unanswered(Ruled::Withdrawn),
        };
        self.wait(Turn::end_wait);
        match end {
            End::Said(answer) => answer.ok_or(Refusal::Fenced),
            // The next incarnation waits on it, in this node or the next.
            End::Stopped if asked.chosen.is_some() && self.goes_on() => Err(Refusal::Fenced),
            End::Stopped => self.unanswered(id, Ruled::Withdrawn).await,
            End::Unanswered(ruled) => self.unanswered(id, ruled).await,
        }
    }

    /// Whether the turn goes on without this incarnation.
    fn goes_on(&self) -> bool {
        let goes_on = |session: &mut Session| session.turn.as_ref().is_some_and(|turn| !turn.cancel.is_cancelled());
        self.door.with_session(self.caller.session, goes_on).unwrap_or(false)
    }

    async fn time_is_up(&self, id: TicketId) {
        loop {
            let left = self.door.tickets.left(id, self.door.instant());
            if left.is_zero() {
                return;
            }
            self.door.timers().sleep(left.min(LOOK)).await;
        }
    }

    /// Records that nobody answers; if somebody does at this moment, that counts.
    async fn unanswered(&self, id: TicketId, ruled: Ruled) -> Result<Answer, Refusal> {
        let said = self.door.tickets.follow(id);
        let recorded = self.door.unanswered(id, ruled).await;
        match (recorded.map_err(|error| Refusal::Chain(error.to_string()))?, said) {
            (Some(answer), _) => Ok(answer),
            (None, Some((_, mut said))) => {
                let said = said.wait_for(Option::is_some).await.ok().and_then(|said| *said);
                said.ok_or(Refusal::Fenced)
            }
            (None, None) => Err(Refusal::Fenced),
        }
    }

    /// Withdraws what is still asked in a turn that is over.
    pub(super) async fn withdraw_rest(&self) -> Result<(), Refusal> {
        for id in self.door.tickets.of(self.caller.session) {
            let withdrawn = self.door.unanswered(id, Ruled::Withdrawn).await;
            withdrawn.map_err(|error| Refusal::Chain(error.to_string()))?;
        }
        Ok(())
    }

    /// Stops the clock of the turn, or lets it go on.
    pub(super) fn wait(&self, change: fn(&mut Turn, Duration)) {
        let now = self.door.clock().monotonic();
        self.door.with_session(self.caller.session, |session| session.turn.as_mut().map(|turn| change(turn, now)));
    }
}
