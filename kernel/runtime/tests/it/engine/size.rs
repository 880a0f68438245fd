//! A supervisor of very many children does no more for one of them than one of few.

use ephor_base::ExitReason;
use ephor_runtime::supervisor::{Command, Event, Flags, Intensity, Request, Restart, Shutdown, Strategy, Supervisor};

use super::{LONG, crash, spec};

const MANY: u32 = 300_000;

/// Starts them, kills them all, lets them be restarted, and stops them; every step must be small for this to end.
fn storm(strategy: Strategy) {
    let mut template = spec("kind", Restart::Permanent);
    template.shutdown = Shutdown::Infinite;
    let flags = Flags { strategy, ..Flags::one_for_one(Intensity { restarts: usize::MAX, period: LONG }) };
    let is_dynamic = strategy == Strategy::Dynamic;
    let mut engine = Supervisor::new(flags, if is_dynamic { vec![template.clone()] } else { Vec::new() }, 0).unwrap();
    assert_eq!(engine.step(LONG, Event::Boot), [Command::Ready]);
    let mut ids = Vec::new();
    for n in 0..MANY {
        template.name = n.to_string().as_str().into();
        let request = if is_dynamic { Request::StartDynamic } else { Request::Start(template.clone()) };
        let commands = engine.step(LONG, Event::Asked(0, request));
        let [_, Command::Start(id)] = commands[..] else { panic!("{commands:?}") };
        assert_eq!(engine.step(LONG, Event::Started(id)).len(), 1);
        ids.push(id);
    }
    // All exits arrive while the first restart is under way.
    let mut next = engine.step(LONG, Event::Exited(ids[0], ExitReason::Killed));
    for id in &ids[1..] {
        assert_eq!(engine.step(LONG, Event::Exited(*id, crash())), []);
    }
    let mut restarted = 0;
    while let Some(Command::Start(id)) = next.last().cloned() {
        next = engine.step(LONG, Event::Started(id));
        restarted += 1;
    }
    assert_eq!((restarted, engine.len()), (MANY, ids.len()));
    let mut asked = engine.step(LONG, Event::Stop(ExitReason::Shutdown));
    let mut stopped = 0;
    while let Some(command) = asked.pop() {
        let Command::Stop(id) = command else { break };
        asked.extend(engine.step(LONG, Event::Exited(id, ExitReason::Shutdown)));
        stopped += 1;
    }
    assert_eq!(stopped, MANY);
}

#[test]
fn three_hundred_thousand_children_are_killed_restarted_and_stopped() {
    storm(Strategy::OneForOne);
}

#[test]
fn three_hundred_thousand_dynamic_children_are_killed_restarted_and_stopped() {
    storm(Strategy::Dynamic);
}
