//! How a turn looks: the answer on standard output, everything else on standard error; or all of it as JSON lines.

use std::io;

use anyhow::Context;
use ephor_base::{ActionKind, CallId, Reply, SessionId};
use ephor_kernel::{Seen, TurnState};
use ephor_record::HoldKind;
use serde_json::json;

use crate::{
    failure,
    protocol::Answer,
    terminal::{self, is_shown},
};

/// How much of a tool's arguments and result is worth a line.
const LINE: usize = 100;

/// What a person is told when the agent is held, or goes on.
const fn held(by: Option<HoldKind>) -> &'static str {
    match by {
        None => "the agent goes on",
        Some(HoldKind::Suspended) => "an operator suspended the agent; `ephor ps` shows how it goes on",
        Some(HoldKind::Spent) => {
            "the budget of the agent is spent: it takes up nothing more, and ends with its session; `[budget]` in ephor.toml says what a session may use"
        }
        Some(HoldKind::Stopped) => "an operator stopped the agent",
    }
}

/// The code of a refusal of a deferred call where no person could be asked.
pub(super) const NOBODY: &str = "no-approver-is-here";
/// The code of a refusal because of conduct, which only an approver ends.
pub(super) const SUSPENDED: &str = "seat-is-suspended-for-its-conduct";

/// Where a turn is shown.
pub(super) struct Screen {
    json: bool,
    colour: bool,
    /// Why the answer could not be written, if it could not.
    unwritten: Option<io::Error>,
    /// The text shown so far of the model call under way.
    streamed: String,
    /// Which call that is.
    streaming: Option<CallId>,
    session: Option<SessionId>,
    reply: Option<Reply>,
    /// Why the model call before failed, until it is clear whether it is made again.
    failure: Option<String>,
}

impl Screen {
    pub(super) fn new(json: bool) -> Self {
        Self {
            json,
            colour: is_shown(),
            unwritten: None,
            streamed: String::new(),
            streaming: None,
            session: None,
            reply: None,
            failure: None,
        }
    }

    /// Whether all of it was written; a turn whose answer is lost did not succeed.
    pub(super) fn written(self) -> anyhow::Result<()> {
        self.unwritten.map_or(Ok(()), Err).context(terminal::UNWRITTEN)
    }

    /// A key that lies in the environment is never a reason to use it; but the person who put it there may wonder.
    pub(super) fn mention_found_key(&mut self, model: &str) {
        let usual = ["openai", "anthropic", "gemini"].map(|name| (name, format!("{}_API_KEY", name.to_uppercase())));
        let is_there = |variable: &str| std::env::var_os(variable).is_some_and(|key| !key.is_empty());
        let needs_none = model.starts_with("builtin/") || model.starts_with("script:");
        if let Some((name, variable)) = usual.iter().find(|(_, variable)| needs_none && is_there(variable)) {
            self.note(&format!("{variable} is set and not used; --model {name}/NAME would use it"));
        }
    }

    /// The first line: who answers.
    pub(super) fn opened(&mut self, opened: &Answer) {
        let Answer::Opened { session, pid, model, host, policy } = opened else { return };
        self.session = Some(*session);
        if self.json {
            let pid = pid.map(|pid| pid.0);
            self.line(&json!({"event": "opened", "session": session, "pid": pid, "model": model, "host": host, "policy": policy}));
        } else {
            let process = pid.map(|pid| format!(" · process {pid}")).unwrap_or_default();
            self.dim(&format!("{model}{process}"));
        }
    }

    /// The first line for an operator who comes back.
    pub(super) fn attached(&mut self, attached: &Answer) {
        let Answer::Attached { session, pid, works, .. } = attached else { return };
        self.session = Some(*session);
        if self.json {
            let pid = pid.map(|pid| pid.0);
            self.line(&json!({"event": "attached", "session": session, "pid": pid, "works": works}));
        } else {
            let process = pid.map(|pid| format!(" · process {pid}")).unwrap_or_default();
            let works = if *works { " · it works" } else { "" };
            self.dim(&format!("session {session}{process}{works}"));
        }
    }

    /// What is put back.
    pub(super) fn undoing(&mut self, undoing: &Answer) {
        let Answer::Undoing { files, left, message } = undoing else { return };
        if self.json {
            return self.line(&json!({"event": "undoing", "files": files, "left": left, "message": message}));
        }
        super::undo::lines(files, left).iter().for_each(|line| self.dim(line));
    }

    /// A line for the person, beside the answer.
    pub(super) fn note(&mut self, text: &str) {
        if self.json {
            self.line(&json!({"event": "note", "text": text}));
        } else {
            self.dim(text);
        }
    }

    /// The plan that a person is asked about.
    pub(super) fn plan(&mut self, plan: anyhow::Result<String>) {
        self.break_line();
        match plan {
            Ok(plan) => plan.lines().for_each(|line| self.note(line)),
            Err(error) => self.note(&format!("the plan cannot be shown: {error:#}")),
        }
    }

    /// What went wrong. Words for a person go to standard error in any case; `main` writes them.
    pub(super) fn error(&mut self, error: &anyhow::Error) {
        if self.json {
            self.line(&json!({"event": "error", "error": failure::object(error)}));
        }
    }

    /// Whatever else a node says.
    pub(super) fn other(&mut self, answer: &Answer) {
        if let (true, Answer::Accepted { message }) = (self.json, answer) {
            self.line(&json!({"event": "accepted", "message": message}));
        }
    }

