//! What an operator says to a deferred action.
//!
//! The ticket is on the record before anybody is asked, and outlives the process that waits on it, and its node. A ticket is
//! withdrawn when its turn is cancelled or ends; an incarnation that ends only leaves it to the next one.

use std::time::Duration;

use ephor_base::{Decision, Seq, TicketId, Verdict};
use ephor_governance::{Precedent, Ruled, sensitive::is_asked_each_time};
use ephor_record::{Content, Fact, Standing};

use super::{Serving, nowhere};
use crate::{
    door::{
        Answer, Refusal,
        asked::{Asked, ToolCall, What},
        history::Reuse,
        precedents::{Called, Known, counts},
        ruling::Approvers,
        session::{self, Session},
    },
    question::{Question, Recorded},
    seen::Seen,
};

/// How long a wait is at most before the clocks are read again: one that was set forward is noticed after this.
const LOOK: Duration = Duration::from_secs(1);

/// How a wait for an answer ends.
enum End {
    /// It was given; nothing, if its session is gone.
    Said(Option<Answer>),
    /// No person gave one in time.
    Unanswered(Ruled),
    /// What waits is stopped.
    Stopped,
}

impl Serving {
    /// The answer that an attempt waits for which was begun before: by an incarnation that is over, or by a node. Nothing,
    /// if it waits for none. An answer is to the file that was there when it was asked for: where another is by now, there is no answer.
    pub(super) async fn parked(&self, asked: &mut Asked) -> Result<Option<Answer>, Refusal> {
        let parked = |session: &mut Session| session.parked(asked.call, asked.attempt).cloned();
        let Some(parked) = self.door.with_session(self.caller.session, parked).flatten() else { return Ok(None) };
        if parked.arguments != asked.digest {
            let withdrawn = self.door.unanswered(parked.ticket, Ruled::Withdrawn).await;
            withdrawn.map_err(|error| Refusal::Chain(error.to_string()))?;
            let paths = asked.tool_call().map(|tool| tool.paths.clone()).unwrap_or_default();
            self.settle(
                asked,
                nowhere(&paths, "what it names changed while the question waited; look at it and call again"),
            )?;
            return Ok(None);
        }
        self.answer_to(asked, parked.ticket).await.map(Some)
    }

    /// What an operator says to a deferred action: by a ruling that stands for this session, by a precedent unless `reuses` is
    /// false, or now, or not at all.
    pub(super) async fn ask(&self, asked: &Asked, verdict: &Verdict, reuses: bool) -> Result<Answer, Refusal> {
        let What::Tool(tool) = &asked.what else {
            return Ok(Answer { ruled: Ruled::Refuse, ruling: None });
        };
        let name = &tool.task.name;
        // One person's word for many calls is never that of several for one.
        let needed = self.door.gate().quorum(&verdict.reasons);
        let approvers = self.door.approvers();
        // Leave for a tool does not speak of files that are more than files.
        let each_time = verdict.reasons.iter().any(|reason| is_asked_each_time(&reason.code));
        let covers = |standing: &&session::Standing| {
            !each_time
                && needed == 1
                && standing.covers(name, verdict.policy)
                && standing.by.is_some_and(|by| approvers.count(by))
        };
        let standing = self.door.with_session(self.caller.session, |session| {
            session.standing.iter().find(covers).map(|standing| standing.ruling)
        });
        let precedent = || self.precedent(tool, verdict, needed, &approvers).filter(|_| reuses);
        match standing.flatten() {
            Some(ruling) => Ok(Answer { ruled: Ruled::Permit, ruling: Some(ruling) }),
            None => match precedent() {
                Some(answer) => Ok(answer),
                None => self.open_ticket(asked, tool, verdict, needed).await,
            },
        }
    }

    /// What a person has ruled before on what would be asked now.
    fn precedent(&self, tool: &ToolCall, verdict: &Verdict, needed: u32, approvers: &Approvers) -> Option<Answer> {
        let (name, now) = (&tool.task.name, self.door.log().time());
        let registration = self.door.gate().registry().find(name)?.digest();
        let workspace = tool.task.workspace.as_str();
        let covers = |one: &Precedent| {
            let permits = needed == 1 && one.was_shown(&verdict.reasons, &verdict.effects);
            counts(one, &self.caller.seat, now, approvers)
                && one.policy == verdict.policy
                && tool.reached.as_ref().is_some_and(|reached| one.speaks_of(name, registration, workspace, reached))
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
            && counts(&precedent, &self.caller.seat, self.door.log().time(), approvers);
        Reuse::Precedent(in_force.then_some(precedent))
    }

    async fn open_ticket(
        &self,
        asked: &Asked,
        call: &ToolCall,
        verdict: &Verdict,
        needed: u32,
    ) -> Result<Answer, Refusal> {
        let (session, patience) = (self.caller.session, self.door.parts.patience.ticket);
        let (id, now) = (self.door.fresh_ticket(), self.door.instant());
        let expires = now.wall.plus(patience);
        let recorded = Recorded {
            ticket: id,
            session,
            seat: self.caller.seat.clone(),
            workspace: call.task.workspace.clone(),
            call: asked.call,
            files: call.told(),
            digest: asked.digest,
            verdict: verdict.clone(),
            expires,
            asked: self.door.log().time(),
            quorum: needed,
        };
        let arguments = call.reached.as_ref().unwrap_or(&call.task.arguments);
        let question = {
            let gate = self.door.gate();
            let tool = gate.registry().tool(&call.task.name).ok_or(Refusal::Fenced)?;
            Question::new(recorded, tool, arguments)
        };
        let fact = Fact::Ticket {
            id,
            target: asked.target.clone(),
            arguments: asked.digest,
            policy: verdict.policy,
            expires,
            quorum: Some(needed).filter(|needed| *needed > 1),
            registration: Some(question.registration),
        };
        let text = Content::Text(question.text.as_str().to_owned());
        self.append(self.subject(asked), fact, Some(text)).await?;
        let called = Called { workspace: call.task.workspace.as_str().to_owned(), arguments: arguments.clone() };
        self.door.tickets.open(question, called, patience, now);
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
        let pause = self.pause();
        self.show(Seen::Deferred(Box::new(question)));
        // An answer that was taken counts, also when the time is up at the same moment.
        let end = tokio::select! {
            biased;
            said = said.wait_for(Option::is_some) => End::Said(said.ok().and_then(|said| *said)),
            () = self.time_is_up(id) => End::Unanswered(Ruled::Expired),
            () = self.stopped() => End::Stopped,
            // What was asked under an older law is not answered under this one.
            () = self.door.law.gone(policy) => End::Unanswered(Ruled::Withdrawn),
        };
        drop(pause);
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

    /// Records that no person answers; if one does at this moment, that counts.
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
}
