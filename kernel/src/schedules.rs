//! Schedules, as far as the kernel keeps them: on the record, each instant used up once. When they are due is the
//! business of the code that reads cron expressions.

use std::collections::HashMap;

use ephor_base::{OperatorId, Seq, SessionId, Timestamp};
use ephor_chain::{AppendError, Private, Stored};
use ephor_record::{Content, Errand, Fact, Missed, Record, Scheduled, Subject};

use crate::kernel::Kernel;

/// The longest name of a schedule, in bytes.
pub const MAX_SCHEDULE_NAME: usize = 64;

/// The longest cron expression, in bytes: five fields with a list of every minute among them.
pub(crate) const MAX_CRON: usize = 256;

/// The longest name of a time zone, in bytes; those of the IANA have 32 at most.
pub(crate) const MAX_ZONE: usize = 64;

/// A schedule was not made, changed or read. Nothing was recorded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotScheduled {
    /// A name is 1 to 64 bytes of `a-z 0-9 . _ -`. The caller's fault.
    #[error("`{0}` is no name for a schedule: 1 to {MAX_SCHEDULE_NAME} of a-z, 0-9, `.`, `_` and `-`")]
    Name(String),
    /// The cron expression or the name of the time zone is longer than any. The caller's fault.
    #[error("the {what} of a schedule has {most} bytes at most, and this has {bytes}: write it shorter")]
    Long {
        /// What it is.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// The plan that it gives to each of its messages is none. The caller's fault.
    #[error("the plan is none: {0}; mend it, and make the schedule with it again")]
    Plan(String),
    /// The record has another opinion, such as that there is one of that name. The caller's fault.
    #[error("{0}")]
    Rule(&'static str),
    /// What it sends cannot be read any more: its session was erased, or its entry is gone.
    #[error("what the schedule `{0}` sends cannot be read any more")]
    Unreadable(String),
    /// The log could not take it.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
}

impl From<AppendError> for NotScheduled {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Misplaced(rule) => Self::Rule(rule),
            error => Self::Chain(error.to_string()),
        }
    }
}

fn check_length(what: &'static str, text: &str, most: usize) -> Result<(), NotScheduled> {
    let bytes = text.len();
    if bytes > most { Err(NotScheduled::Long { what, bytes, most }) } else { Ok(()) }
}

impl Kernel {
    /// The schedules that stand, by name.
    #[must_use]
    pub fn schedules(&self) -> Vec<Scheduled> {
        self.door().log().standing(|standing| standing.schedules().cloned().collect())
    }

    /// Makes a schedule. What it sends is sealed under a key of its own.
    ///
    /// # Errors
    /// [`NotScheduled`].
    pub async fn schedule(
        &self,
        operator: OperatorId,
        name: &str,
        cron: String,
        zone: String,
        missed: Missed,
        errand: Errand,
    ) -> Result<Seq, NotScheduled> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        if name.is_empty() || name.len() > MAX_SCHEDULE_NAME || !name.bytes().all(fits) {
            return Err(NotScheduled::Name(name.to_owned()));
        }
        check_length("cron expression", &cron, MAX_CRON)?;
        check_length("time zone", &zone, MAX_ZONE)?;
        let parts = self.door().divided(errand.parts).map_err(NotScheduled::Plan)?;
        let errand = Errand { parts, ..errand };
        let mut session = [0; 16];
        self.random().fill(&mut session);
        let subject = Subject { session: Some(SessionId(session)), operator: Some(operator), ..Subject::default() };
        let fact = Fact::Schedule { name: name.to_owned(), cron, zone, missed };
        let record = Record { subject, fact, content: Some(Content::Errand(errand)) };
        Ok(self.door().log().append(record).await?.seq)
    }

    /// Ends a schedule.
    ///
    /// # Errors
    /// [`NotScheduled`].
    pub async fn unschedule(&self, operator: OperatorId, name: &str) -> Result<Seq, NotScheduled> {
        let subject = Subject { operator: Some(operator), ..Subject::default() };
        let record = Record { subject, fact: Fact::Unscheduled { name: name.to_owned() }, content: None };
        Ok(self.door().log().append(record).await?.seq)
    }

    /// Passes over the instant `at` of a schedule, and those before it.
    ///
    /// # Errors
    /// [`NotScheduled`].
    pub async fn skip(&self, name: &str, at: Timestamp) -> Result<Seq, NotScheduled> {
        let fact = Fact::Skipped { name: name.to_owned(), at };
        let record = Record { subject: Subject::default(), fact, content: None };
        Ok(self.door().log().append(record).await?.seq)
    }

    /// Records that a schedule is due and is not sent, since `operator`, who made it, may not send anything any more.
    ///
    /// # Errors
    /// [`NotScheduled`], also where that stands on the record already, or the operator may send.
    pub async fn withhold(&self, operator: OperatorId, name: &str) -> Result<Seq, NotScheduled> {
        let subject = Subject { operator: Some(operator), ..Subject::default() };
        let record = Record { subject, fact: Fact::Withheld { name: name.to_owned() }, content: None };
        Ok(self.door().log().append(record).await?.seq)
    }

    /// What schedules send and who made them, by the entries that made them. What can be read no more is left out.
    pub async fn errands(&self, schedules: &[Scheduled]) -> HashMap<Seq, (OperatorId, Errand)> {
        let (log, made) = (self.door().log().clone(), schedules.iter().map(|one| one.made).collect());
        let read = tokio::task::spawn_blocking(move || {
            let errand = |stored: Stored| match (stored.entry.subject.operator, stored.content) {
                (Some(operator), Private::Open(Content::Errand(errand))) => {
                    Some((stored.entry.seq, (operator, errand)))
                }
                _ => None,
            };
            log.entries().at(made).filter_map(|stored| errand(stored.ok()?)).collect()
        });
        read.await.unwrap_or_default()
    }

    /// What a schedule sends, and the operator who made it.
    ///
    /// # Errors
    /// [`NotScheduled::Unreadable`].
    pub async fn errand(&self, schedule: &Scheduled) -> Result<(OperatorId, Errand), NotScheduled> {
        let (log, made) = (self.door().log().clone(), schedule.made);
        let unreadable = || NotScheduled::Unreadable(schedule.name.clone());
        let read = tokio::task::spawn_blocking(move || log.entry(made)).await;
        let stored = read.ok().and_then(Result::ok).flatten().ok_or_else(unreadable)?;
        match (stored.entry.subject.operator, stored.content) {
            (Some(operator), Private::Open(Content::Errand(errand))) => Ok((operator, errand)),
            _ => Err(unreadable()),
        }
    }
}
