//! What a model is told of a command.

use ephor_base::{Outcome, Product, ToolAnswer};
use ephor_confine::{Captured, End, Ended};
use ephor_kernel::Refusal;

use super::{Applied, changes::Pending};

impl Applied {
    /// What the call came to that was to apply `pending`.
    pub(super) fn of(outcome: Result<Outcome, Refusal>, pending: &Pending) -> Self {
        match outcome {
            Ok(Outcome::Done(Product::Tool(ToolAnswer { failed: false, .. }))) => Self::Done(pending.summary()),
            Ok(Outcome::Done(Product::Tool(ToolAnswer { text, .. }))) => Self::Not(text),
            Ok(Outcome::Failed(failure)) => Self::Not(failure.message().to_owned()),
            Ok(_) => Self::Not("the call was cut off".to_owned()),
            Err(refusal) => Self::Not(refusal.to_string()),
        }
    }
}

/// The output, how the command ended, and what became of its changes.
pub(super) fn told(ended: &Ended, applied: &Applied) -> ToolAnswer {
    let mut text = String::new();
    part(&mut text, "", &ended.stdout);
    part(&mut text, "[standard error]\n", &ended.stderr);
    let end = match ended.end {
        End::Exited(status) => format!("exit status {status}"),
        End::Killed(signal) => format!("a signal ended it ({signal})"),
        End::Deadline => "it was ended at its time limit; `seconds` sets another".to_owned(),
        End::Stopped => "it was cancelled".to_owned(),
        End::OutOfMemory => "it used up the memory that it may have".to_owned(),
    };
    let (failed, changes) = match applied {
        Applied::Nothing => (false, "no file was changed".to_owned()),
        Applied::Done(summary) => (false, summary.clone()),
        Applied::Not(why) => (true, format!("none of its changes is in the workspace: {why}")),
    };
    text.push_str(&format!("[{end}; {changes}]\n"));
    ToolAnswer { text, failed }
}

fn part(text: &mut String, title: &str, output: &Captured) {
    if output.head.is_empty() {
        return;
    }
    text.push_str(title);
    text.push_str(&String::from_utf8_lossy(&output.head));
    if output.left_out > 0 {
        let left_out = output.left_out;
        text.push_str(&format!(
            "\n[{left_out} bytes are left out here; write the output to a file to read it in parts]\n"
        ));
    }
    text.push_str(&String::from_utf8_lossy(&output.tail));
    if !text.ends_with('\n') {
        text.push('\n');
    }
}
