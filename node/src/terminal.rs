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

use anyhow::Context;
use ephor_base::{Digest, legible};
use ephor_kernel::Question;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr},
};
use zeroize::Zeroizing;

/// A name or value of others, for a place within a line: nothing in it ends the line or is hidden.
pub(crate) fn plain(text: &str) -> String {
    legible::line(text)
}

/// The most characters of a value that is shown within a line.
const VALUE: usize = 300;

/// A value of others, for a place within a line: one that is long is cut in the middle, with how long it is and its digest.
pub(crate) fn bounded(text: &str) -> String {
    let shown: Vec<char> = plain(text).chars().collect();
    if shown.len() <= VALUE {
        return shown.into_iter().collect();
    }
    let (front, back) = (VALUE * 2 / 3, VALUE / 3);
    let head: String = shown.iter().take(front).collect();
    let tail: String = shown.iter().skip(shown.len().saturating_sub(back)).collect();
    format!("{head} … {} bytes, sha256 {} … {tail}", text.len(), Digest::of(text.as_bytes()))
}

/// What is said when standard output takes nothing more.
pub(crate) const UNWRITTEN: &str = "standard output cannot be written";

/// Writes to standard output at once, with what a terminal would obey or hide spelt out; JSON stays the same JSON. A reader
/// that closed the pipe has had enough, which is no error.
pub(crate) fn write(text: &str) -> io::Result<()> {
    write_exactly(&legible::text(text))
}

/// Writes a document to standard output: to a file as it is, and to a terminal as [`write()`] does.
pub(crate) fn write_document(text: &str) -> io::Result<()> {
    if io::stdout().is_terminal() { write(text) } else { write_exactly(text) }
}

/// Writes a patch to standard output: to a file as it is, and to a terminal with what it would obey spelt out, and with colours.
pub(crate) fn write_patch(patch: &str) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        return write_exactly(patch);
    }
    let is_plain = std::env::var_os("NO_COLOR").is_some();
    let row = |line: &str| {
        let colour = match line.chars().next().filter(|_| !is_plain) {
            Some('+') => "\x1b[32m",
            Some('-') => "\x1b[31m",
            Some('@') => "\x1b[36m",
            _ => return legible::text(line) + "\n",
        };
        format!("{colour}{}\x1b[0m\n", legible::text(line))
    };
    write_exactly(&patch.split_terminator('\n').map(row).collect::<String>())
}

fn write_exactly(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes line after line to standard output, as many as its reader wants: one that closed the pipe has had enough, wherever
/// that shows.
///
/// # Errors
/// The first line that could not be had, or why standard output takes nothing more.
pub(crate) fn write_lines(lines: impl IntoIterator<Item = anyhow::Result<String>>) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut failed = None;
    let mut written = Ok(());
    for line in lines {
        match line {
            Ok(line) => written = writeln!(out, "{}", legible::text(&line)),
            Err(error) => failed = Some(error),
        }
        if written.is_err() || failed.is_some() {
            break;
        }
    }
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context(UNWRITTEN),
        _ => failed.map_or(Ok(()), Err),
    }
}

/// Tells the person something on standard error. What is told there is never what the command was for, so a command goes on
/// where nobody can read it any more. What a terminal would obey or hide is spelt out.
pub(crate) fn tell(text: &str) {
    tell_exactly(&legible::text(text));
}

/// Tells a line that is beside the point.
pub(crate) fn tell_dimly(line: &str) {
    tell_exactly(&format!("\x1b[2m{}\x1b[0m\n", legible::text(line)));
}

/// Tells a line in place of the one before it.
pub(crate) fn tell_over(line: &str) {
    tell_exactly(&format!("\r{:<79}\r", plain(line)));
}

fn tell_exactly(text: &str) {
    let _unread = io::stderr().lock().write_all(text.as_bytes());
}

/// The exit status of a command that the person interrupted, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whether a person at the terminal ended a question with Ctrl-C.
pub(crate) fn was_interrupted(error: &anyhow::Error) -> bool {
    let is = |cause: &io::Error| cause.kind() == io::ErrorKind::Interrupted;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is))
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
    write!(terminal, "{}\nGo on? [yes/no] ", legible::text(words))?;
    terminal.flush()?;
    let never = AtomicBool::new(false);
    let line = read_line(&mut terminal, Duration::from_secs(300), &never).unwrap_or_default();
    Ok(line.as_deref().map(str::trim) == Some("yes"))
}

/// Asks for a secret at the terminal, which does not show it. Nothing if there is no terminal.
pub(crate) fn ask_secret(words: &str) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let Ok(mut terminal) = terminal() else { return Ok(None) };
    let _quiet = Quiet::on(&terminal)?;
    write!(terminal, "{}: ", plain(words))?;
    terminal.flush()?;
    let mut line = Zeroizing::new(Vec::with_capacity(256));
    let mut byte = Zeroizing::new([0u8]);
    loop {
        if terminal.read(&mut *byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match *byte {
            [b'\n'] => break,
            [INTERRUPT | QUIT] => {
                writeln!(terminal)?;
                return Err(io::Error::new(io::ErrorKind::Interrupted, "it was interrupted"));
            }
            // A vector that grows leaves a copy of what it held behind.
            [_] if line.len() == line.capacity() => return Err(io::ErrorKind::InvalidData.into()),
            [other] => line.push(other),
        }
    }
    writeln!(terminal)?;
    Ok(Some(line))
}

/// What Ctrl-C and Ctrl-\ are as bytes.
const INTERRUPT: u8 = 0x03;
const QUIT: u8 = 0x1C;

/// While this is there, the terminal does not show what is typed, and makes no signals of it.
struct Quiet {
    terminal: File,
    before: Termios,
}

impl Quiet {
    fn on(terminal: &File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        // A signal would end the process and leave the terminal like this; as the end of a line, Ctrl-C is an answer like any other.
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
        quiet.special_codes[SpecialCodeIndex::VEOL2] = QUIT;
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
    // The text fits the screen and ends with what decides; behind it stands nothing that others have written.
    write!(terminal, "\n{}It is refused in {} s.\n", question.text.as_str(), time.as_millis().div_ceil(1000))?;
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
