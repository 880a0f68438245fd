//! When a schedule is due: cron expressions in a time zone, as a pure function of what fired last and what time it is.
//!
//! The instants are those of `croner`, after Vixie cron. Where clocks go forward, a fixed time that does not exist on that
//! day is due at the first moment after the gap; where they go back, a fixed time is due once, the first time the clock
//! shows it. What is due every hour or minute is due every hour or minute of real time.

use std::time::Duration;

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use ephor_base::{Offset, Timestamp};
use ephor_record::{Missed, Scheduled};
use jiff::{Zoned, tz::TimeZone};

/// An instant that is no further back than this was not missed: a node that is there looks at its clock more often.
const LATE: Duration = Duration::from_secs(60);

/// A time that is no time of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum BadTimetable {
    /// The cron expression cannot be read.
    #[error("`{cron}` is no cron expression of five fields (minute hour day month weekday): {why}")]
    Cron { cron: String, why: String },
    /// There is no such time zone.
    #[error("there is no time zone `{0}`; they are named as in `Europe/Berlin` or `UTC`")]
    Zone(String),
    /// It never comes.
    #[error("`{0}` never comes")]
    Never(String),
}

/// The instants of a cron expression in a time zone.
#[derive(Debug)]
pub(crate) struct Timetable {
    cron: Cron,
    zone: TimeZone,
}

/// What is to be done with a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    /// Nothing before this instant.
    At(Timestamp),
    /// It fires, for this instant and all before it.
    Fires(Timestamp),
    /// This instant and all before it were missed, and are passed over.
    Skips(Timestamp),
    /// It never comes again.
    Never,
}

/// The time zone of this name, as the IANA has it.
pub(crate) fn zone(name: &str) -> Result<TimeZone, BadTimetable> {
    TimeZone::get(name).map_err(|_| BadTimetable::Zone(name.to_owned()))
}

/// How far the clocks of a zone are ahead of UTC at a time.
pub(crate) fn offset(zone: &TimeZone, time: Timestamp) -> Option<Offset> {
    let time = jiff::Timestamp::from_microsecond(i64::try_from(time.0).ok()?).ok()?;
    // Seconds were counted before there was UTC; what is less than a minute is of no day and no time.
    Offset::of_minutes(zone.to_offset(time).seconds() / 60)
}

impl Timetable {
    /// Reads a cron expression of five fields and the name of a time zone.
    pub(crate) fn parse(cron: &str, zone: &str) -> Result<Self, BadTimetable> {
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let bad = |why: &dyn std::fmt::Display| BadTimetable::Cron { cron: cron.to_owned(), why: why.to_string() };
        let parsed = parser.parse(cron).map_err(|why| bad(&why))?;
        Ok(Self { cron: parsed, zone: self::zone(zone)? })
    }

    /// The first instant behind `time`.
    pub(crate) fn after(&self, time: Timestamp) -> Option<Timestamp> {
        let from = self.zoned(time)?;
        self.cron.find_next_occurrence(&from, false).ok().and_then(|found| micros(&found))
    }

    /// The last instant that is not behind `time`.
    fn until(&self, time: Timestamp) -> Option<Timestamp> {
        let from = self.zoned(time)?;
        self.cron.find_previous_occurrence(&from, true).ok().and_then(|found| micros(&found))
    }

    fn zoned(&self, time: Timestamp) -> Option<Zoned> {
        let micros = i64::try_from(time.0).ok()?;
        jiff::Timestamp::from_microsecond(micros).ok().map(|time| time.to_zoned(self.zone.clone()))
    }

    /// What is to be done at `now`, if `last` is the instant that was used up last, or when the schedule was made.
    pub(crate) fn due(&self, last: Timestamp, missed: Missed, now: Timestamp) -> Due {
        let Some(next) = self.after(last) else { return Due::Never };
        if next > now {
            return Due::At(next);
        }
        // Of several that passed, the latest stands for all.
        let latest = self.until(now).map_or(next, |latest| latest.max(next));
        match missed {
            Missed::Skip if now.since(latest) > LATE => Due::Skips(latest),
            Missed::Skip | Missed::Once => Due::Fires(latest),
        }
    }
}

/// The timetable of a schedule that stands, and what it counts from: the instant that was used up last; before the first one
/// when it was made, or `seen`, when it was first met by the wall clock, if that is earlier. The times of a record never go
/// back, so after a clock that ran ahead an entry lies in the future.
pub(crate) fn of(schedule: &Scheduled, seen: Timestamp) -> Result<(Timetable, Timestamp), BadTimetable> {
    let timetable = Timetable::parse(&schedule.cron, &schedule.zone)?;
    Ok((timetable, schedule.last.unwrap_or_else(|| schedule.since.min(seen))))
}

