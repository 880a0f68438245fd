//! What approvers see and end: the questions that wait, the answers that are used again, the seats that their conduct suspended.

use std::collections::BTreeMap;

use ephor_base::{OperatorId, SessionId};
use ephor_chain::{Always, Judgment, Reused, Role};
use ephor_kernel::{Question, Stands, Suspended};

use super::boot::Node;
use crate::{
    operation::{AnswerView, Approval, Done, PrecedentView},
    protocol::from_hex,
};

impl Node {
    /// The questions that wait, each with who has answered it and who may.
    pub(super) fn approvals(&self) -> Vec<Approval> {
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
        self.kernel.questions().into_iter().map(view).collect()
    }

    /// The names of those in office who may answer.
    fn approvers(&self) -> BTreeMap<OperatorId, String> {
        let all = self.kernel.roster().operators.into_iter();
        all.filter(|(_, one)| one.role >= Some(Role::Approver)).map(|(id, one)| (id, one.name)).collect()
    }

    pub(super) fn precedents(&self) -> Done {
        let names = self.approvers();
        let view = |Stands { reused, arguments, note, idle }: Stands| {
            let Reused { ruling, session, operator, decision, always, .. } = reused;
            let Always { seat, tool, free, reasons, until, .. } = always;
            PrecedentView {
                precedent: ruling,
                permits: decision == ephor_base::Decision::Permit,
                tool,
                arguments,
                free,
                seat,
                reasons,
                until,
                by: names.get(&operator).cloned(),
                operator,
                session,
                note,
                idle: idle.map(str::to_owned),
            }
        };
        let precedents = self.kernel.precedents().into_iter().map(view).collect();
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
