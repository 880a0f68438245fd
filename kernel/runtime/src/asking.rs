//! Requests to a supervisor on their way through its engine.

use std::{collections::VecDeque, sync::Arc};

use super::{
    ChildSpec, Host, Shared, Task,
    duty::Kid,
    orders::{Ask, Asked, Listing, Told},
};
use crate::supervisor::{Answer, ChildId, Event, Refused, Request, Standing};

/// Who waits for an answer, by ticket, and the answers that wait until the record has been told.
pub(super) struct Asking<H: Host> {
    /// From the oldest ticket that is open on; tickets count up.
    open: VecDeque<Option<Asker<H>>>,
    oldest: u64,
    answered: VecDeque<(Asker<H>, Answer)>,
}

/// A caller that asked.
pub(super) struct Asker<H: Host> {
    /// What is to be started, until the engine gives it a place.
    what: Asked<H>,
    reply: tokio::sync::oneshot::Sender<Result<Told<H>, Refused>>,
}

impl<H: Host> Default for Asking<H> {
    fn default() -> Self {
        Self { open: VecDeque::new(), oldest: 0, answered: VecDeque::new() }
    }
}

impl<H: Host> Asking<H> {
    /// Opens a ticket; gives the event for the engine.
    pub(super) fn take(&mut self, ask: Ask<H>) -> Event {
        let ticket = self.oldest.wrapping_add(u64::try_from(self.open.len()).unwrap_or_default());
        let request = match &ask.what {
            Asked::Start(spec) => Request::Start(spec.for_engine()),
            Asked::StartDynamic(_) => Request::StartDynamic,
            Asked::Terminate(target) => Request::Terminate(target.clone()),
            Asked::Restart(name) => Request::Restart(name.clone()),
            Asked::Delete(name) => Request::Delete(name.clone()),
            Asked::Which => Request::Which,
            Asked::Count => Request::Count,
        };
        self.open.push_back(Some(Asker { what: ask.what, reply: ask.reply }));
        Event::Asked(ticket, request)
    }

    /// The specification of the child that was asked for, and whether it has a name.
    pub(super) fn adopted(&mut self, ticket: u64, template: Option<&ChildSpec<H>>) -> Option<(ChildSpec<H>, bool)> {
        let asker = self.slot(ticket)?.as_mut()?;
        match std::mem::replace(&mut asker.what, Asked::Count) {
            Asked::Start(spec) => Some((*spec, true)),
            Asked::StartDynamic(body) => {
                let mut spec = template?.clone();
                if let Some(body) = body {
                    spec.task = Task::Worker(body);
                }
                Some((spec, false))
            }
            _ => None,
        }
    }

    /// Notes an answer of the engine.
    pub(super) fn answer(&mut self, ticket: u64, answer: Answer) {
        let asker = self.slot(ticket).and_then(Option::take);
        while matches!(self.open.front(), Some(None)) {
            self.open.pop_front();
            self.oldest = self.oldest.wrapping_add(1);
        }
        if let Some(asker) = asker {
            self.answered.push_back((asker, answer));
        }
    }

    /// Takes out who asked for this child, to be told when it runs. Children are born in the order in which they were asked for.
    pub(super) fn started(&mut self, child: ChildId) -> Option<Asker<H>> {
        let is_it = |(_, answer): &(Asker<H>, Answer)| matches!(answer, Answer::Started(id) if *id == child);
        let at = self.answered.iter().position(is_it)?;
        self.answered.remove(at).map(|(asker, _)| asker)
    }

    /// Sends the answers out.
    pub(super) fn send<'a>(&mut self, shared: &Arc<Shared<H>>, kid: impl Fn(ChildId) -> Option<&'a Kid<H>>) {
        for (asker, answer) in self.answered.drain(..) {
            let told = match answer {
                Answer::Started(id) => kid(id).map(|kid| Told::Started(kid.started(shared, id))),
                Answer::Ignored => Some(Told::Ignored),
                Answer::Done => Some(Told::Done),
                Answer::Children(children) => {
                    let listing = |child: crate::supervisor::Listed| Listing {
                        name: child.name,
                        running: match child.standing {
                            Standing::Running(id) => kid(id).map(|kid| (id, kid.pid)),
                            Standing::Stopped | Standing::Restarting => None,
                        },
                        is_restarting: child.standing == Standing::Restarting,
                        kind: child.kind,
                    };
                    Some(Told::Children(children.into_iter().map(listing).collect()))
                }
                Answer::Counted(counted) => Some(Told::Counted(counted)),
                Answer::Refused(refused) => {
                    asker.tell(Err(refused));
                    continue;
                }
            };
            asker.tell(told.ok_or(Refused::NotFound));
        }
    }

    /// Nothing of what was begun happens, for this reason.
    pub(super) fn fail(&mut self, why: &str) {
        for (asker, answer) in self.answered.drain(..) {
            match answer {
                Answer::Refused(refused) => asker.tell(Err(refused)),
                _ => asker.tell(Err(Refused::StartFailed(why.to_owned()))),
            }
        }
    }

    fn slot(&mut self, ticket: u64) -> Option<&mut Option<Asker<H>>> {
        self.open.get_mut(usize::try_from(ticket.wrapping_sub(self.oldest)).ok()?)
    }
}

impl<H: Host> Asker<H> {
    pub(super) fn tell(self, told: Result<Told<H>, Refused>) {
        // The caller may have left.
        let _left: Result<(), _> = self.reply.send(told);
    }
}
