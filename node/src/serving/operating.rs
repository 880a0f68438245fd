//! What a running node does and shows for an operator who has proved to be one.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use ephor_base::{Digest, OperatorId, Part, PartKind, Pid, Seat};
use ephor_chain::state::SeatLife;
use ephor_governance::Constitution;
use ephor_kernel::{Account, Act, Acted, Draft, Flight, Inspected, Landed, ProcessInfo, Suspended, Target, WaitsFor};
use ephor_record::{Credential, Decree, Entry, Errand, Fact, Hold, HoldKind, Role, Scheduled, Signal, Terms};
use ephor_sandbox::OpenWorkspace;

use super::{boot::Node, schedules::WITHHELD};
use crate::{
    home::write_private,
    host,
    operation::{
        AccountView, Changes, Done, DraftView, ExitView, FlightView, Inspection, LandedView, Operation, OperatorView,
        ProcessView, ROWS, Roster, ScheduleView, Survey, WORDS,
    },
    projections::{Found, Question},
    protocol::from_hex,
    timetable::{self, Due, Timetable},
};

/// How much of a last name is enough to mean a seat: as much as a person copies of a session.
const SHORT: usize = 8;

impl Node {
    /// Does what `operator` asks, or says why not.
    pub(crate) async fn operate(&self, operator: OperatorId, operation: Operation) -> anyhow::Result<Done> {
        let kernel = &self.kernel;
        Ok(match operation {
            Operation::Signal { signal, target, tree, note } => {
                let target = self.target(target.as_deref())?;
                let acted = kernel.signal(Act { operator, signal, target, tree, note }).await?;
                let held = self.holding(signal, &acted.seat);
                if signal == Signal::Resume {
                    self.scheduling.changed.notify_one();
                }
                signalled(acted, held)
            }
            Operation::Budget { target, changes, note } => self.budget(operator, &target, &changes, note).await?,
            Operation::Survey { behind } => Done::Survey { survey: self.survey(behind) },
            Operation::Inspect { target } => {
                Done::Inspected { inspection: Box::new(self.inspection(self.process(&target)?).await?) }
            }
            Operation::Letter { message } => Done::Letter { message, parts: kernel.read_letter(message).await? },
            Operation::Replay { message, session } => {
                Done::Replayed { message: kernel.replay(operator, message, session).await? }
            }
            Operation::Bury { message, note } => {
                Done::Recorded { seq: kernel.drop_letter(operator, message, note).await? }
            }
            Operation::Schedule { name, cron, zone, missed, parts, workspace, model, agent, scope } => {
                self.check_schedule(&cron, &zone, &workspace, model.as_deref())?;
                self.agent(agent.as_deref())?;
                self.knows_pins(scope.as_deref()).map_err(anyhow::Error::msg)?;
                let errand = Errand { parts, workspace, model, agent, scope };
                let seq = kernel.schedule(operator, &name, cron, zone, missed, errand).await?;
                self.scheduling.changed.notify_one();
                Done::Recorded { seq }
            }
            Operation::Unschedule { name } => {
                let _turn = self.scheduling.turn.lock().await;
                let seq = kernel.unschedule(operator, &name).await?;
                self.scheduling.changed.notify_one();
                Done::Recorded { seq }
            }
            Operation::Schedules { behind } => self.schedules(operator, behind.as_deref()).await,
            Operation::Approvals { behind } => Done::Approvals { approvals: self.approvals(operator, behind) },
            Operation::Precedents { behind } => self.precedents(operator, behind),
            Operation::Suspended { session } => self.suspended(session).await,
            Operation::Judge { judgment, note, signature } => self.judge(operator, judgment, note, &signature).await?,
            Operation::Law {} => Done::Law { text: kernel.law() },
            Operation::Draft { text } => Done::Drafted { draft: self.draft(&text)? },
            Operation::Enact { text, signature } => self.enact(operator, &text, &signature).await?,
            Operation::Operators {} => Done::Operators { roster: self.roster() },
            Operation::Decree { decree, signature } => {
                let signature = from_hex(&signature).unwrap_or_default();
                Done::Recorded { seq: kernel.decree(operator, Decree::from(decree).signed(signature)).await? }
            }
        })
    }

