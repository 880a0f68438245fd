//! What approvers see and end: the questions that wait, the answers that are used again, the seats that their conduct suspended.

use std::collections::BTreeMap;

use ephor_base::{OperatorId, Seq, SessionId, TicketId};
use ephor_kernel::{Question, Stands, Suspended};
use ephor_record::{Always, Judgment, Reused, Role};

use super::boot::Node;
use crate::{
    operation::{AnswerView, Approval, Done, PAGE, PrecedentView},
    protocol::from_hex,
};

impl Node {
    /// A page of the questions that wait, each with who has answered it and who may. Arguments are for those who may see them.
    pub(super) fn approvals(&self, operator: OperatorId, behind: Option<TicketId>) -> Vec<Approval> {
        let approvers = self.approvers();
        let view = |(question, left): (Question, std::time::Duration)| {
            let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            let said = self.kernel.answers(question.session, question.ticket).into_iter();
            let answers: Vec<AnswerView> = said
                .map(|said| AnswerView {
                    name: approvers.get(&said.operator).cloned(),
                    operator: said.operator,
                    permits: said.permits,
                    note: said.note,
                })
                .collect();
            let may = approvers.iter().filter(|(id, _)| !answers.iter().any(|one| one.operator == **id));
            let may = may.map(|(_, name)| name.clone()).collect();
            Approval { question, left_ms, answers, may }
        };
        let shown = |(question, left): (Question, std::time::Duration)| match self.may_see(operator, question.session) {
            true => (question, left),
            false => (question.withheld(), left),
        };
        self.kernel.questions_behind(behind, PAGE).into_iter().map(shown).map(view).collect()
    }

    /// The names of those in office who may answer.
    fn approvers(&self) -> BTreeMap<OperatorId, String> {
        let all = self.kernel.roster().operators.into_iter();
        all.filter(|(_, one)| one.role >= Some(Role::Approver)).map(|(id, one)| (id, one.name)).collect()
    }

    pub(super) fn precedents(&self, operator: OperatorId, behind: Option<Seq>) -> Done {
        let names = self.approvers();
        let view = |Stands { reused, arguments, note, idle }: Stands| {
            let Reused { ruling, session, operator: by, decision, always, .. } = reused;
            let Always { seat, tool, free, reasons, until, .. } = always;
            PrecedentView {
                precedent: ruling,
                permits: decision == ephor_base::Decision::Permit,
                tool,
                arguments: arguments.filter(|_| self.may_see(operator, session)),
                free,
                seat,
                reasons,
                until,
                by: names.get(&by).cloned(),
                operator: by,
                session,
                note,
                idle: idle.map(str::to_owned),
            }
        };
        let listed =
            self.kernel.precedents().into_iter().filter(|one| behind.is_none_or(|behind| one.reused.ruling > behind));
        let precedents = listed.take(PAGE).map(view).collect();
        Done::Precedents { origin: self.kernel.origin(), precedents }
    }

    /// The seats of open sessions that their conduct suspended, or that of one session, wherever it is.
    pub(super) async fn suspended(&self, session: Option<SessionId>) -> Done {
        let suspended: Vec<Suspended> = match session {
            Some(session) => self.kernel.suspended_in(session).await.into_iter().collect(),
            None => self.kernel.suspended(),
        };
        Done::Suspended { origin: self.kernel.origin(), suspended }
    }

    pub(super) async fn judge(
        &self,
        approver: OperatorId,
        judgment: Judgment,
        note: String,
        signature: &str,
    ) -> anyhow::Result<Done> {
        let signature = from_hex(signature).unwrap_or_default();
        Ok(Done::Recorded { seq: self.kernel.judge(approver, judgment, note, signature).await? })
    }
}
