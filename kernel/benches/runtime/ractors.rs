//! The same measurements on ractor, with the supervisor its users write: it starts a child anew when it hears of its end.

use std::time::{Duration, Instant};

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use tokio::sync::mpsc;

use crate::{Figures, Sizes, median, memory};

type Ups = mpsc::UnboundedSender<ActorCell>;

struct Child;

impl Actor for Child {
    type Msg = ();
    type State = Ups;
    type Arguments = Ups;
    async fn pre_start(&self, _: ActorRef<()>, up: Ups) -> Result<Ups, ActorProcessingErr> {
        Ok(up)
    }
    async fn post_start(&self, me: ActorRef<()>, up: &mut Ups) -> Result<(), ActorProcessingErr> {
        let _gone = up.send(me.get_cell());
        Ok(())
    }
    async fn handle(&self, _: ActorRef<()>, (): (), _: &mut Ups) -> Result<(), ActorProcessingErr> {
        panic!("boom")
    }
}

struct Supervisor;

impl Actor for Supervisor {
    type Msg = RpcReplyPort<()>;
    type State = Ups;
    type Arguments = Ups;
    async fn pre_start(&self, _: ActorRef<Self::Msg>, up: Ups) -> Result<Ups, ActorProcessingErr> {
        Ok(up)
    }
    async fn handle(&self, me: ActorRef<Self::Msg>, reply: Self::Msg, up: &mut Ups) -> Result<(), ActorProcessingErr> {
        Actor::spawn_linked(None, Child, up.clone(), me.get_cell()).await?;
        reply.send(())?;
        Ok(())
    }
    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        up: &mut Ups,
    ) -> Result<(), ActorProcessingErr> {
        if matches!(event, SupervisionEvent::ActorTerminated(..) | SupervisionEvent::ActorFailed(..)) {
            Actor::spawn_linked(None, Child, up.clone(), me.get_cell()).await?;
        }
        Ok(())
    }
}

async fn supervisor() -> (ActorRef<RpcReplyPort<()>>, mpsc::UnboundedReceiver<ActorCell>) {
    let (up, ups) = mpsc::unbounded_channel();
    let (actor, _handle) = Actor::spawn(None, Supervisor, up).await.expect("a supervisor");
    (actor, ups)
}

async fn start(supervisor: &ActorRef<RpcReplyPort<()>>) {
    supervisor.call(|reply| reply, None).await.expect("it takes it");
}

async fn starts(many: usize) -> f64 {
    let (actor, mut ups) = supervisor().await;
    let began = Instant::now();
    for _ in 0..many {
        start(&actor).await;
    }
    let mut children = Vec::new();
    for _ in 0..many {
        children.push(ups.recv().await.expect("it runs"));
    }
    let took = began.elapsed();
    actor.kill();
    children.iter().for_each(ActorCell::kill);
    many as f64 / took.as_secs_f64()
}

async fn restarts(many: usize, pause: Duration, panics: bool) -> f64 {
    let (actor, mut ups) = supervisor().await;
    start(&actor).await;
    let mut child = ups.recv().await.expect("it runs");
    let mut times = Vec::with_capacity(many);
    for _ in 0..many {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let began = Instant::now();
        match panics {
            true => child.send_message(()).expect("it takes it"),
            false => child.kill(),
        }
        child = ups.recv().await.expect("it runs again");
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    actor.kill();
    child.kill();
    median(times)
}

async fn storm(many: usize) -> f64 {
    let (actor, mut ups) = supervisor().await;
    for _ in 0..many {
        start(&actor).await;
    }
    let mut children = Vec::new();
    for _ in 0..many {
        children.push(ups.recv().await.expect("it runs"));
    }
    let began = Instant::now();
    children.drain(..).for_each(|child| child.kill());
    for _ in 0..many {
        children.push(ups.recv().await.expect("it runs again"));
    }
    let took = began.elapsed();
    actor.kill();
    children.iter().for_each(ActorCell::kill);
    took.as_secs_f64() * 1e3
}

pub(crate) async fn bytes(many: usize) -> f64 {
    let (actor, mut ups) = supervisor().await;
    let before = memory();
    for _ in 0..many {
        start(&actor).await;
        // Kept nowhere: what a child costs is what it costs while nobody looks.
        ups.recv().await.expect("it runs");
    }
    (memory() - before) / many as f64
}

pub(crate) async fn figures(sizes: Sizes) -> Figures {
    Figures {
        start: starts(sizes.starts / 5).await,
        kill: restarts(sizes.kills / 5, Duration::ZERO, false).await,
        panic: restarts(sizes.kills / 5, Duration::ZERO, true).await,
        kill_idle: restarts(sizes.idle, Duration::from_millis(2), false).await,
        panic_idle: restarts(sizes.idle, Duration::from_millis(2), true).await,
        storm: storm(sizes.storm).await,
    }
}