    /// The processes that are meant by a PID, a seat, or the name of a session's seat.
    fn target(&self, text: Option<&str>) -> anyhow::Result<Target> {
        let Some(text) = text else { return Ok(Target::All) };
        if let Ok(pid) = text.parse() {
            return Ok(Target::Pid(Pid(pid)));
        }
        Ok(Target::Seat(self.seat(text)?))
    }

    /// A seat by its path, or by its last names if only one seat has those, or by the beginning of its last name.
    fn seat(&self, text: &str) -> anyhow::Result<Seat> {
        let mut seats: Vec<Seat> = self.kernel.processes().into_iter().map(|process| process.seat).collect();
        seats.extend(self.kernel.holds().into_iter().map(|hold| hold.seat));
        seats.sort();
        seats.dedup();
        if let Some(exact) = seats.iter().find(|seat| seat.as_str() == text) {
            return Ok(exact.clone());
        }
        let ends = |seat: &&Seat| seat.as_str().strip_suffix(text).is_some_and(|rest| rest.ends_with('/'));
        let begins = |seat: &&Seat| text.len() >= SHORT && seat.name().starts_with(text);
        let mut ends = seats.iter().filter(|seat| ends(seat) || begins(seat));
        match (ends.next(), ends.next()) {
            (Some(seat), None) => Ok(seat.clone()),
            (Some(_), Some(_)) => {
                bail!("more than one seat ends with `{text}`; give its path, as `ephor ps --json` has it")
            }
            (None, _) => bail!("nobody is in a seat `{text}`; `ephor ps` shows who is there"),
        }
    }

    /// The live process that is meant; of the seat of a session, its agent.
    fn process(&self, text: &str) -> anyhow::Result<Pid> {
        let seat = match self.target(Some(text))? {
            Target::Pid(pid) => return Ok(pid),
            Target::Seat(seat) => seat,
            Target::All => bail!("name a process or a seat"),
        };
        let processes = self.kernel.processes();
        let in_seat = |seat: &Seat| processes.iter().find(|process| process.seat == *seat).map(|process| process.pid);
        in_seat(&seat.child("loop")).or_else(|| in_seat(&seat)).context("nobody is in that seat now")
    }

    /// What holds a seat still that was just resumed; nothing if it goes on.
    fn holding(&self, signal: Signal, seat: &Seat) -> Option<Hold> {
        if signal == Signal::Resume { self.kernel.hold_on(seat) } else { None }
    }

    async fn budget(
        &self,
        operator: OperatorId,
        target: &str,
        changes: &Changes,
        note: String,
    ) -> anyhow::Result<Done> {
        let pid = self.process(target)?;
        let seat = self.kernel.processes().into_iter().find(|process| process.pid == pid).map(|process| process.seat);
        let seat = seat.with_context(|| format!("there is no process {pid}"))?;
        let account = self.kernel.account(&seat);
        let account = account.with_context(|| format!("`{seat}` has no budget of its own; agents have one"))?;
        if changes.is_empty() {
            return Ok(Done::Budget { seat, account: view(account), seq: None });
        }
        let changes = *changes;
        let (account, seq) = self.kernel.limit(operator, &seat, move |limit| changes.on(limit), note).await?;
        Ok(Done::Budget { seat, account: view(account), seq: Some(seq) })
    }

    fn draft(&self, text: &str) -> anyhow::Result<DraftView> {
        let Draft { origin, latest, decree } = self.kernel.draft(Constitution::parse(text)?)?;
        let Decree::Enact { policy, terms, environment } = decree else { bail!("a draft that enacts nothing") };
        let Terms { capabilities, never, models, .. } = terms;
        Ok(DraftView { origin, latest, policy, environment, capabilities, never, models })
    }

    /// The record puts it in force; the file in the home only repeats it, for people.
    async fn enact(&self, operator: OperatorId, text: &str, signature: &str) -> anyhow::Result<Done> {
        let signature = from_hex(signature).unwrap_or_default();
        let seq = self.kernel.enact(operator, Constitution::parse(text)?, signature).await?;
        let path = self.home.constitution();
        if let Err(error) = write_private(&path, text.as_bytes()) {
            tracing::warn!(path = %path.display(), %error, "the constitution in force could not be written into the home");
        }
        Ok(Done::Recorded { seq })
    }