    /// Something seen.
    pub(super) fn seen(&mut self, seen: &Seen) {
        if self.json {
            return self.line(&serde_json::to_value(seen).unwrap_or_default());
        }
        if let Seen::State { state: TurnState::Retrying { wait_ms, next, of } } = seen {
            let (why, wait) = (self.failure.take().unwrap_or_default(), wait_ms.div_ceil(1000));
            return self.dim(&format!("✗ retrying in {wait} s ({next} of {of}): {why}"));
        }
        if let Some(failure) = self.failure.take() {
            self.dim(&format!("✗ {failure}"));
        }
        match seen {
            Seen::State { .. } => {}
            Seen::Started { action: ActionKind::Tool, target, arguments, .. } => {
                self.break_line();
                self.dim(&format!("▸ {target} {}", short(arguments)));
            }
            Seen::Started { .. } => {}
            Seen::Text { call, text } => self.text(*call, text),
            Seen::Progress { text, .. } => self.dim(&format!("  {}", short(text))),
            Seen::Deferred(question) => {
                self.break_line();
                self.dim(&format!("? {} waits for you: {}", question.tool, question.verdict.why()));
                self.dim(&format!("  elsewhere: ephor approve {0}, or ephor refuse {0}", question.ticket));
            }
            Seen::Refused { target, why, reasons, .. } => {
                self.break_line();
                self.dim(&format!("✗ {target} refused: {}", short(why)));
                if reasons.iter().any(|code| code == NOBODY) {
                    self.dim(&format!("  Use `--wait` or `--allow {target}`, or run it at a terminal to be asked."));
                }
                if let (true, Some(session)) = (reasons.iter().any(|code| code == SUSPENDED), self.session) {
                    self.dim(&format!(
                        "  Too many of its calls were refused. An approver ends that: ephor reinstate {session}"
                    ));
                }
            }
            Seen::Ended { action: ActionKind::Tool, end, text, .. } => {
                self.dim(&format!("  {end}: {}", short(last_line(text))));
            }
            // The person who cancelled it knows.
            // Only a failure has a text. What to do about it stands at the end.
            Seen::Ended { action: ActionKind::Model, end, text, .. } if !text.is_empty() => {
                self.break_line();
                self.failure = Some(format!("{end}: {}", text.replace('\n', " ")));
            }
            Seen::Ended { .. } => {}
            Seen::Missed { count } => {
                self.break_line();
                self.dim(&format!(
                    "… {count} lines were not shown here, for they came too fast; `ephor chain log` has what was done"
                ));
            }
            Seen::Restarted { reason } => self.dim(&format!("↻ {reason}; its supervisor starts it again")),
            Seen::Held { by } => {
                self.break_line();
                self.dim(held(*by));
            }
            Seen::Reply(reply) => self.reply(reply),
            // The error that ends the run says so.
            Seen::Over { .. } => {}
            Seen::TurnEnded { size, root } => self.footer(*size, &root.to_string()),
        }
    }

    fn text(&mut self, call: CallId, text: &str) {
        if self.streaming != Some(call) {
            self.break_line();
            self.streamed.clear();
            self.streaming = Some(call);
        }
        self.streamed.push_str(text);
        self.out(text);
    }

    /// Shows what of the reply was not shown while it came.
    fn reply(&mut self, reply: &Reply) {
        let rest = match reply.text.strip_prefix(self.streamed.as_str()) {
            Some(rest) => rest,
            None => {
                self.break_line();
                &reply.text
            }
        };
        self.out(rest);
        if !reply.text.ends_with('\n') {
            self.out("\n");
        }
        self.streamed.clear();
        self.streaming = None;
        self.reply = Some(reply.clone());
    }

    /// The figures of the turn, and where the chain stands.
    fn footer(&mut self, size: u64, root: &str) {
        let Some(reply) = &self.reply else { return };
        let report = &reply.report;
        let seqs: Vec<u64> = reply.receipts.iter().map(|receipt| receipt.seq.0).collect();
        let receipts = match (seqs.first(), seqs.last()) {
            (Some(first), Some(_)) if seqs.len() == 1 => format!("1 receipt (entry {first})"),
            (Some(first), Some(last)) => format!("{} receipts (entries {first} to {last})", seqs.len()),
            _ => "no receipts".to_owned(),
        };
        // Two numbers of 64 bits always have a sum here.
        let tokens = u128::from(report.input_tokens) + u128::from(report.output_tokens);
        let (cycles, time) = (report.cycles, seconds(report.duration_ms));
        self.dim(&format!(
            "— {} · {} · {} · {tokens} tokens · {time} · {receipts} · chain {size} entries, root {}",
            reply.end.code(),
            counted(cycles, "cycle"),
            counted(report.tool_calls, "tool"),
            root.get(..16).unwrap_or(root),
        ));
    }

    /// Ends a line of the answer that is still open, so that notes stand alone.
    fn break_line(&mut self) {
        if !self.streamed.is_empty() && !self.streamed.ends_with('\n') {
            self.out("\n");
        }
        self.streamed.clear();
    }

    fn line(&mut self, value: &serde_json::Value) {
        self.out(&format!("{value}\n"));
    }

    /// The turn goes on without a reader: what it does is on the record.
    fn out(&mut self, text: &str) {
        if let (None, Err(error)) = (&self.unwritten, terminal::write(text)) {
            self.unwritten = Some(error);
        }
    }

    fn dim(&self, text: &str) {
        if self.colour { terminal::tell_dimly(text) } else { terminal::tell(&format!("{text}\n")) }
    }
}

fn counted(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or_default()
}

fn short(text: &str) -> String {
    let line = text.replace('\n', " ");
    if line.chars().count() <= LINE {
        return line;
    }
    line.chars().take(LINE).chain(['…']).collect()
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:02} s", milliseconds / 1000, milliseconds % 1000 / 10)
}
