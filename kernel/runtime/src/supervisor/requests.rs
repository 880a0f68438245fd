//! What can be asked of a supervisor that runs, and what it answers.

use super::{
    Answer, Command, Counted, Kind, Listed, Name, Refused, Request, Spec, Standing, Supervisor, Target,
    children::State, engine::Task,
};

impl Supervisor {
    /// Serves a request; the engine waits for nothing else.
    pub(super) fn serve(&mut self, ticket: u64, request: Request, out: &mut Vec<Command>) {
        let answered = match request {
            Request::Start(spec) => self.add(ticket, &spec, out),
            Request::StartDynamic => self.add_dynamic(ticket, out),
            Request::Terminate(target) => self.terminate(ticket, &target, out),
            Request::Restart(name) => self.start_again(ticket, &name, out),
            Request::Delete(name) => self.delete(&name, out).map(Some),
            Request::Which => Ok(Some(Answer::Children(self.list()))),
            Request::Count => Ok(Some(Answer::Counted(self.count()))),
        };
        match answered {
            Ok(Some(answer)) => out.push(Command::Answer(ticket, answer)),
            // The answer comes when the child has started or stopped.
            Ok(None) => {}
            Err(refused) => out.push(Command::Answer(ticket, Answer::Refused(refused))),
        }
    }

    fn add(&mut self, ticket: u64, spec: &Spec, out: &mut Vec<Command>) -> Result<Option<Answer>, Refused> {
        if self.template.is_some() {
            return Err(Refused::Dynamic);
        }
        if !self.flags.admits(spec) {
            return Err(Refused::Significant);
        }
        if let Some(place) = self.children.named(&spec.name) {
            return Err(match self.children.state(place) {
                State::Running | State::Exited => Refused::AlreadyStarted(self.children.id(place)),
                _ => Refused::AlreadyPresent,
            });
        }
        self.begin_new(ticket, spec, true, out)
    }

    fn add_dynamic(&mut self, ticket: u64, out: &mut Vec<Command>) -> Result<Option<Answer>, Refused> {
        let template = self.template.clone().ok_or(Refused::Dynamic)?;
        self.begin_new(ticket, &template, false, out)
    }

    fn begin_new(
        &mut self,
        ticket: u64,
        spec: &Spec,
        is_named: bool,
        out: &mut Vec<Command>,
    ) -> Result<Option<Answer>, Refused> {
        let full = || Refused::StartFailed("there are too many children".to_owned());
        let place = self.children.add(spec, is_named).ok_or_else(full)?;
        self.start(place, Task::Add(ticket), out);
        Ok(None)
    }

    fn terminate(&mut self, ticket: u64, target: &Target, out: &mut Vec<Command>) -> Result<Option<Answer>, Refused> {
        let place = match (target, &self.template) {
            (Target::Name(_), Some(_)) => return Err(Refused::Dynamic),
            (Target::Name(name), None) => self.children.named(name).ok_or(Refused::NotFound)?,
            (Target::Child(_), None) => return Err(Refused::NotFound),
            (Target::Child(child), Some(_)) => match self.children.state_of(*child) {
                State::Running | State::Exited | State::Restarting => child.place,
                // An incarnation that is over needs no end; whether it ever was is not remembered here.
                _ => return Ok(Some(Answer::Done)),
            },
        };
        if self.children.state(place) == State::Running {
            self.stop(place, Task::Terminate(ticket), out);
            return Ok(None);
        }
        self.settle(place, out);
        Ok(Some(Answer::Done))
    }

    fn start_again(&mut self, ticket: u64, name: &Name, out: &mut Vec<Command>) -> Result<Option<Answer>, Refused> {
        let place = self.stopped_child(name)?;
        self.start(place, Task::Again(ticket), out);
        Ok(None)
    }

    fn delete(&mut self, name: &Name, out: &mut Vec<Command>) -> Result<Answer, Refused> {
        let place = self.stopped_child(name)?;
        out.push(Command::Forget(self.children.id(place)));
        self.children.remove(place);
        Ok(Answer::Done)
    }

    fn stopped_child(&self, name: &Name) -> Result<u32, Refused> {
        if self.template.is_some() {
            return Err(Refused::Dynamic);
        }
        let place = self.children.named(name).ok_or(Refused::NotFound)?;
        match self.children.state(place) {
            State::Stopped => Ok(place),
            State::Restarting => Err(Refused::Restarting),
            _ => Err(Refused::Running),
        }
    }

    fn list(&self) -> Vec<Listed> {
        let places = std::iter::successors(self.children.last(), |place| self.children.before(*place));
        let listed = |place| {
            let entry = self.children.entry(place)?;
            let standing = match self.children.state(place) {
                State::Running | State::Exited | State::Starting => Standing::Running(self.children.id(place)),
                State::Stopped | State::Free => Standing::Stopped,
                State::Restarting => Standing::Restarting,
            };
            Some(Listed { name: entry.name.clone(), standing, kind: entry.kind })
        };
        places.filter_map(listed).collect()
    }

    fn count(&self) -> Counted {
        let counted = self.children.counted();
        let Some(template) = &self.template else { return counted };
        // As OTP counts them: one specification, and a child is active unless it waits for a restart.
        let all = counted.specs;
        let is_worker = template.kind == Kind::Worker;
        Counted {
            specs: 1,
            active: all - self.children.restarting(),
            supervisors: if is_worker { 0 } else { all },
            workers: if is_worker { all } else { 0 },
        }
    }
}