    fn roster(&self) -> Roster {
        let ephor_kernel::Roster { origin, latest, operators } = self.kernel.roster();
        let view = |(operator, credential): (OperatorId, Credential)| {
            let Credential { key, name, since, role } = credential;
            Some(OperatorView { name, role: role?, operator, key: Digest(key), since })
        };
        let mut operators: Vec<_> = operators.into_iter().filter_map(view).collect();
        operators.sort_by(|one, other| one.name.cmp(&other.name));
        Roster { origin, latest, operators }
    }

    fn survey(&self, behind: Option<Pid>) -> Survey {
        let (processes, more) = self.kernel.processes_behind(behind, ROWS);
        let pids: BTreeSet<Pid> = processes.iter().map(|process| process.pid).collect();
        let flights: Vec<Flight> =
            self.kernel.flights().into_iter().filter(|flight| pids.contains(&flight.pid)).collect();
        let suspended = self.kernel.suspended();
        Survey {
            more,
            time: host::now(),
            entries: self.entries(),
            processes: processes.into_iter().map(|process| self.process_view(process, &flights, &suspended)).collect(),
            flights: flights.iter().map(|flight| self.flight_view(flight)).collect(),
            holds: if behind.is_none() { self.kernel.holds() } else { Vec::new() },
            dead_letters: self.kernel.dead_letters().len(),
            schedules: self.kernel.schedules().len(),
        }
    }

    fn process_view(&self, info: ProcessInfo, flights: &[Flight], suspended: &[Suspended]) -> ProcessView {
        let suspended = suspended.iter().find(|one| one.seat == info.seat).cloned();
        let waiting_for = self.kernel.waits_for(&info, flights).as_ref().map(in_words);
        let account = self.kernel.account(&info.seat).map(view);
        let held = account.and_then(|_| self.kernel.held(&info.seat));
        ProcessView { name: info.seat.name().to_owned(), account, held, waiting_for, suspended, info }
    }

    fn flight_view(&self, flight: &Flight) -> FlightView {
        let running_ms = u64::try_from(self.kernel.running(flight).as_millis()).unwrap_or(u64::MAX);
        let Flight { call, action, target, attempt, pid, intent, .. } = flight.clone();
        FlightView { call, action, target, attempt, pid, intent, running_ms }
    }

    async fn inspection(&self, pid: Pid) -> anyhow::Result<Inspection> {
        let found = self.kernel.inspect(pid).with_context(|| format!("there is no process {pid}"))?;
        let Inspected { process, rights, related, is_in_turn, flights, landed, .. } = found;
        let (life, exits) = self.life(process.seat.clone()).await.unwrap_or_default();
        Ok(Inspection {
            rights: rights.iter().flat_map(|rights| rights.iter()).collect(),
            tools: rights.and_then(|rights| rights.tools().map(|tools| tools.iter().cloned().collect())),
            links: related.links,
            monitors: related.monitors,
            in_turn: is_in_turn,
            flights: flights.iter().map(|flight| self.flight_view(flight)).collect(),
            calls: landed.into_iter().map(landed_view).collect(),
            life,
            exits,
            process: self.process_view(process, &flights, &self.kernel.suspended()),
        })
    }

    /// What the record says of a seat, and how its last incarnations ended. A view for people: where the projections cannot
    /// be had, there is none.
    async fn life(&self, seat: Seat) -> Option<(Option<SeatLife>, Vec<ExitView>)> {
        let (projections, log) = (self.projections.clone(), self.log().clone());
        let asked = tokio::task::spawn_blocking(move || {
            let head = log.head();
            let Ok(Found::Seat { life }) = projections.ask(head, &Question::Seat { seat }, &mut |_| ()) else {
                return None;
            };
            let ends = life.iter().flat_map(|life| life.exits.iter().rev());
            let ends = ends.filter_map(|seq| exit(log.entry(*seq).ok()??.entry)).collect();
            Some((life, ends))
        });
        asked.await.ok()?
    }

    /// A schedule is refused when it is made, not when it is due.
    fn check_schedule(&self, cron: &str, zone: &str, workspace: &str, model: Option<&str>) -> anyhow::Result<()> {
        let timetable = Timetable::parse(cron, zone)?;
        if timetable.after(host::now()).is_none() {
            bail!(timetable::BadTimetable::Never(cron.to_owned()));
        }
        let opened = OpenWorkspace::open(&OpenWorkspace::resolve(workspace.as_ref())?)?;
        opened.keep_apart_from(self.home.path()).context("choose a folder apart from Ephor's home, with -C")?;
        if let Some(model) = model
            && let ephor_models::ModelChoice::Ready(model) = ephor_models::parse_model(model)?
        {
            self.models.served(&model)?;
        }
        Ok(())
    }

