//! Questions to the projections of the record: answered by the node that runs, or under the lock of the home.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, bail};
use ephor_base::{CallId, Pid, Seat, Seq, SessionId, Timestamp, files::Files};
use ephor_chain::{
    ReadError, State,
    disk::Disk,
    state::{
        Broken, CaughtUp, Day, Dead, Figures, List, Order, Page, Progress, Reading, SeatLife, Session, Source,
        StateError, Ticket, View, Waiting,
    },
};
use ephor_record::{Entry, Fact, Unanswered};
use ephor_tlog::Head;
use serde::{Deserialize, Serialize};

use crate::{
    client::{Client, NodeGone},
    commands::runtime,
    failure::{NoChain, Refused},
    files,
    home::{Home, Lock, Locked, PATIENCE, Wait},
    progress::Bar,
    protocol::{Answer, Request},
};

/// The most rows in one answer, so that a line stays far below its limit.
const MOST: usize = 2000;

/// Something to ask. Lists come newest first, in pages: `behind` is the number that ended the page before.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Question {
    /// Sessions, by their first entry.
    Sessions { behind: Option<u64>, most: usize },
    /// Tickets, by number.
    Tickets { behind: Option<u64>, most: usize },
    /// Dead letters, by message; those that were replayed or dropped as well, if all are wanted.
    Dead { behind: Option<u64>, most: usize, all: bool },
    /// What the record says of a seat.
    Seat { seat: Seat },
    /// The places of entries.
    Entries { of: Filter, behind: Option<u64>, most: usize },
    /// What there is how much of.
    Statistics {},
    /// Where the projections stand.
    Figures {},
    /// To build them again.
    Rebuild {},
}

/// Which entries.
#[derive(Clone, Default, Serialize, Deserialize, Debug)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Filter {
    pub(crate) session: Option<SessionId>,
    pub(crate) pid: Option<Pid>,
    pub(crate) call: Option<CallId>,
    pub(crate) kind: Option<String>,
    /// Those of the day of this time are all given.
    pub(crate) since: Option<Timestamp>,
}

/// What was found.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(tag = "found", rename_all = "snake_case")]
pub(crate) enum Found {
    /// Sessions.
    Sessions { sessions: Vec<Session> },
    /// Tickets.
    Tickets { tickets: Vec<Ticket> },
    /// Dead letters.
    Dead { letters: Vec<Dead> },
    /// What the record says of a seat.
    Seat { life: Option<SeatLife> },
    /// Places, newest first.
    Entries { entries: Vec<Seq> },
    /// What there is how much of.
    Statistics { statistics: Statistics },
    /// Where the projections stand, and the entries of the chain.
    Figures { figures: Figures, chain: u64 },
    /// They were built again.
    Rebuilt { caught_up: CaughtUp },
}

/// What the record has how much of.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Statistics {
    /// Entries that are counted.
    pub(crate) entries: u64,
    /// Those of each kind.
    pub(crate) kinds: BTreeMap<String, u64>,
    /// Conversations.
    pub(crate) sessions: u64,
    /// Intents without an outcome.
    pub(crate) open_intents: u64,
    /// The days that have entries, newest first, at most [`MOST`].
    pub(crate) days: Vec<Day>,
}

/// The projections of a home, and the chain they are made from.
#[derive(Debug)]
pub(crate) struct Projections {
    state: Mutex<State>,
    chain: PathBuf,
}

impl Projections {
    /// Nothing is read before the first question.
    pub(crate) fn new(home: &Home, origin: &str) -> Self {
        Self { state: Mutex::new(State::open(&home.state(), origin)), chain: home.chain() }
    }

