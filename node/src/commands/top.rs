//! `ephor top`: the running node on the full screen.

use std::{
    io::IsTerminal,
    pin::pin,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use ephor_record::HoldKind;
use ratatui::{
    DefaultTerminal, Frame,
    crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
    layout::{Constraint, Layout},
    style::{Modifier, Style},
    text::Line,
    widgets::Paragraph,
};

use super::{budget::fullest, no_node, ps};
use crate::{client::Client, home::Home, operation::Survey, terminal::plain};

/// Between two looks at the node.
const LOOK: Duration = Duration::from_secs(1);

/// Between two looks at the keys.
const KEYS: Duration = Duration::from_millis(50);

/// The most calls in flight that are shown.
const FLIGHTS: usize = 8;

pub(crate) async fn top(home: &Home) -> anyhow::Result<ExitCode> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("`ephor top` needs a terminal; `ephor ps --watch --json` is for programs");
    }
    let mut client = Client::reach_running(home).await?.with_context(|| no_node(home))?;
    let survey = ps::survey(&mut client).await?;
    let mut look = Look { survey, since: Instant::now(), appends: 0, from: 0 };
    // It restores the terminal also when this panics.
    let mut screen = ratatui::try_init().context("the terminal cannot be taken")?;
    let watched = watch(&mut screen, &mut client, &mut look).await;
    ratatui::restore();
    watched.map(|()| ExitCode::SUCCESS)
}

/// What is on the screen.
struct Look {
    survey: Survey,
    since: Instant,
    /// Entries a second since the look before.
    appends: u64,
    /// The first line of the tree that is shown.
    from: u16,
}

impl Look {
    fn take(&mut self, survey: Survey) {
        let (more, passed) = (survey.entries.saturating_sub(self.survey.entries), self.since.elapsed());
        let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX).max(1);
        self.appends = more.saturating_mul(1000) / millis;
        (self.survey, self.since) = (survey, Instant::now());
    }
}

/// What a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    Leave,
    Up,
    Down,
    Nothing,
}

async fn watch(screen: &mut DefaultTerminal, client: &mut Client, look: &mut Look) -> anyhow::Result<()> {
    loop {
        screen.draw(|frame| draw(frame, look)).context("the terminal cannot be written")?;
        let rest = (look.since + LOOK).saturating_duration_since(Instant::now());
        let mut asked = pin!(async {
            tokio::time::sleep(rest).await;
            ps::survey(client).await
        });
        // A node that does not answer keeps nobody from leaving.
        let survey = loop {
            tokio::select! {
                survey = &mut asked => break survey?,
                () = tokio::time::sleep(KEYS) => {}
            }
            if keys(screen, look)? {
                return Ok(());
            }
        };
        look.take(survey);
    }
}

/// Does what the keys ask for that were pressed by now; true to leave.
fn keys(screen: &mut DefaultTerminal, look: &mut Look) -> anyhow::Result<bool> {
    while event::poll(Duration::ZERO).context("the terminal cannot be read")? {
        match wish(&event::read().context("the terminal cannot be read")?) {
            Wish::Leave => return Ok(true),
            Wish::Up => look.from = look.from.saturating_sub(1),
            Wish::Down => look.from = look.from.saturating_add(1),
            Wish::Nothing => {}
        }
        screen.draw(|frame| draw(frame, look)).context("the terminal cannot be written")?;
    }
    Ok(false)
}

fn wish(event: &Event) -> Wish {
    let Event::Key(key) = event else { return Wish::Nothing };
    if key.kind == KeyEventKind::Release {
        return Wish::Nothing;
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Wish::Leave,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Wish::Leave,
        KeyCode::Up | KeyCode::Char('k') => Wish::Up,
        KeyCode::Down | KeyCode::Char('j') => Wish::Down,
        _ => Wish::Nothing,
    }
}

