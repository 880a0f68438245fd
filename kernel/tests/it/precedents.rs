//! Answers that are used again: they answer what a ticket of the same seat, tool and arguments would have asked, and no more.

use std::{sync::Arc, time::Duration};

use ed25519_dalek::{Signer, SigningKey};
use ephor_base::{Decision, EffectVector, Registration, Seat, Seq, Timestamp};
use ephor_governance::{Constitution, Environment};
use ephor_kernel::{
    BadRuling, Incoming, NotJudged, Process, Question, SignedRuling, Statement, Subscription, all_agents, operator_id,
};
use ephor_record::{Always, Decree, Fact, Judgment, Role, RulingOn};
use tokio::sync::{Notify, oneshot};

use crate::{
    retrial::{assert_all_same, retried},
    world::{
        Does, End, PLENTY, Puppet, Setup, World, code, direct, done, model, question, reader, reply, running, said,
        text, uses, writer,
    },
};

const HOUR: Duration = Duration::from_secs(3600);

struct Asking {
    world: World,
    tool: Arc<Does>,
    process: Process,
    seen: Subscription,
    puppet: Puppet,
    _end: oneshot::Sender<End>,
}

fn setup(tool: &Arc<Does>) -> Setup {
    let mut setup = Setup::new().tool(writer("t.write"), tool.clone()).tool(writer("t.other"), tool.clone());
    setup.patience.ticket = Duration::from_secs(100_000);
    setup
}

async fn asking() -> Asking {
    let tool = Does::saying("written");
    in_world(setup(&tool).boot().await, tool).await
}

async fn in_world(world: World, tool: Arc<Does>) -> Asking {
    let mut puppet = world.puppet(PLENTY).await;
    let seen = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.in_turn("go").await;
    Asking { world, tool, process, seen, puppet, _end }
}

/// The answer to a question, for good.
fn statement(world: &World, asked: &Question, decision: Decision, change: impl FnOnce(&mut Always)) -> Statement {
    let until = world.kernel_now().plus(HOUR);
    let mut always = asked.always(asked.seat.clone(), Vec::new(), until);
    change(&mut always);
    Statement { always: Some(always), note: Some("as every week".into()), ..Statement::on_ticket(asked, decision) }
}