    /// Answers as of `head`. Blocks while the projections catch up with it.
    pub(crate) fn ask(
        &self,
        head: Head,
        question: &Question,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Found, StateError> {
        let files: Arc<dyn Files> = Arc::new(Disk);
        let chain = Reading::up_to(&self.chain, &files, head);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match question {
            Question::Rebuild {} => state.rebuild(&chain, progress).map(|caught_up| Found::Rebuilt { caught_up }),
            Question::Figures {} => {
                state.catch_up(&chain, progress)?;
                Ok(Found::Figures { figures: state.figures(), chain: chain.head().size })
            }
            question => state.ask(&chain, progress, |view| look(view, question)),
        }
    }
}

impl Projections {
    /// The messages that are owed an answer at `head`, if the record does not end with a node that stopped in good order.
    /// Reads all of it, which is worth it behind a crash alone.
    fn unanswered(&self, head: Head) -> Result<Vec<Unanswered>, ReadError> {
        let files: Arc<dyn Files> = Arc::new(Disk);
        let chain = Reading::up_to(&self.chain, &files, head);
        let last = chain.entries(Seq(head.size.saturating_sub(1))).next().transpose()?;
        let mut open = BTreeMap::new();
        if last.is_none_or(|last| matches!(last.entry.fact, Fact::Stop { .. })) {
            return Ok(Vec::new());
        }
        for stored in chain.entries(Seq(chain.first()?)) {
            let Entry { seq: accepted, subject, fact, .. } = stored?.entry;
            match (fact, subject.session) {
                (Fact::Message { id: message, owed: true, .. }, Some(session)) => {
                    open.insert(message, Unanswered { message, accepted, session });
                }
                (Fact::TurnEnd { message, .. } | Fact::Dead { message, .. }, _) => {
                    open.remove(&message);
                }
                _ => {}
            }
        }
        Ok(open.into_values().collect())
    }
}

impl Projections {
    /// The tickets that nothing has settled at `head`, in the order of their numbers: the next node goes on with them.
    fn waiting(&self, head: Head, progress: &mut dyn FnMut(Progress)) -> Result<Vec<Waiting>, StateError> {
        let files: Arc<dyn Files> = Arc::new(Disk);
        let chain = Reading::up_to(&self.chain, &files, head);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Waiting> = state.ask(&chain, progress, |view| view.waiting()?.collect())?;
        all.sort_by_key(|one| one.ticket);
        Ok(all)
    }
}

/// Answers a question about the record.
fn look(view: &View<'_>, question: &Question) -> Result<Found, Broken> {
    let newest = |behind: &Option<u64>, most: &usize| Page { order: Order::Newest, behind: *behind, most: *most };
    Ok(match question {
        Question::Sessions { behind, most } => {
            Found::Sessions { sessions: view.sessions(newest(behind, most.min(&MOST)))?.collect::<Result<_, _>>()? }
        }
        Question::Tickets { behind, most } => {
            Found::Tickets { tickets: view.tickets(newest(behind, most.min(&MOST)))?.collect::<Result<_, _>>()? }
        }
        Question::Dead { behind, most, all } => {
            let letters = view.dead(newest(behind, &usize::MAX))?;
            let wanted =
                letters.filter(|letter| letter.as_ref().map_or(true, |letter| *all || letter.became.is_none()));
            Found::Dead { letters: wanted.take(*most.min(&MOST)).collect::<Result<_, _>>()? }
        }
        Question::Seat { seat } => Found::Seat { life: view.seat(seat)? },
        Question::Entries { of, behind, most } => {
            let since = of.since.map(|time| view.since(time)).transpose()?.unwrap_or(Seq(0));
            let entries = view.entries(&of.lists(), newest(behind, most.min(&MOST)))?;
            let entries = entries.take_while(|place| place.as_ref().map_or(true, |place| *place >= since));
            Found::Entries { entries: entries.collect::<Result<_, _>>()? }
        }
        Question::Statistics {} => Found::Statistics { statistics: count(view)? },
        Question::Figures {} | Question::Rebuild {} => Found::Entries { entries: Vec::new() },
    })
}

fn count(view: &View<'_>) -> Result<Statistics, Broken> {
    let newest = |most| Page { order: Order::Newest, behind: None, most };
    let open =
        view.unsettled(newest(usize::MAX))?.try_fold(0u64, |open, intent| intent.map(|_| open.saturating_add(1)));
    Ok(Statistics {
        entries: view.size(),
        kinds: view.kinds()?,
        sessions: view.session_count()?,
        open_intents: open?,
        days: view.days(newest(MOST))?.collect::<Result<_, _>>()?,
    })
}

impl Filter {
    fn lists(&self) -> Vec<List> {
        let Self { session, pid, call, kind, since: _ } = self;
        let kind = kind.clone().map(List::Kind);
        let lists = [session.map(List::Session), pid.map(List::Pid), call.map(List::Call), kind];
        lists.into_iter().flatten().collect()
    }

    /// Whether nothing is left out.
    pub(crate) fn is_everything(&self) -> bool {
        self.lists().is_empty() && self.since.is_none()
    }
}

/// The process that can answer: the node that runs on a home, or this one while it keeps writers out.
pub(crate) enum Answering {
    Node(tokio::runtime::Runtime, Box<Client>),
    Here { projections: Box<Projections>, head: Head, _locks: [Lock; 2] },
}

impl Answering {
    /// Finds the node, or takes the lock. One that is leaving has no socket any more and holds the lock still, and so does
    /// one that begins: either is waited for.
    pub(crate) fn find(home: &Home) -> anyhow::Result<Self> {
        let mut wait = Wait::new(home, PATIENCE);
        loop {
            match Self::at_once(home) {
                Err(error) if error.is::<Locked>() && wait.goes_on() => std::thread::sleep(wait.pause()),
                found => return found,
            }
        }
    }