    /// What each sends is for who made it, and for owners.
    async fn schedules(&self, operator: OperatorId, behind: Option<&str>) -> Done {
        let is_owner = self.kernel.role(operator) >= Some(Role::Owner);
        let mut rows = self.kernel.schedules();
        rows.retain(|schedule| behind.is_none_or(|behind| schedule.name.as_str() > behind));
        let mut more = rows.len() > ROWS;
        rows.truncate(ROWS);
        let mut errands = self.kernel.errands(&rows).await;
        let (mut schedules, mut bytes) = (Vec::new(), 0_usize);
        for schedule in rows {
            let errand = errands.remove(&schedule.made).filter(|(maker, _)| is_owner || *maker == operator);
            let message = errand.map(|(_, errand)| words(&errand.parts));
            bytes = bytes.saturating_add(message.as_ref().map_or(0, String::len));
            if bytes > WORDS && !schedules.is_empty() {
                more = true;
                break;
            }
            schedules.push(self.schedule_view(schedule, message));
        }
        Done::Schedules { schedules, more }
    }

    fn schedule_view(&self, schedule: Scheduled, message: Option<String>) -> ScheduleView {
        let now = host::now();
        let table = timetable::of(&schedule, self.scheduling.seen(&schedule, now));
        let next = table.ok().and_then(|(table, last)| match table.due(last, schedule.missed, now) {
            Due::At(next) | Due::Fires(next) => Some(next),
            Due::Skips(_) | Due::Never => None,
        });
        let trouble = self.scheduling.trouble(&schedule);
        let (last_error, failing_since) = trouble.map(|trouble| (trouble.why, trouble.since)).unzip();
        // A node that does not run schedules has only the record to go by.
        let last_error = last_error.or_else(|| schedule.withheld.then(|| WITHHELD.to_owned()));
        let Scheduled { name, cron, zone, missed, made, last, .. } = schedule;
        ScheduleView { name, cron, zone, missed, made, last, next, message, last_error, failing_since }
    }
}

fn exit(entry: Entry) -> Option<ExitView> {
    let Fact::Exit { reason } = entry.fact else { return None };
    Some(ExitView { pid: entry.subject.pid, time: entry.time, reason, seq: entry.seq })
}

fn signalled(acted: Acted, held: Option<Hold>) -> Done {
    let Acted { seat, recorded, sessions } = acted;
    let (seq, unrecorded) = match recorded {
        Ok(seq) => (Some(seq), None),
        Err(why) => (None, Some(why)),
    };
    Done::Signalled { seat, seq, unrecorded, sessions, held }
}

const fn view(account: Account) -> AccountView {
    let Account { limit, used, reserved } = account;
    AccountView { limit, used, reserved }
}

fn landed_view(landed: Landed) -> LandedView {
    let Landed { call, action, target, end, receipt } = landed;
    LandedView { call, action, target, end, receipt }
}

fn in_words(waits: &WaitsFor) -> String {
    match waits {
        WaitsFor::Operator(HoldKind::Suspended) => "an operator: suspended".to_owned(),
        WaitsFor::Operator(HoldKind::Spent) => "an operator: its budget is spent".to_owned(),
        WaitsFor::Operator(HoldKind::Stopped) => "an operator: stopped".to_owned(),
        WaitsFor::Person => "a person's answer".to_owned(),
        WaitsFor::Call(target) => target.clone(),
        WaitsFor::Process(pid) => format!("process {pid}"),
        WaitsFor::Message => "a message".to_owned(),
    }
}

/// What was typed, of a message; where nothing was, what was pasted.
pub(super) fn words(parts: &[Part]) -> String {
    let of = |kinds: &[PartKind]| {
        let found = parts.iter().filter(|part| kinds.contains(&part.kind) && !part.text.trim().is_empty());
        found.map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n")
    };
    let typed = of(&[PartKind::Typed, PartKind::Vouched]);
    if typed.is_empty() { of(&[PartKind::Pasted]) } else { typed }
}
