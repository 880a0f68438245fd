//! A session that is left and come back to, whatever is still under way for it, and whoever stops waiting.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use ephor_base::{Budget, Product, Seat, SessionId, ToolAnswer};
use ephor_kernel::{DriverResult, Process, Retrial};
use ephor_record::Fact;

use crate::world::{
    Does, PLENTY, Setup, World, asked, chosen, code, direct, done, is_settled, model, reader, reply, running, said,
    text, until, uses,
};

/// What comes of a future that is polled so often at most; nothing, if its caller leaves before it is done.
async fn polled<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Kills the group of a session, and with it the session.
async fn kill(world: &World, session: SessionId) {
    let of_session = |info: &ephor_kernel::ProcessInfo| info.session == Some(session) && info.seat.name() != "loop";
    let group = world.kernel.processes().into_iter().find(of_session).unwrap().pid;
    assert!(world.kernel.kill(group));
    until(|| world.kernel.processes().iter().all(|info| info.session != Some(session))).await;
}

async fn assert_all_same(world: &World) {
    let mut retrial = Retrial::default();
    for stored in world.record().await {
        if let Some(one) = retrial.take(&stored) {
            assert!(one.is_same(), "entry {}: {:?} came out as {:?}", one.seq, one.recorded, one.again);
        }
    }
}

/// A tool that notices late that it is not wanted any more, and says then what it did and used.
fn lingers() -> Arc<Does> {
    let estimate = Budget { tokens: 10, ..Budget::ZERO };
    Does::costing(estimate, |_, context| async move {
        context.cancelled().await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        let answer = ToolAnswer { text: "no".into(), failed: true };
        DriverResult::done(Product::Tool(answer), Budget { tokens: 7, ..Budget::ZERO })
    })
}

#[tokio::test]
async fn what_a_call_came_to_that_outlived_its_session_is_known_to_the_session_that_goes_on() {
    let wants = uses(&[("t.lingers", "{}")]);
    let world = Setup::new().tool(reader("t.lingers"), lingers()).model(model(vec![wants, text("done")])).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let mut call = process.call(direct("t.lingers", "{}")).unwrap();
    running(&mut call).await;
    kill(&world, puppet.session).await;
    let (mut puppet, _) = world.attach(puppet.session).await;
    let (process, _end) = puppet.in_turn("again").await;
    assert!(is_settled(&world.record().await), "what was under way has ended");
    let account = world.account(&process);
    assert_eq!((account.used.tokens, account.used.tool_calls), (7, 1));
    let by = asked(&process).await;
    let mut call = process.call(chosen(by, 0)).unwrap();
    running(&mut call).await;
    call.canceller().cancel();
    assert_eq!(code(&call.ended().await), "tool_error");
    assert_all_same(&world).await;
}

fn used_by(world: &World, seat: &Seat) -> u64 {
    world.kernel.account(seat).unwrap().used.tokens
}

#[tokio::test]
async fn a_session_has_one_account_however_often_it_is_come_back_to() {
    let tool = Does::costing(Budget { tokens: 5, ..Budget::ZERO }, |_, _| async {
        DriverResult { used: Budget { tokens: 5, ..Budget::ZERO }, ..said("x") }
    });
    let world = Setup::new().tool(reader("t.x"), tool).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (session, agents) = (puppet.session, Seat::root("node").child("agents"));
    let mut spent = 0;
    for _ in 0..4 {
        let (process, _end) = puppet.in_turn("go").await;
        assert!(process.seat().as_str().contains(&session.to_string()), "{}", process.seat());
        done(&process, direct("t.x", "{}")).await.unwrap();
        done(&process, reply(None)).await.unwrap();
        spent += 5;
        assert_eq!((used_by(&world, process.seat()), used_by(&world, &agents)), (spent, spent));
        world.kernel.close_session(session).await;
        assert_eq!(used_by(&world, &agents), spent);
        puppet = world.attach(session).await.0;
    }
}

/// Whether the session works, and is there once.
async fn works(world: &World, puppet: &mut crate::world::Puppet) {
    let (process, _end): (Process, _) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, reply(None)).await), "done");
    let there = world.kernel.processes().into_iter().filter(|info| info.session == Some(puppet.session)).count();
    assert_eq!(there, 2, "a supervisor and an agent");
}

/// An agent that has nothing to do. It counts how often it was started.
#[derive(Default)]
struct Leaves(AtomicUsize);

impl ephor_kernel::Body for Leaves {
    fn run(&self, _: Process) -> ephor_kernel::Life {
        self.0.fetch_add(1, Ordering::SeqCst);
        ephor_kernel::Life::new(std::future::ready(Ok(())))
    }
}

#[tokio::test]
async fn a_session_that_the_caller_stops_waiting_for_is_not_left_half_open() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    works(&world, &mut puppet).await;
    let session = puppet.session;
    for times in 0..4 {
        world.kernel.close_session(session).await;
        let leaves = Arc::new(Leaves::default());
        if polled(world.kernel.attach(session, leaves.clone()), times).await.is_some() {
            world.kernel.close_session(session).await;
        }
        // What was begun is finished although nothing waits for it, and is put away then.
        until(|| times == 0 || leaves.0.load(Ordering::SeqCst) == 1).await;
        until(|| world.kernel.processes().iter().all(|info| info.session != Some(session))).await;
        let (mut puppet, _) = world.attach(session).await;
        works(&world, &mut puppet).await;
    }
}

#[tokio::test]
async fn whoever_stops_waiting_for_the_end_of_a_session_leaves_none_that_is_half_closed() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    works(&world, &mut puppet).await;
    let session = puppet.session;
    for times in 1..16 {
        let _left: Option<()> = polled(world.kernel.close_session(session), times).await;
        until(|| world.kernel.processes().iter().all(|info| info.session != Some(session))).await;
        let (mut puppet, _) = world.attach(session).await;
        works(&world, &mut puppet).await;
    }
    let dead = world.facts(session).await.into_iter().filter(|fact| matches!(fact, Fact::Dead { .. })).count();
    assert_eq!(dead, 0);
}

#[tokio::test]
async fn nothing_is_kept_of_what_ended_behind_its_session() {
    let world = Setup::new().tool(reader("t.lingers"), lingers()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let mut call = process.call(direct("t.lingers", "{}")).unwrap();
    running(&mut call).await;
    kill(&world, puppet.session).await;
    assert_eq!(code(&call.ended().await), "tool_error");
    assert_eq!(world.kernel.landed(process.seat()), []);
}