    /// The same without waiting, for a caller that can do without.
    pub(crate) fn at_once(home: &Home) -> anyhow::Result<Self> {
        if !home.exists() {
            bail!(NoChain(home.path().to_owned()));
        }
        let runtime = runtime(1)?;
        if let Some(client) = runtime.block_on(Client::reach_running(home))? {
            return Ok(Self::Node(runtime, Box::new(client)));
        }
        let locks = [home.try_look()?, home.try_project()?];
        let path = home.public_keys();
        let keys = files::public_keys(&path)?;
        let files: Arc<dyn Files> = Arc::new(Disk);
        let whole = Reading::whole(&home.chain(), &files);
        let head = whole.context("the chain cannot be read; see `ephor chain verify`")?.head();
        let projections = Box::new(Projections::new(home, keys.origin()));
        Ok(Self::Here { projections, head, _locks: locks })
    }

    /// The messages that a node left unanswered which ended without a word. A node that runs is answering them.
    pub(crate) fn unanswered(&self) -> anyhow::Result<Vec<Unanswered>> {
        match self {
            Self::Node(..) => Ok(Vec::new()),
            Self::Here { projections, head, .. } => Ok(projections.unanswered(*head)?),
        }
    }

    /// The tickets that wait for a person, where no node runs that would know.
    pub(crate) fn waiting(&self) -> anyhow::Result<Option<Vec<Waiting>>> {
        match self {
            Self::Node(..) => Ok(None),
            Self::Here { projections, head, .. } => {
                let mut bar = Bar::new("entries applied");
                Ok(Some(projections.waiting(*head, &mut |Progress { applied, of }| bar.show(applied, of))?))
            }
        }
    }

    /// Why the chain cannot be published, as the node that runs has it.
    pub(crate) fn trouble(&mut self) -> anyhow::Result<Option<String>> {
        let Self::Node(runtime, client) = self else { return Ok(None) };
        match runtime.block_on(client.ask(&Request::Space {}))? {
            Answer::Space { trouble, .. } => Ok(trouble),
            _ => bail!("the node answered something else"),
        }
    }

    /// Asks. Shows how far it is once that has taken a second. Where the node ends before it answers, the process that can answer then
    /// is asked.
    pub(crate) fn ask(&mut self, question: Question) -> anyhow::Result<Found> {
        match (self.ask_once(&question), &mut *self) {
            (Err(error), Self::Node(_, client)) if error.is::<NodeGone>() => {
                let home = client.home().clone();
                *self = Self::find(&home)?;
                self.ask_once(&question)
            }
            (found, _) => found,
        }
    }

    fn ask_once(&mut self, question: &Question) -> anyhow::Result<Found> {
        let mut bar = Bar::new("entries applied");
        match self {
            Self::Here { projections, head, .. } => {
                let show = &mut |Progress { applied, of }| bar.show(applied, of);
                projections.ask(*head, question, show).map_err(Into::into)
            }
            Self::Node(runtime, client) => runtime.block_on(async {
                let mut answer = client.ask(&Request::Ask { question: question.clone() }).await?;
                while let Answer::Progress { progress: Progress { applied, of } } = answer {
                    bar.show(applied, of);
                    answer = client.hear().await?;
                }
                match answer {
                    Answer::Found { found } => Ok(found),
                    Answer::Refused { why } | Answer::Stopping { why } => bail!(Refused(why)),
                    _ => bail!("the node answered something else"),
                }
            }),
        }
    }

    /// The places of these entries, newest first, as far as there are so many.
    pub(crate) fn entries(&mut self, of: &Filter, most: usize) -> anyhow::Result<Vec<Seq>> {
        self.pages(
            most,
            |behind, most| Question::Entries { of: of.clone(), behind, most },
            |found| match found {
                Found::Entries { entries } => Some(entries),
                _ => None,
            },
            |place: &Seq| place.0,
        )
    }

    /// Asks page after page, newest first, until there are `most` rows or no more.
    pub(crate) fn pages<T>(
        &mut self,
        most: usize,
        ask: impl Fn(Option<u64>, usize) -> Question,
        rows: impl Fn(Found) -> Option<Vec<T>>,
        number: impl Fn(&T) -> u64,
    ) -> anyhow::Result<Vec<T>> {
        let (mut all, mut behind) = (Vec::new(), None);
        while all.len() < most {
            let page = self.ask(ask(behind, most.saturating_sub(all.len())))?;
            let page = rows(page).context("the node answered something else")?;
            let Some(last) = page.last() else { break };
            behind = Some(number(last));
            all.extend(page);
        }
        Ok(all)
    }
}
