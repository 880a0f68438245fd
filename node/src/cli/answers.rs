//! What can be typed about answers: to tickets, those that are used again, and to the suspension of a seat.

use std::time::Duration;

use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub(crate) struct Answered {
    /// The number of the ticket, or the beginning of the session that asks, if it asks one thing only.
    #[arg(value_name = "ID")]
    pub(crate) ticket: String,
    /// Use the answer again for 8 hours, or as long as --for says, in this session alone: for the same tool with the same arguments,
    /// asked for the same reasons. With --always=ARG,… whatever those arguments are.
    #[arg(long, value_name = "ARG", value_delimiter = ',', num_args = 0.., require_equals = true)]
    pub(crate) always: Option<Vec<String>>,
    /// Use it again for so long, such as 30m, 8h or 7d; 90 days at most.
    #[arg(long = "for", value_name = "TIME", default_value = "8h", value_parser = duration, requires = "always")]
    pub(crate) time: Duration,
    /// Use it again for every agent of this node, and not in this session alone.
    #[arg(long, requires = "always")]
    pub(crate) all_agents: bool,
    /// Why, for the record: public for good.
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Answers that are used again.
#[derive(Args, Debug)]
pub(crate) struct Precedents {
    #[command(subcommand)]
    pub(crate) act: Option<Precedent>,
    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Precedent {
    /// Use an answer no more. What runs on it is cancelled. An approver does this.
    Revoke {
        /// The entry of the answer, as `ephor precedents` shows it.
        #[arg(value_name = "ID")]
        ruling: u64,
        /// Why, for the record: public for good.
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        note: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Reinstated {
    /// The session, whole if it is not open, or its seat or the last name of that.
    #[arg(value_name = "SESSION|SEAT")]
    pub(crate) target: String,
    /// Why, for the record: public for good.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) note: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A number of seconds, minutes, hours or days.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time: a number and s, m, h or d, such as 8h");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}
