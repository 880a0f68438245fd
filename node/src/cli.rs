//! What can be typed.

mod answers;
mod operator;
mod undo;

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use ephor_base::{SessionId, Timestamp, ToolName};
use ephor_record::{Pin, Retention};

pub(crate) use answers::{Answered, Precedent, Precedents, Reinstated};
pub(crate) use operator::Operator;
pub(crate) use undo::{Diff, Undo};

use crate::operation::Change;

/// An operating system for agents: every agent a supervised process, every act permitted and on a signed record.
#[derive(Parser, Debug)]
#[command(name = "ephor", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Where Ephor keeps its keys, chain and configuration [default: the platform's data directory].
    #[arg(long, env = "EPHOR_HOME", global = true, value_name = "DIR")]
    pub(crate) home: Option<OsString>,

    /// Read the passphrase for the keys from this file, instead of asking at the terminal.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,

    /// Act with this credential: a name from `ephor operator add`, or a file, with a `/` in it [default: the first owner's].
    #[arg(long = "as", env = "EPHOR_AS", global = true, value_name = "NAME|FILE")]
    pub(crate) credential: Option<String>,

    /// Read the passphrase for the credential from this file, instead of asking at the terminal.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) as_passphrase_file: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Give an agent a message in this folder, and get its answer.
    Run(Run),
    /// Put back the files that a session has written, as they were before. What was kept of them stands on the record.
    Undo(Undo),
    /// Show what a session has changed in its files, as a patch that `git apply` takes.
    Diff(Diff),
    /// Keep a node running until Ctrl-C.
    Up(Up),
    /// Show the processes of the running node as a tree: state, budget, what each waits for.
    Ps(Ps),
    /// Watch the running node on the full screen, until q or Ctrl-C.
    Top,
    /// Show all that is known of one process.
    Inspect(Inspect),
    /// Let nothing new begin in a process, a tree or everywhere. What is under way ends; nothing is lost.
    Suspend(Signalled),
    /// Let what was suspended or stopped go on.
    Resume(Signalled),
    /// Cancel what is under way, running calls too, and end the agents. With --all it stays so, also after a reboot.
    Stop(Signalled),
    /// End a process at once; its supervisor decides what follows.
    Kill(Signalled),
    /// Show what waits for a person: who asks what and why, and for how long.
    Approvals(Approvals),
    /// Let a call run that waits: exactly that one, once, or with --always also when it comes again.
    Approve(Answered),
    /// Refuse a call that waits; the agent is told.
    Refuse(Answered),
    /// List standing approvals, the answers that are used again, or revoke one.
    Precedents(Precedents),
    /// Let an agent act again that its conduct suspended. An approver does this.
    Reinstate(Reinstated),
    /// Show the budget of an agent, or change it: amounts in all, or +N for so much more. What it has used stays used.
    Budget(BudgetOf),
    /// List messages that could not be delivered, read them, replay or drop them.
    Dead(Dead),
    /// Send a message at certain times, while `ephor up` runs.
    #[command(subcommand)]
    Schedule(Schedule),
    /// List the sessions on the record, newest first.
    Sessions(Listing),
    /// Show the plan of the last turn of a session: which acts it allowed, where their arguments come from, and what was used of it.
    Plan(PlanOf),
    /// List the tickets on the record, newest first: what a person was asked, and what they said.
    Tickets(Listing),
    /// Show what is kept of the record for quick answers, or build it again.
    State(State),
    /// Copy this home into a folder, verified; again to bring the copy up to date. A node may run meanwhile.
    Backup(Backup),
    /// Restore a backup into an empty home. Its record is kept, and a new chain begins that names it.
    Restore(Restore),
    /// Read, verify, prove and keep the signed record.
    #[command(subcommand)]
    Chain(Chain),
    /// Ask the gate without running anything.
    #[command(subcommand)]
    Gate(Gate),
    /// Read, check, compare and test constitutions.
    #[command(subcommand)]
    Policy(Policy),
    /// Enrol operators with credentials and roles of their own.
    #[command(subcommand)]
    Operator(Operator),
    /// Say what this machine lacks that agents would need to run commands, and what to do about it.
    Doctor(Doctor),
}

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Gate {
    /// Decide each call of a foreign trace, and print the answers as JSON lines.
    Replay {
        /// The trace: JSON lines of tools, user, scope, calls and results.
        #[arg(value_name = "TRACE")]
        trace: PathBuf,
        /// Where it is to be decided.
        #[arg(long, value_enum, default_value_t = Environment::Dev)]
        environment: Environment,
        /// A constitution [default: the one of the environment].
        #[arg(long, value_name = "FILE")]
        policy: Option<PathBuf>,
    },
}