impl Asking {
    fn call(&self, path: &str) -> ephor_kernel::Call {
        self.process.call(direct("t.write", &format!(r#"{{"path":"{path}"}}"#))).unwrap()
    }

    async fn rule(&self, said: Statement) -> Result<u32, BadRuling> {
        self.world.kernel.rule(said.sign(&self.world.operator)).await
    }

    /// Answers the next question for good.
    async fn rule_always(&mut self, decision: Decision, change: impl FnOnce(&mut Always)) -> Seq {
        let asked = question(&mut self.seen).await;
        self.rule(statement(&self.world, &asked, decision, change)).await.unwrap();
        self.world.kernel.precedents().last().unwrap().reused.ruling
    }

    /// Ends the turn and begins another: the same call twice in one is another question.
    async fn next_turn(&mut self) {
        assert_eq!(code(&done(&self.process, reply(None)).await), "done");
        self.puppet.say("go on").await;
        assert!(matches!(self.process.receive().await, Incoming::Message(_)));
    }

    /// Makes the call in a turn of its own, and says how it ended; a question that it asks is refused. Whether it asked comes first.
    async fn ends(&mut self, path: &str) -> (bool, String) {
        self.next_turn().await;
        let call = self.call(path);
        let mut ended = Box::pin(call.ended());
        tokio::select! {
            end = &mut ended => (false, code(&end)),
            asked = question(&mut self.seen) => {
                self.rule(Statement::on_ticket(&asked, Decision::Deny)).await.unwrap();
                (true, code(&ended.await))
            }
        }
    }

    async fn judge(&self, judgment: Judgment, key: &SigningKey) -> Result<Seq, NotJudged> {
        judge(&self.world, judgment, key).await
    }

    /// Every verdict comes out again as it stands.
    async fn holds(&self) {
        let found = retried(&self.world.record().await);
        assert!(!found.is_empty());
        assert_all_same(&found);
    }
}

async fn judge(world: &World, judgment: Judgment, key: &SigningKey) -> Result<Seq, NotJudged> {
    let signature = key.sign(&judgment.signed_bytes(&world.kernel.origin(), "enough")).to_bytes().to_vec();
    world.kernel.judge(operator_id(&key.verifying_key()), judgment, "enough".into(), signature).await
}

fn asked() -> (bool, String) {
    (true, "Denied".into())
}

fn runs() -> (bool, String) {
    (false, "done".into())
}

#[tokio::test]
async fn it_answers_the_same_question_of_the_same_seat_and_no_other() {
    let mut me = asking().await;
    let first = me.call("a");
    me.rule_always(Decision::Permit, |_| ()).await;
    assert_eq!(code(&first.ended().await), "done");
    assert_eq!(me.ends("a").await, runs());
    assert_eq!(me.ends("b").await, asked(), "another value");
    let other = me.process.call(direct("t.other", r#"{"path":"a"}"#)).unwrap();
    let about = question(&mut me.seen).await;
    me.rule(Statement::on_ticket(&about, Decision::Deny)).await.unwrap();
    assert_eq!(code(&other.ended().await), "Denied", "another tool");
    let mut theirs = me.world.puppet(PLENTY).await;
    let (they, _end) = theirs.in_turn("go").await;
    assert_eq!(code(&done(&they, direct("t.write", r#"{"path":"a"}"#)).await), "Denied", "another seat");
    me.world.clock.advance(2 * HOUR);
    assert_eq!(me.ends("a").await, asked(), "its time is up");
    assert_eq!(me.world.kernel.precedents(), []);
    assert_eq!(me.tool.runs(), 2);
    let facts = me.world.facts(me.puppet.session).await;
    let by_precedent = |fact: &&Fact| matches!(fact, Fact::Verdict { verdict, ruling: Some(_), .. } if verdict.reasons.iter().any(|reason| reason.code == "precedent-permits"));
    assert_eq!(facts.iter().filter(by_precedent).count(), 1);
    me.holds().await;
}

#[tokio::test]
async fn for_all_agents_it_answers_each_of_them() {
    let mut me = asking().await;
    let first = me.call("a");
    me.rule_always(Decision::Permit, |always| always.seat = all_agents()).await;
    assert_eq!(code(&first.ended().await), "done");
    let mut theirs = me.world.puppet(PLENTY).await;
    let (they, _end) = theirs.in_turn("go").await;
    assert_eq!(code(&done(&they, direct("t.write", r#"{"path":"a"}"#)).await), "done");
    assert_eq!(code(&done(&they, direct("t.write", r#"{"path":"b"}"#)).await), "Denied");
    me.holds().await;
}

#[tokio::test]
async fn nobody_makes_it_of_more_than_was_shown() {
    let mut me = asking().await;
    let first = me.call("a");
    let about = question(&mut me.seen).await;
    let wrong: [fn(&mut Always); 10] = [
        |always| always.tool = "t.other".parse().unwrap(),
        |always| always.reasons.push("tool-is-not-cleared-for-the-context".into()),
        |always| always.effects = EffectVector::MAX,
        |always| always.registration = ephor_base::Digest::of(b"another"),
        |always| always.seat = Seat::root("node").child("agents").child("another"),
        |always| always.seat = always.seat.child("below"),
        |always| always.free = vec!["path".into()],
        |always| always.free = vec!["content".into()],
        |always| always.until = Timestamp(0),
        |always| always.until = always.until.plus(Duration::from_secs(90 * 86_400)),
    ];
    for (number, change) in wrong.iter().enumerate() {
        let bad = me.rule(statement(&me.world, &about, Decision::Permit, change)).await;
        assert!(matches!(bad, Err(BadRuling::OtherCall | BadRuling::TooWide(_))), "{number}: {bad:?}");
    }
    // What was signed says nothing of it, or for another time, or is another's.
    let good = statement(&me.world, &about, Decision::Permit, |_| ());
    let plain = Statement::on_ticket(&about, Decision::Permit).sign(&me.world.operator);
    let longer = statement(&me.world, &about, Decision::Permit, |always| always.until = always.until.plus(HOUR));
    for statement in [good.clone(), longer] {
        let forged = SignedRuling { statement, ..plain.clone() };
        assert_eq!(me.world.kernel.rule(forged).await, Err(BadRuling::NotAnOperator));
    }
    let operator = me.world.enrol(11, Role::Operator).await;
    let by_operator = me.world.kernel.rule(good.clone().sign(&operator)).await;
    assert!(matches!(by_operator, Err(BadRuling::NotAnApprover(_))), "{by_operator:?}");
    let on_tools = Statement {
        always: good.always.clone(),
        ..me.world.ruling(
            me.puppet.session,
            RulingOn::Tools(vec!["t.write".parse().unwrap()]),
            ephor_base::Digest::of(&[]),
        )
    };
    assert_eq!(me.rule(on_tools).await, Err(BadRuling::OtherCall));
    assert_eq!(me.tool.runs(), 0);
    assert_eq!(me.world.kernel.precedents(), []);
    me.rule(good).await.unwrap();
    assert_eq!(code(&first.ended().await), "done");
}

#[tokio::test]
async fn one_that_refuses_refuses_without_asking_and_before_one_that_permits() {
    let mut me = asking().await;
    let first = me.call("a");
    me.rule_always(Decision::Permit, |_| ()).await;
    assert_eq!(code(&first.ended().await), "done");
    // Of the other file the answer is no, for good.
    let second = me.call("b");
    me.rule_always(Decision::Deny, |_| ()).await;
    assert_eq!(code(&second.ended().await), "Denied");
    assert_eq!(me.ends("b").await, (false, "Denied".into()));
    assert_eq!(me.ends("a").await, runs());
    assert_eq!(me.tool.runs(), 2);
    me.holds().await;
}

#[tokio::test]
async fn it_ends_with_its_law_and_with_the_office_of_who_gave_it() {
    let mut me = asking().await;
    let approver = me.world.enrol(12, Role::Approver).await;
    let first = me.call("a");
    let about = question(&mut me.seen).await;
    let said = statement(&me.world, &about, Decision::Permit, |_| ());
    me.world.kernel.rule(said.sign(&approver)).await.unwrap();
    assert_eq!(code(&first.ended().await), "done");
    assert_eq!(me.ends("a").await, runs());
    let rank = |role| Decree::Rank { operator: operator_id(&approver.verifying_key()), role };
    me.world.decree(rank(Role::Operator)).await.unwrap();
    assert_eq!(me.ends("a").await, asked(), "who gave it is no approver any more");
    assert!(me.world.kernel.precedents()[0].idle.is_some());
    me.world.decree(rank(Role::Approver)).await.unwrap();
    assert_eq!(me.ends("a").await, runs());
    let law = Constitution::default_text(Environment::Dev);
    me.world.enact(&format!("{law}\n// another\n")).await.unwrap();
    assert_eq!(me.ends("a").await, asked(), "another law");
    assert!(me.world.kernel.precedents()[0].idle.is_some());
    me.holds().await;
}

#[tokio::test]
async fn an_argument_of_a_tool_whose_arguments_are_all_critical_is_never_left_free() {
    let tool = Does::saying("sent");
    let schema = r#"{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"}}}"#;
    let all =
        Registration { consequential: vec!["*".into()], paths: Vec::new(), schema: schema.into(), ..writer("t.send") };
    let mut me = in_world(setup(&tool).tool(all, tool.clone()).boot().await, tool).await;
    let _call = me.process.call(direct("t.send", r#"{"to":"anna","text":"hello"}"#)).unwrap();
    let about = question(&mut me.seen).await;
    for free in ["to", "text"] {
        let said = statement(&me.world, &about, Decision::Permit, |always| always.free = vec![free.into()]);
        let bad = me.rule(said).await;
        assert!(matches!(bad, Err(BadRuling::TooWide(_))), "{free}: {bad:?}");
    }
    // A no may be as wide as one likes.
    me.rule(statement(&me.world, &about, Decision::Deny, |always| always.free = vec!["to".into()])).await.unwrap();
}

#[tokio::test]
async fn it_never_stands_for_several_people() {
    let mut me = asking().await;
    let law = Constitution::default_text(Environment::Dev);
    let two = r#"@id("two-people") @decision("defer") @quorum("2") forbid (principal, action == Action::"run", resource == Tool::"t.write");"#;
    me.world.enact(&format!("{law}\n{two}\n")).await.unwrap();
    let _first = me.call("a");
    let about = question(&mut me.seen).await;
    let bad = me.rule(statement(&me.world, &about, Decision::Permit, |_| ())).await;
    assert!(matches!(bad, Err(BadRuling::TooWide(_))), "{bad:?}");
    assert_eq!(
        me.rule(Statement { note: Some("x".repeat(2000)), ..Statement::on_ticket(&about, Decision::Permit) }).await,
        Err(BadRuling::LongNote)
    );
    let half = Statement { note: Some("I have looked".into()), ..Statement::on_ticket(&about, Decision::Permit) };
    assert_eq!(me.rule(half).await, Ok(1));
    let answers = me.world.kernel.answers(me.puppet.session, about.ticket);
    assert_eq!(answers.len(), 1);
    assert_eq!(
        (answers[0].operator, answers[0].permits, answers[0].note.as_deref()),
        (me.world.who(), true, Some("I have looked"))
    );
}

#[tokio::test]
async fn once_revoked_it_counts_no_more_and_what_runs_on_it_ends() {
    let goes = Arc::new(Notify::new());
    let tool = {
        let goes = goes.clone();
        Does::new(move |_, context| {
            let goes = goes.clone();
            async move {
                tokio::select! {
                    () = goes.notified() => said("written"),
                    () = context.cancelled() => std::future::pending().await,
                }
            }
        })
    };
    let mut me = in_world(setup(&tool).boot().await, tool).await;
    let first = me.call("a");
    let ruling = me.rule_always(Decision::Permit, |_| ()).await;
    goes.notify_one();
    assert_eq!(code(&first.ended().await), "done");
    me.next_turn().await;
    let mut second = me.call("a");
    running(&mut second).await;
    let (revoke, operator) = (Judgment::Revoke { ruling }, me.world.enrol(13, Role::Operator).await);
    assert!(matches!(me.judge(revoke, &operator).await, Err(NotJudged::Rule(_))), "an operator may not");
    let forged = me.world.kernel.judge(me.world.who(), revoke, "enough".into(), vec![0; 64]).await;
    assert!(matches!(forged, Err(NotJudged::Rule(_))), "{forged:?}");
    let key = me.world.operator.clone();
    me.judge(revoke, &key).await.unwrap();
    assert_eq!(code(&second.ended().await), "cancelled", "the live permit is revoked");
    assert!(matches!(me.judge(revoke, &key).await, Err(NotJudged::Rule(_))), "it is none any more");
    assert_eq!(me.ends("a").await, asked());
    assert_eq!(me.world.kernel.precedents(), []);
    assert_eq!(me.tool.runs(), 2);
    me.holds().await;
}

#[tokio::test]
async fn what_runs_on_it_ends_with_the_office_of_who_gave_it_and_nothing_else_does() {
    for keeps_a_lesser_role in [true, false] {
        let goes = Arc::new(Notify::new());
        let tool = {
            let goes = goes.clone();
            Does::new(move |_, context| {
                let goes = goes.clone();
                async move {
                    tokio::select! {
                        () = goes.notified() => said("written"),
                        () = context.cancelled() => std::future::pending().await,
                    }
                }
            })
        };
        let mut me = in_world(setup(&tool).boot().await, tool).await;
        let (author, other) = (me.world.enrol(12, Role::Approver).await, me.world.enrol(13, Role::Approver).await);
        let first = me.call("a");
        let about = question(&mut me.seen).await;
        let always = statement(&me.world, &about, Decision::Permit, |_| ());
        me.world.kernel.rule(always.sign(&author)).await.unwrap();
        goes.notify_one();
        assert_eq!(code(&first.ended().await), "done");
        me.next_turn().await;
        let mut second = me.call("a");
        running(&mut second).await;
        let of = |key: &SigningKey| operator_id(&key.verifying_key());
        me.world.decree(Decree::Dismiss { operator: of(&other) }).await.unwrap();
        tokio::task::yield_now().await;
        assert_eq!(me.world.kernel.flights().len(), 1, "somebody else's office is nothing to it");
        let end = if keeps_a_lesser_role {
            Decree::Rank { operator: of(&author), role: Role::Operator }
        } else {
            Decree::Dismiss { operator: of(&author) }
        };
        me.world.decree(end).await.unwrap();
        assert_eq!(code(&second.ended().await), "cancelled");
        assert_eq!(me.ends("a").await, asked());
        me.holds().await;
    }
}

#[tokio::test]
async fn it_stands_over_a_restart_of_the_node_until_it_is_revoked() {
    let tool = Does::saying("written");
    let mut me = in_world(setup(&tool).boot().await, tool.clone()).await;
    let (one, two) = (me.call("a"), me.call("b"));
    let first = me.rule_always(Decision::Permit, |always| always.seat = all_agents()).await;
    let second = me.rule_always(Decision::Permit, |always| always.seat = all_agents()).await;
    assert_ne!(first, second);
    assert_eq!((code(&one.ended().await), code(&two.ended().await)), ("done".into(), "done".into()));
    let key = me.world.operator.clone();
    me.judge(Judgment::Revoke { ruling: second }, &key).await.unwrap();
    let home = me.world.crashed();
    let mut later = in_world(setup(&tool).boot_in(home, 2000).await, tool).await;
    let standing = later.world.kernel.precedents();
    assert_eq!(standing.len(), 1);
    assert_eq!((standing[0].reused.ruling, standing[0].note.as_deref()), (first, Some("as every week")));
    let (a, b) = (later.ends("a").await, later.ends("b").await);
    let mut ends = [a, b];
    ends.sort();
    assert_eq!(ends, [runs(), asked()], "the one runs, the other is asked about");
    later.holds().await;
}

#[tokio::test]
async fn a_seat_that_its_conduct_suspended_acts_again_when_an_approver_says_so_and_not_before() {
    let tool = Does::saying("x");
    let bad: Vec<(&str, &str)> = (0..60).map(|_| ("t.none", "{}")).collect();
    let setup = || Setup::new().model(model(vec![uses(&bad), text("done")])).tool(reader("t.read"), tool.clone());
    let world = setup().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, direct("t.read", "{}")).await), "done");
    for _ in 0..60 {
        assert_eq!(code(&done(&process, direct("t.none", "{}")).await), "Denied");
    }
    assert_eq!(code(&done(&process, direct("t.read", "{}")).await), "Denied");
    let found = world.kernel.suspended();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].session, &found[0].seat), (puppet.session, process.seat()));
    assert!(found[0].bad >= 60 && found[0].calls > found[0].bad);
    let lift = Judgment::Lift { session: puppet.session, since: found[0].since };
    let operator = world.enrol(14, Role::Operator).await;
    assert!(matches!(judge(&world, lift, &operator).await, Err(NotJudged::Rule(_))), "an operator may not");
    let other = Judgment::Lift { session: puppet.session, since: Seq(found[0].since.0 - 1) };
    assert!(matches!(judge(&world, other, &world.operator).await, Err(NotJudged::NotSuspended(_))));
    // It stands over a restart of the node, and so does that it was lifted.
    let before = world.crashed();
    let again = setup().take_up_in(before, 2000).await;
    assert_eq!(again.kernel.suspended_in(puppet.session).await, Some(found[0].clone()));
    judge(&world, lift, &world.operator).await.unwrap();
    assert_eq!(world.kernel.suspended(), []);
    assert_eq!(code(&done(&process, direct("t.read", "{}")).await), "done");
    assert!(matches!(judge(&world, lift, &world.operator).await, Err(NotJudged::NotSuspended(_))), "once");
    let after = setup().take_up_in(world.crashed(), 3000).await;
    assert_eq!(after.kernel.suspended_in(puppet.session).await, None);
    assert_all_same(&retried(&world.record().await));
}
