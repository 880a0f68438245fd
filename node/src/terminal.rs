//! The terminal: where a person reads and answers.

use std::{
    fs::{File, OpenOptions},
    io::{self, IsTerminal, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ephor_kernel::Question;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr},
};
use zeroize::Zeroizing;

/// Text that a terminal shows as it is: nothing in it moves the cursor, rings or turns the direction of writing round.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if is_harmless(c) { c } else { '\u{FFFD}' }).collect()
}

fn is_harmless(c: char) -> bool {
    let turns = matches!(c, '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}');
    matches!(c, '\n' | '\t') || !(c.is_control() || turns)
}

/// What is said when standard output takes nothing more.
pub(crate) const UNWRITTEN: &str = "standard output cannot be written";

/// Writes to standard output at once. A reader that closed the pipe has had enough, which is no error.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Whether a person can be asked: there is a terminal of this process, whatever its input and output are.
pub(crate) fn has_terminal() -> bool {
    terminal().is_ok()
}

fn terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// Whether standard error is shown to a person, so that colours help.
pub(crate) fn is_shown() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Asks for a `yes` at the terminal; false if there is none or the answer is another.
pub(crate) fn confirm(words: &str) -> io::Result<bool> {
    let Ok(mut terminal) = terminal() else { return Ok(false) };
    write!(terminal, "{}\nGo on? [yes/no] ", plain(words))?;
    terminal.flush()?;
    let never = AtomicBool::new(false);
    let line = read_line(&mut terminal, Duration::from_secs(300), &never).unwrap_or_default();
    Ok(line.as_deref().map(str::trim) == Some("yes"))
}

/// Asks for a secret at the terminal, which does not show it. Nothing if there is no terminal.
pub(crate) fn ask_secret(words: &str) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let Ok(mut terminal) = terminal() else { return Ok(None) };
    let _quiet = Quiet::on(&terminal)?;
    write!(terminal, "{words}: ")?;
    terminal.flush()?;
    let mut line = Zeroizing::new(Vec::with_capacity(256));
    let mut byte = Zeroizing::new([0u8]);
    loop {
        if terminal.read(&mut *byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match *byte {
            [b'\n'] => break,
            // A vector that grows leaves a copy of what it held behind.
            [_] if line.len() == line.capacity() => return Err(io::ErrorKind::InvalidData.into()),
            [other] => line.push(other),
        }
    }
    writeln!(terminal)?;
    Ok(Some(line))
}

/// While this is there, the terminal does not show what is typed.
struct Quiet {
    terminal: File,
    before: Termios,
}

impl Quiet {
    fn on(terminal: &File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal: terminal.try_clone()?, before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _gone = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// A question at the terminal. Dropping it stops waiting.
pub(crate) struct Asking(Arc<AtomicBool>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asks the person at the terminal; `None` if no answer came in `time`. Where nobody can answer, that is a no.
pub(crate) async fn ask(question: Question, time: Duration) -> Option<bool> {
    let over = Arc::new(AtomicBool::new(false));
    let _asking = Asking(over.clone());
    let answer = tokio::task::spawn_blocking(move || ask_blocking(&question, time, &over));
    match answer.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Some(false),
    }
}

fn ask_blocking(question: &Question, time: Duration, over: &AtomicBool) -> io::Result<Option<bool>> {
    let mut terminal = terminal()?;
    // What was typed before the question was there is no answer to it.
    tcflush(&terminal, QueueSelector::IFlush)?;
    write!(terminal, "{}", words(question, time))?;
    for _ in 0..3 {
        write!(terminal, "Permit it? [y/n] ")?;
        terminal.flush()?;
        match read_line(&mut terminal, time, over)?.as_deref().map(str::trim) {
            None => {
                if !over.load(Ordering::Relaxed) {
                    writeln!(terminal, "\nNo answer: refused.")?;
                }
                return Ok(None);
            }
            Some("y" | "Y" | "yes") => return Ok(Some(true)),
            Some("n" | "N" | "no") => return Ok(Some(false)),
            Some(_) => writeln!(terminal, "Please answer y or n.")?,
        }
    }
    Ok(Some(false))
}

fn words(question: &Question, time: Duration) -> String {
    let effects: Vec<String> =
        question.verdict.effects.components().iter().map(|(name, value)| format!("{name} {}", value.value())).collect();
    format!(
        "\nThe agent wants to run {} on\n  {}\nIt was deferred: {}.\nEffects, per mille: {}.\nIt is refused in {} s.\n",
        question.tool,
        plain(&question.arguments),
        question.verdict.why(),
        effects.join(", "),
        time.as_millis().div_ceil(1000)
    )
}

/// One line, waited for in short steps so that the wait can end.
fn read_line(terminal: &mut File, time: Duration, over: &AtomicBool) -> io::Result<Option<String>> {
    const STEP: Duration = Duration::from_millis(100);
    let mut line = Vec::new();
    let mut left = time;
    while !over.load(Ordering::Relaxed) && !left.is_zero() {
        let step = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let ready = poll(&mut [PollFd::new(&*terminal, PollFlags::IN)], Some(&step))?;
        if ready == 0 {
            left = left.saturating_sub(STEP);
            continue;
        }
        let mut byte = [0];
        if terminal.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match byte {
            [b'\n'] => return Ok(Some(String::from_utf8_lossy(&line).into_owned())),
            [other] => line.push(other),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn nothing_moves_the_cursor_or_turns_the_writing_round() {
        assert_eq!(plain("a\x1b[2Jb\u{202E}c\rd\ne"), "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}d\ne");
    }
}