/// Everything, as large as the terminal is. Nothing depends on colour.
fn draw(frame: &mut Frame<'_>, look: &Look) {
    let flights = look.survey.flights.len().min(FLIGHTS);
    let rows = u16::try_from(flights).unwrap_or(0).saturating_add(1);
    let parts = [Constraint::Length(3), Constraint::Min(3), Constraint::Length(rows), Constraint::Length(1)];
    let [head, tree, calls, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(heading(look)), head);
    let lines: Vec<Line<'_>> =
        ps::tree(&look.survey.processes).lines().map(|line| Line::raw(line.to_owned())).collect();
    frame.render_widget(Paragraph::new(lines).scroll((look.from, 0)), tree);
    frame.render_widget(Paragraph::new(in_flight(&look.survey)), calls);
    let keys = Line::styled("q leaves, arrows scroll", Style::new().add_modifier(Modifier::DIM));
    frame.render_widget(Paragraph::new(keys), foot);
}

fn heading(look: &Look) -> Vec<Line<'static>> {
    let survey = &look.survey;
    let waiting: usize = survey.processes.iter().map(|process| process.info.waiting).sum();
    let longest = survey.processes.iter().map(|process| process.info.waiting).max().unwrap_or(0);
    let held = |kind| survey.processes.iter().filter(|process| process.held == Some(kind)).count();
    let (suspended, stopped) = (held(HoldKind::Suspended), held(HoldKind::Stopped));
    let out = held(HoldKind::Spent);
    let spent = survey.processes.iter().filter_map(|process| process.account.as_ref()).map(fullest).max().unwrap_or(0);
    let spent = ps::used(spent);
    vec![
        Line::styled(format!("ephor  {}", survey.time), Style::new().add_modifier(Modifier::BOLD)),
        Line::raw(format!(
            "{} processes   {} entries   {} appends/s   {} calls in flight",
            survey.processes.len(),
            survey.entries,
            look.appends,
            survey.flights.len()
        )),
        Line::raw(format!(
            "{suspended} suspended   {stopped} stopped   {out} out of budget   {waiting} messages wait (longest queue {longest})   {} dead letters   {} schedules   \
             fullest budget {spent}",
            survey.dead_letters, survey.schedules
        )),
    ]
}

fn in_flight(survey: &Survey) -> Vec<Line<'static>> {
    let head = Line::styled("CALLS IN FLIGHT", Style::new().add_modifier(Modifier::BOLD));
    let flights = survey.flights.iter().take(FLIGHTS).map(|flight| {
        let (call, pid, target) = (flight.call, flight.pid, plain(&flight.target));
        Line::raw(format!("  call {call}  process {pid}  {target}  {} ms", flight.running_ms))
    });
    std::iter::once(head).chain(flights).collect()
}

#[cfg(test)]
mod tests {
    use super::{Look, Wish, draw, wish};
    use crate::operation::Survey;
    use ephor_base::Timestamp;
    use ratatui::{
        Terminal,
        backend::TestBackend,
        crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers},
    };

    fn survey(entries: u64) -> Survey {
        Survey {
            time: Timestamp(0),
            entries,
            processes: Vec::new(),
            flights: Vec::new(),
            more: false,
            holds: Vec::new(),
            dead_letters: 2,
            schedules: 1,
        }
    }

    #[test]
    fn every_size_of_a_terminal_is_drawn() {
        let look = Look { survey: survey(7), since: std::time::Instant::now(), appends: 3, from: 0 };
        for (width, height) in [(80, 24), (200, 60), (20, 5), (1, 1), (3, 2)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &look)).unwrap();
        }
        let mut terminal = Terminal::new(TestBackend::new(100, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &look)).unwrap();
        let shown = format!("{}", terminal.backend());
        assert!(shown.contains("7 entries   3 appends/s") && shown.contains("2 dead letters"), "{shown}");
    }

    #[test]
    fn q_and_ctrl_c_leave_and_a_letter_does_not() {
        let key = |code, modifiers| wish(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Wish::Leave);
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Wish::Leave);
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), Wish::Nothing);
        assert_eq!(wish(&Event::Resize(1, 1)), Wish::Nothing);
    }
}