#[derive(Subcommand, Debug)]
pub(crate) enum Policy {
    /// Check whether a file is a constitution.
    Check {
        /// Cedar policies.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the constitution in force in this home.
    Show {
        /// Print the schema instead: what a constitution can speak of.
        #[arg(long)]
        schema: bool,
    },
    /// Show what a file would change in the constitution of this home.
    Diff {
        /// Cedar policies.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Put a constitution in force, at once and on the record. An owner does this, after seeing what it changes.
    Apply {
        /// Cedar policies.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say why something was decided, from the record alone, and whether it comes out the same; exit status 1 with --all if
    /// something does not.
    Explain {
        /// The sequence of a verdict; `ephor chain log --kind verdict` lists them.
        #[arg(value_name = "SEQ", required_unless_present = "all", conflicts_with = "all")]
        seq: Option<u64>,
        /// Decide everything on the record again.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say what another constitution would have decided over the recorded past.
    Backtest {
        /// Cedar policies.
        #[arg(long, value_name = "FILE")]
        policy: PathBuf,
        /// Where it is to be decided [default: where it was].
        #[arg(long, value_enum)]
        environment: Option<Environment>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Hold a table of cases against the gate; exit status 1 if any is decided otherwise.
    Test {
        /// Rows of a trace, the id of a call in it, and `permit`, `defer` or `deny`.
        #[arg(value_name = "FILE")]
        table: PathBuf,
        /// Where they are to be decided.
        #[arg(long, value_enum, default_value_t = Environment::Dev)]
        environment: Environment,
        /// A constitution [default: the one of the environment].
        #[arg(long, value_name = "FILE")]
        policy: Option<PathBuf>,
    },
}

/// Where a node runs.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Environment {
    /// One person's own machine.
    Dev,
    /// Like production, without its data.
    Staging,
    /// Where it counts.
    Production,
}

impl From<Environment> for ephor_governance::Environment {
    fn from(environment: Environment) -> Self {
        match environment {
            Environment::Dev => Self::Dev,
            Environment::Staging => Self::Staging,
            Environment::Production => Self::Production,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Backup {
    /// An empty folder, or one with an older backup of this home; best on another disk.
    #[arg(value_name = "DEST")]
    pub(crate) folder: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// The folder of a backup.
    #[arg(value_name = "SOURCE")]
    pub(crate) folder: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Listing {
    /// List all of them, not only the newest twenty.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct State {
    #[command(subcommand)]
    pub(crate) command: Option<StateCommand>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum StateCommand {
    /// Delete it and build it again from the chain. Nothing is lost by that.
    Rebuild {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// What you want. A `-` adds what is piped in, as something anyone may have written; without any words that is the message.
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Vec<String>,
    /// Work in this folder instead of the current one.
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The model: builtin/scout, PROVIDER/NAME (openai, anthropic, gemini, ollama, as configured) or script:FILE [default: as configured, else builtin/scout].
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Run this agent, as `[agents.NAME]` in ephor.toml has it [default: default].
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Come back to this session: say more in it, or, without a message, get the answer that came meanwhile.
    #[arg(long, value_name = "ID", conflicts_with_all = ["directory", "model", "agent"])]
    pub(crate) session: Option<SessionId>,
    /// Wait for `ephor approve` from elsewhere where a call needs leave and there is no terminal to ask at.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Permit these tools for this run without asking; recorded as your ruling.
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) allow: Vec<ToolName>,
    /// Pin the tools that this needs, before anything else is read: no other may act without your being asked, and one with a
    /// target only there, such as fs.write=notes.md.
    #[arg(long, value_name = "TOOL[=TARGET]", value_delimiter = ',', value_parser = pin)]
    pub(crate) scope: Option<Vec<Pin>>,
    /// The message is your own, however long it is and whatever fences it has: nothing of it is taken as pasted.
    #[arg(long)]
    pub(crate) vouch: bool,
    /// Your own plan for what this may do, a file of JSON as docs/provenance.md has it; in the place of one that the model makes.
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// Show the plan and ask you before anything acts; no ends the turn.
    #[arg(long, conflicts_with = "allow")]
    pub(crate) show_plan: bool,
    /// Print events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PlanOf {
    /// The session, as `ephor sessions` lists it.
    #[arg(value_name = "SESSION")]
    pub(crate) session: SessionId,
    /// Show the plan of each of its turns, oldest first.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON lines, one a turn.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Up {
    /// End when the last client leaves; how `run` starts a node of its own.
    #[arg(long, hide = true)]
    pub(crate) until_idle: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Approvals {
    /// Go on looking, and show them again whenever they change, until Ctrl-C.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which processes a signal is for.
#[derive(Args, Debug)]
pub(crate) struct Signalled {
    /// A PID, a seat such as node/agents/1f0c92aa…, or its last name or how that begins.
    #[arg(value_name = "PID|SEAT", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) target: Option<String>,
    /// Everything below it as well.
    #[arg(long)]
    pub(crate) tree: bool,
    /// Every agent, and every one to come.
    #[arg(long)]
    pub(crate) all: bool,
    /// Why; public on the record for good, so name nobody.
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub(crate) note: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Inspect {
    /// A PID, a seat such as node/agents/1f0c92aa…, or its last name or how that begins.
    #[arg(value_name = "PID|SEAT")]
    pub(crate) target: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Amounts are in all, or with a + so much more: 200000, +50000.
#[derive(Args, Debug)]
pub(crate) struct BudgetOf {
    /// A PID, a seat such as node/agents/1f0c92aa…, or its last name or how that begins.
    #[arg(value_name = "PID|SEAT")]
    pub(crate) target: String,
    /// Model tokens, in and out together.
    #[arg(long, value_name = "N", value_parser = change)]
    pub(crate) tokens: Option<Change>,
    /// Money, in US dollars, such as 5 or +0.50.
    #[arg(long, value_name = "USD", value_parser = money)]
    pub(crate) usd: Option<Change>,
    /// Time in drivers, in seconds.
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub(crate) wall_seconds: Option<Change>,
    /// Calls of tools.
    #[arg(long, value_name = "N", value_parser = change)]
    pub(crate) tool_calls: Option<Change>,
    /// Messages taken.
    #[arg(long, value_name = "N", value_parser = change)]
    pub(crate) messages: Option<Change>,
    /// Why; public on the record for good, so name nobody.
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub(crate) note: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Dead {
    #[command(subcommand)]
    pub(crate) command: Option<DeadCommand>,
    /// List those that were replayed or dropped as well.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum DeadCommand {
    /// Show what a dead letter says, with the keys of this home.
    Show {
        /// The number of the message.
        #[arg(value_name = "ID")]
        message: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Deliver dead letters again, each once: into a new session like the one in which it was said, whose answers are shown, or into
    /// one that is open.
    Replay {
        /// The number of the message.
        #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
        message: Option<u64>,
        /// All that there are, oldest first, each in a session of its own.
        #[arg(long)]
        all: bool,
        /// Into this open session, instead of a new one.
        #[arg(long, value_name = "SESSION")]
        session: Option<SessionId>,
        /// A new session works in this folder [default: that of the session in which it was said].
        #[arg(short = 'C', value_name = "DIR", conflicts_with = "session")]
        directory: Option<PathBuf>,
        /// The model of a new session: builtin/scout, PROVIDER/NAME (openai, anthropic, gemini, ollama, as configured) or script:FILE [default: that of the session in which it was said].
        #[arg(long, value_name = "MODEL", conflicts_with = "session")]
        model: Option<String>,
        /// The agent of a new session, as `[agents.NAME]` in ephor.toml has it [default: that of the session in which it was said].
        #[arg(long, value_name = "NAME", conflicts_with = "session")]
        agent: Option<String>,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Drop a dead letter. The record keeps that it was one.
    Drop {
        /// The number of the message.
        #[arg(value_name = "ID")]
        message: u64,
        /// Why; public on the record for good, so name nobody.
        #[arg(long, value_name = "WORDS", default_value = "")]
        note: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand, Debug)]
pub(crate) enum Schedule {
    /// Make a schedule: at each of its times a new session is opened, and gets the message.
    Add {
        /// Its name: a-z, 0-9, `.`, `_` and `-`.
        #[arg(value_name = "NAME")]
        name: String,
        /// When: minute, hour, day, month, weekday, such as "30 9 * * mon-fri".
        #[arg(value_name = "CRON")]
        cron: String,
        /// The message.
        #[arg(value_name = "MESSAGE", required = true)]
        message: Vec<String>,
        /// The time zone the times are in, as in Europe/Berlin.
        #[arg(long, value_name = "ZONE", default_value = "UTC")]
        zone: String,
        /// What becomes of times at which no node ran: the latest is made up for once, or they are skipped.
        #[arg(long, value_enum, default_value_t = Missed::Once)]
        missed: Missed,
        /// Its agent works in this folder instead of the current one.
        #[arg(short = 'C', value_name = "DIR")]
        directory: Option<PathBuf>,
        /// The model: builtin/scout, PROVIDER/NAME (openai, anthropic, gemini, ollama, as configured) or script:FILE [default: as configured].
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        /// Run this agent, as `[agents.NAME]` in ephor.toml has it when it is due [default: default].
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Pin the tools that it needs: no other may act, and one with a target only there, such as fs.write=notes.md.
        #[arg(long, value_name = "TOOL[=TARGET]", value_delimiter = ',', value_parser = pin)]
        scope: Option<Vec<Pin>>,
        /// The message is your own, however long it is and whatever fences it has: nothing of it is taken as pasted.
        #[arg(long)]
        vouch: bool,
        /// Your own plan for what each message may do, a file of JSON as docs/provenance.md has it.
        #[arg(long, value_name = "FILE")]
        plan: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the schedules, with when each is due next.
    List {
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// End a schedule.
    Remove {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What becomes of missed times.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Missed {
    /// The latest is made up for, once.
    Once,
    /// They are passed over.
    Skip,
}

#[derive(Args, Debug)]
pub(crate) struct Ps {
    /// Show it again every second, until Ctrl-C.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Chain {
    /// Print the entries, oldest first.
    Log(ChainLog),
    /// Check every hash, signature and rule; exit status 1 if anything is wrong.
    Verify(Verify),
    /// Print a proof that an entry is in the log: a file that is checked with the public keys alone.
    Prove(Prove),
    /// Check a proof, with no home, no node and no network; exit status 1 if it does not hold.
    Check(Check),
    /// Print entries for an auditor as JSON lines, behind one with the keys and the signed checkpoint.
    Export(Export),
    /// Show what the record holds, what it takes, and how it grows.
    Stat {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the public keys of the log as note verifier keys.
    Key {
        /// Print proofs of the changes of keys so far instead, for `chain check --changes`.
        #[arg(long, conflicts_with = "json")]
        changes: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Destroy the key of a session, so that nobody can read again what was said in it. Every proof stays valid.
    Erase {
        /// The session, as `chain log --json` names it.
        #[arg(long, value_name = "SESSION")]
        session: SessionId,
        /// Also erase the sessions that were delegated from it, however far.
        #[arg(long)]
        derived: bool,
        /// Why; public on the record for good, so name nobody.
        #[arg(long, value_name = "WORDS", default_value = "asked for by the operator")]
        reason: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Take away the oldest entries, as far as they are old enough and nothing needs them. The rest is proven as before.
    Prune(Prune),
    /// Sign the log with new keys from here on. Its name and its history stay.
    Rotate {
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Set, change or remove the passphrase of the node's secret keys. No node may run meanwhile.
    Passphrase {
        /// Read the new passphrase from this file, instead of asking at the terminal.
        #[arg(long, value_name = "FILE", conflicts_with = "remove")]
        new_file: Option<PathBuf>,
        /// Take the passphrase away: a process that can read the files has the keys.
        #[arg(long)]
        remove: bool,
    },
    /// Accept that a quarantined chain is lost, keep it aside, and begin a new one that names it.
    Accept {
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// A home, a copied folder of a chain, or the URL where a chain is published [default: the home]. Without the journal, what
    /// is published is verified.
    #[arg(value_name = "DIR|URL")]
    pub(crate) directory: Option<PathBuf>,
    /// The public keys: a file as `chain key` prints it, or one such line; may be given twice. Needed for a copied folder
    /// without its home.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Vec<String>,
    /// A pinned head to hold the chain against [default: that of the home].
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Option<PathBuf>,
    /// A checkpoint up to which you verified the log before: what it covers is not read again.
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) from: Option<PathBuf>,
    /// Leave out the sealed contents in the vault, where they were lost or not copied.
    #[arg(long)]
    pub(crate) without_contents: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Prune {
    /// Keep entries of this time and later: 2026-11-21 or 2026-11-21T02:08:19Z, in UTC.
    #[arg(long, value_name = "DATE", value_parser = time, conflicts_with = "keep")]
    pub(crate) before: Option<Timestamp>,
    /// Keep the entries of so many days [default: `keep` under `[chain]` in ephor.toml, or 180]. It cannot be less.
    #[arg(long, value_name = "DAYS")]
    pub(crate) keep: Option<Retention>,
    /// Only say what would go, and what stays and why.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Prove {
    /// The entry, by the number with which `chain log` shows it.
    #[arg(value_name = "SEQ", value_parser = place)]
    pub(crate) seq: u64,
    /// A home, or a copied folder of a chain [default: the home].
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// The proof, or - for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The public keys of the log: a file as `chain key` prints it, or one such line; may be given several times.
    #[arg(long, value_name = "KEY", required = true)]
    pub(crate) key: Vec<String>,
    /// Changes of keys, as `chain key --changes` prints them: keys that those of --key lead to count as well.
    #[arg(long, value_name = "FILE")]
    pub(crate) changes: Option<PathBuf>,
    /// The key of a witness whose word counts for you: a file of such lines, or one; may be given several times.
    #[arg(long, value_name = "KEY")]
    pub(crate) witness: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Export {
    /// A home, or a copied folder of a chain [default: the home].
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The first entry [default: the first there is].
    #[arg(long, value_name = "SEQ", value_parser = place)]
    pub(crate) from: Option<u64>,
    /// The last entry [default: the last there is].
    #[arg(long, value_name = "SEQ", value_parser = place)]
    pub(crate) to: Option<u64>,
    /// With each entry, the hashes that prove it under the checkpoint of the first line.
    #[arg(long)]
    pub(crate) proofs: bool,
    /// The public keys, for a copied folder without its home. Those from before a change of keys will do.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ChainLog {
    /// Only those of this session.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<SessionId>,
    /// Only those of this process.
    #[arg(long, value_name = "N")]
    pub(crate) pid: Option<u64>,
    /// Only those of this call.
    #[arg(long, value_name = "N")]
    pub(crate) call: Option<u64>,
    /// Only those of this kind, such as verdict or turn_end.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Only those since this time: 2026-11-21 or 2026-11-21T02:08:19Z, in UTC.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) since: Option<Timestamp>,
    /// Only the newest so many of those.
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Print JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also print private content, with the keys of this home.
    #[arg(long)]
    pub(crate) content: bool,
    /// The entries of the chain that was moved aside into DIR, as `ephor restore` and `ephor chain accept` do.
    #[arg(long, value_name = "DIR")]
    pub(crate) of: Option<PathBuf>,
}

fn change(text: &str) -> Result<Change, String> {
    let wrong = || "an amount is a number, or + and a number".to_owned();
    match text.strip_prefix('+') {
        Some(more) => more.parse().map(Change::By).map_err(|_| wrong()),
        None => text.parse().map(Change::To).map_err(|_| wrong()),
    }
}

fn seconds(text: &str) -> Result<Change, String> {
    change(text).map(|change| scaled(change, 1000))
}

const fn scaled(change: Change, by: u64) -> Change {
    match change {
        Change::To(all) => Change::To(all.saturating_mul(by)),
        Change::By(more) => Change::By(more.saturating_mul(by)),
    }
}

/// An amount of money in whole cents or finer, without going through fractions that are not exact.
fn money(text: &str) -> Result<Change, String> {
    let wrong = || "an amount of money looks like 5 or +0.50".to_owned();
    let (more, digits) = text.strip_prefix('+').map_or((false, text), |digits| (true, digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if part.len() > 6 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let micros: u64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    let amount = whole.saturating_mul(1_000_000).saturating_add(micros);
    Ok(if more { Change::By(amount) } else { Change::To(amount) })
}

fn place(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "an entry is named by its number, as `ephor chain log` shows it in the first column".to_owned())
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "a time looks like 2026-11-21 or 2026-11-21T02:08:19Z".to_owned())
}

/// A tool that is pinned, with or without where it may act.
fn pin(text: &str) -> Result<Pin, String> {
    let (tool, target) = text.split_once('=').map_or((text, None), |(tool, target)| (tool, Some(target)));
    let tool = tool.parse().map_err(|error| format!("{error}"))?;
    if target == Some("") {
        return Err(format!("`{text}` names no target; `{tool}` alone may act anywhere"));
    }
    Ok(Pin { tool, targets: target.map(|target| vec![target.to_owned()]) })
}
