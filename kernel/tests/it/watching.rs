//! What is shown of a session: as much as a watcher takes and is cleared for, at no cost to the agent.

use std::sync::LazyLock;

use ephor_base::{CallId, Confidentiality, Decision, Registration, SessionId};
use ephor_governance::{Constitution, Environment};
use ephor_kernel::{PreviewItem, Seen, Statement, Subscription, TurnState, Watchers};

use crate::world::{
    Does, PLENTY, Setup, asked, chosen, code, done, model, reader, reply, said, text, until, uses, writer,
};

/// The person of a session sees nothing confidential.
static LAW: LazyLock<String> = LazyLock::new(|| {
    let more = r#"@id("not-cleared") forbid (principal, action == Action::"answer", resource) when { context.confidentiality > 1 };"#;
    format!("{}\n{more}\n", Constitution::default_text(Environment::Dev))
});

const SESSION: SessionId = SessionId([7; 16]);

fn line(of: u64, text: String) -> Seen {
    Seen::Text { call: CallId(of), text }
}

async fn all(mut seen: Subscription) -> Vec<Seen> {
    let mut all = Vec::new();
    while let Some(seen) = seen.recv().await {
        all.push(seen);
    }
    all
}

fn missed(all: &[Seen]) -> u64 {
    all.iter().map(|seen| if let Seen::Missed { count } = seen { *count } else { 0 }).sum()
}

#[tokio::test]
async fn a_watcher_that_is_behind_misses_what_passes_and_is_told_how_much() {
    let watchers = Watchers::default();
    let seen = watchers.watch(SESSION, true);
    let end = Seen::Held { by: None };
    assert!(watchers.show(SESSION, end.clone()));
    for number in 0..5000 {
        assert!(watchers.show(SESSION, line(number, "a".repeat(10_000))), "whoever is slow is still there");
    }
    drop(watchers);
    let all = all(seen).await;
    assert_eq!(missed(&all) + all.len() as u64 - 1, 5001, "each is shown or counted");
    assert!(all.contains(&end), "what passes goes first");
    let held: usize = all.iter().map(|seen| if let Seen::Text { text, .. } = seen { text.len() } else { 0 }).sum();
    assert!(held <= 4 << 20, "{held} bytes were kept for a watcher that takes nothing");
}

#[tokio::test]
async fn a_stream_that_is_read_late_is_whole_and_comes_in_larger_pieces() {
    let watchers = Watchers::default();
    let seen = watchers.watch(SESSION, true);
    (0..100_000).for_each(|_| assert!(watchers.show(SESSION, line(1, "word ".into()))));
    drop(watchers);
    let all = all(seen).await;
    assert_eq!(missed(&all), 0);
    let words: String =
        all.iter().map(|seen| if let Seen::Text { text, .. } = seen { text.as_str() } else { "" }).collect();
    assert_eq!(words, "word ".repeat(100_000));
}

#[tokio::test]
async fn one_who_left_is_shown_nothing_and_one_who_is_replaced_hears_that_nothing_follows() {
    let watchers = Watchers::default();
    assert!(!watchers.show(SESSION, Seen::State { state: TurnState::Idle }), "nobody has come yet");
    let mut one = watchers.watch(SESSION, true);
    let other = watchers.watch(SESSION, true);
    assert_eq!(one.recv().await, None);
    drop(one);
    assert!(watchers.show(SESSION, Seen::State { state: TurnState::Idle }));
    drop(other);
    assert!(!watchers.show(SESSION, Seen::State { state: TurnState::Idle }));
}

#[tokio::test]
async fn a_turn_takes_place_before_a_watcher_that_takes_nothing_and_is_asked_all_the_same() {
    let streams = Does::new(|_, context| async move {
        for _ in 0..5000 {
            context.preview().show(PreviewItem::Progress("more".into())).await;
        }
        said("written")
    });
    let world = Setup::new()
        .model(model(vec![uses(&[("t.write", r#"{"path":"a"}"#)]), text("done")]))
        .tool(writer("t.write"), streams)
        .boot()
        .await;
    let mut puppet = world.puppet(PLENTY).await;
    let _takes_nothing = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.in_turn("write to a").await;
    (0..10_000).for_each(|_| process.enter(TurnState::Idle));
    let of = asked(&process).await;
    let call = process.call(chosen(of, 0)).unwrap();
    until(|| !world.kernel.questions().is_empty()).await;
    let (question, _) = world.kernel.questions().remove(0);
    world.kernel.rule(Statement::on_ticket(&question, Decision::Permit).sign(&world.operator)).await.unwrap();
    assert_eq!(code(&call.ended().await), "done");
    assert_eq!(code(&done(&process, reply(None)).await), "done");
}

/// What a watcher is shown of a call whose tool answers at `level`, within a session whose person may see what is internal.
async fn shown_of(level: Confidentiality) -> Vec<Seen> {
    let reads = Does::new(|_, context| async move {
        context.preview().show(PreviewItem::Progress("reads a secret".into())).await;
        said("the secret")
    });
    let tool = Registration { confidentiality: level, ..reader("t.read") };
    let setup = Setup { law: Some(&LAW), ..Setup::new() };
    let world = setup.model(model(vec![uses(&[("t.read", "{}")]), text("done")])).tool(tool, reads).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let seen = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.in_turn("read it").await;
    let of = asked(&process).await;
    assert_eq!(code(&done(&process, chosen(of, 0)).await), "done");
    // Whoever replaces a watcher ends what it is shown.
    drop(world.kernel.watch(puppet.session, false));
    all(seen).await
}

#[tokio::test]
async fn a_tools_progress_and_answer_are_shown_only_to_whom_a_reply_with_them_may_go() {
    let internal = format!("{:?}", shown_of(Confidentiality::Internal).await);
    assert!(internal.contains("reads a secret") && internal.contains("the secret"), "{internal}");
    let confidential = format!("{:?}", shown_of(Confidentiality::Confidential).await);
    assert!(!confidential.contains("a secret") && !confidential.contains("the secret"), "{confidential}");
    assert!(confidential.contains("not cleared"), "{confidential}");
}