fn micros(time: &Zoned) -> Option<Timestamp> {
    u64::try_from(time.timestamp().as_microsecond()).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::{BadTimetable, Due, Timetable, of};
    use ephor_base::{Seq, SessionId, Timestamp};
    use ephor_record::{Missed, Scheduled};

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn berlin(cron: &str) -> Timetable {
        Timetable::parse(cron, "Europe/Berlin").unwrap()
    }

    /// The instants between two times, one after another, as a node that is always there meets them.
    fn instants(table: &Timetable, from: &str, to: &str) -> Vec<String> {
        let all = std::iter::successors(table.after(at(from)), |last| table.after(*last));
        all.take_while(|time| *time < at(to)).map(|time| time.to_string().replace(".000Z", "Z")).collect()
    }

    #[test]
    fn half_past_two_comes_once_on_both_days_on_which_clocks_change() {
        let table = berlin("30 2 * * *");
        // On 29 March 2026 there is no time between two and three.
        let spring = instants(&table, "2026-03-27T12:00:00Z", "2026-03-31T00:00:00Z");
        assert_eq!(spring, ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
        // On 25 October 2026 there are two of them.
        let autumn = instants(&table, "2026-10-24T00:00:00Z", "2026-10-27T00:00:00Z");
        assert_eq!(autumn, ["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    }

    #[test]
    fn what_comes_every_hour_comes_every_hour_of_real_time() {
        let table = berlin("0 * * * *");
        assert_eq!(instants(&table, "2026-03-28T23:30:00Z", "2026-03-29T03:30:00Z").len(), 4);
        assert_eq!(instants(&table, "2026-10-24T22:30:00Z", "2026-10-25T03:30:00Z").len(), 5);
    }

    #[test]
    fn nothing_fires_twice_however_the_clock_steps() {
        for missed in [Missed::Once, Missed::Skip] {
            for day in ["2026-03-29", "2026-10-25"] {
                let table = berlin("30 2 * * *");
                let (mut last, mut fired) = (at(&format!("{day}T00:00:00Z")), Vec::new());
                let begin = last.0;
                // Half a minute at a time, and every so often back by an hour or two.
                for step in 0..3000u64 {
                    let back = [0, 3600, 7200][usize::try_from(step % 3).unwrap()];
                    let now = Timestamp(begin + (step * 30).saturating_sub(back) * 1_000_000);
                    match table.due(last, missed, now) {
                        Due::Fires(instant) | Due::Skips(instant) => {
                            assert!(instant > last && instant <= now);
                            last = instant;
                            fired.push(instant);
                        }
                        Due::At(next) => assert!(next > now),
                        Due::Never => panic!("it comes every day"),
                    }
                }
                assert_eq!(fired.len(), if day == "2026-03-29" { 2 } else { 1 }, "{day}: {fired:?}");
            }
        }
    }

    #[test]
    fn what_was_missed_fires_once_or_is_passed_over() {
        let table = berlin("0 9 * * *");
        let (last, now) = (at("2026-11-01T08:00:00Z"), at("2026-11-21T20:00:00Z"));
        let latest = at("2026-11-21T08:00:00Z");
        assert_eq!(table.due(last, Missed::Once, now), Due::Fires(latest));
        assert_eq!(table.due(last, Missed::Skip, now), Due::Skips(latest));
        for missed in [Missed::Once, Missed::Skip] {
            assert_eq!(table.due(latest, missed, now), Due::At(at("2026-11-22T08:00:00Z")));
            let on_time = at("2026-11-22T08:00:30Z");
            assert_eq!(table.due(latest, missed, on_time), Due::Fires(at("2026-11-22T08:00:00Z")));
        }
    }

    #[test]
    fn a_schedule_made_on_a_record_that_lies_ahead_of_the_clock_comes_at_its_next_time() {
        let schedule = |since: &str, last: Option<&str>| Scheduled {
            name: "daily".to_owned(),
            cron: "0 9 * * *".to_owned(),
            zone: "UTC".to_owned(),
            missed: Missed::Once,
            made: Seq(7),
            since: at(since),
            session: SessionId([0; 16]),
            last: last.map(at),
            withheld: false,
        };
        let due = |schedule: &Scheduled, seen: &str, now: &str| {
            let (table, from) = of(schedule, at(seen)).unwrap();
            table.due(from, schedule.missed, at(now))
        };
        let ahead = schedule("2031-01-01T00:00:00Z", None);
        let (seen, nine) = ("2026-11-21T08:00:00Z", "2026-11-21T09:00:00Z");
        assert_eq!(due(&ahead, seen, "2026-11-21T08:30:00Z"), Due::At(at(nine)));
        assert_eq!(due(&ahead, seen, "2026-11-21T09:00:01Z"), Due::Fires(at(nine)));
        // What was missed while no node ran counts from when it was made.
        let behind = schedule("2026-11-19T10:00:00Z", None);
        assert_eq!(due(&behind, seen, "2026-11-21T08:30:00Z"), Due::Fires(at("2026-11-20T09:00:00Z")));
        // An instant that was used up is used up.
        let used = schedule("2026-11-19T10:00:00Z", Some("2031-01-01T09:00:00Z"));
        assert_eq!(due(&used, seen, "2026-11-21T09:00:01Z"), Due::At(at("2031-01-02T09:00:00Z")));
    }

    #[test]
    fn what_is_no_timetable_is_refused() {
        for cron in ["", "* * * *", "* * * * * *", "61 * * * *", "0 25 * * *", "x * * * *"] {
            assert!(matches!(Timetable::parse(cron, "UTC"), Err(BadTimetable::Cron { .. })), "{cron}");
        }
        assert!(matches!(Timetable::parse("* * * * *", "Mars/Base"), Err(BadTimetable::Zone(_))));
        assert_eq!(berlin("0 0 31 2 *").due(at("2026-01-01"), Missed::Once, at("2026-02-01")), Due::Never);
    }
}
