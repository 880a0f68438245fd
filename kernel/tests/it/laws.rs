//! A constitution is put in force while the node runs: from its place on the record on it decides, and nothing that was asked,
//! answered or permitted under the one before counts any more.

use std::sync::{Arc, Mutex};

use ed25519_dalek::Signer;
use ephor_base::{Arguments, Capability, Digest, Part, PartKind, Registration, Timestamp};
use ephor_governance::{Constitution, Environment};
use ephor_kernel::{BadRuling, Draft, NotDecreed, Statement, operator_id};
use ephor_record::{Errand, Fact, Missed, Role, RulingOn};
use tokio::sync::Notify;

use crate::{
    retrial::{assert_all_same, retried},
    world::{
        Does, PLENTY, Setup, World, asked, chosen, code, direct, done, model, name, question, reader, said, text,
        until, uses, writer,
    },
};

/// The default constitution, and something more.
fn with(more: &str) -> String {
    format!("{}\n{more}\n", Constitution::default_text(Environment::Dev))
}

fn without_reading() -> String {
    with(r#"@id("no-reading") forbid (principal, action == Action::"run", resource == Tool::"t.read");"#)
}

/// Every verdict names the law that was in force at its place, and is decided again bit for bit.
async fn holds(world: &World) {
    let record = world.record().await;
    let found = retried(&record);
    assert!(!found.is_empty());
    assert_all_same(&found);
    let mut law = None;
    for stored in &record {
        match &stored.entry.fact {
            Fact::Policy { digest, .. } | Fact::Enacted { policy: digest, .. } => law = Some(*digest),
            Fact::Verdict { verdict, .. } => assert_eq!(Some(verdict.policy), law, "entry {}", stored.entry.seq),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_constitution_decides_from_its_place_on_without_a_restart() {
    let tool = Does::saying("x");
    let world = Setup::new().tool(reader("t.read"), tool.clone()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, direct("t.read", "{}")).await), "done");
    let before = world.kernel.policy();
    world.enact(&without_reading()).await.unwrap();
    assert_ne!(world.kernel.policy(), before);
    assert_eq!(code(&done(&process, direct("t.read", "{}")).await), "Denied");
    world.enact(&with("")).await.unwrap();
    assert_eq!(code(&done(&process, direct("t.read", "{}")).await), "done");
    assert_eq!(tool.runs(), 2);
    holds(&world).await;
    let law = world.log.standing(|standing| standing.operators().law()).unwrap();
    assert_eq!(law.constitution, Digest::of(with("").as_bytes()));
}

#[tokio::test]
async fn what_was_asked_and_allowed_under_an_older_constitution_counts_no_more() {
    let tool = Does::saying("written");
    let world = Setup::new().tool(writer("t.write"), tool.clone()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let mut seen = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.in_turn("go").await;
    let call = process.call(direct("t.write", r#"{"path":"a"}"#)).unwrap();
    let asked = question(&mut seen).await;
    let permit = world.ruling(asked.session, RulingOn::Ticket(asked.ticket), asked.digest);
    let allow = world.allow(puppet.session, &["t.write"]);
    world.enact(&with("// another")).await.unwrap();
    assert_eq!(code(&call.ended().await), "Denied");
    assert!(matches!(
        world.kernel.rule(permit.clone().sign(&world.operator)).await,
        Err(BadRuling::OtherCall | BadRuling::NotOpen(_))
    ));
    assert_eq!(world.kernel.rule(allow.clone()).await, Err(BadRuling::OtherCall));
    // Nor if it says that it is of the law in force: that is another statement than was signed.
    let turned = Statement { policy: world.kernel.policy(), ..allow.statement.clone() };
    let forged = ephor_kernel::SignedRuling { statement: turned, ..allow.clone() };
    assert_eq!(world.kernel.rule(forged).await, Err(BadRuling::NotAnOperator));
    // What was allowed for the session is over with the law it was allowed under.
    world.kernel.rule(world.allow(puppet.session, &["t.write"])).await.unwrap();
    assert_eq!(code(&done(&process, direct("t.write", r#"{"path":"b"}"#)).await), "done");
    world.enact(&with("// a third")).await.unwrap();
    let again = process.call(direct("t.write", r#"{"path":"c"}"#)).unwrap();
    let second = question(&mut seen).await;
    let no = Statement {
        decision: ephor_base::Decision::Deny,
        ..world.ruling(second.session, RulingOn::Ticket(second.ticket), second.digest)
    };
    world.kernel.rule(no.sign(&world.operator)).await.unwrap();
    assert_eq!((code(&again.ended().await).as_str(), tool.runs()), ("Denied", 1));
    holds(&world).await;
}

#[tokio::test]
async fn no_surface_keeps_an_older_constitution() {
    let tool = Does::saying("x");
    let (waits, goes) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let inside: Arc<Mutex<Vec<String>>> = Arc::default();
    let hook = {
        let (waits, goes, inside) = (waits.clone(), goes.clone(), inside.clone());
        Does::new(move |_, context| {
            let (waits, goes, inside) = (waits.clone(), goes.clone(), inside.clone());
            async move {
                waits.notify_one();
                goes.notified().await;
                let end = context.nested(name("t.read"), Arguments::default()).await;
                inside
                    .lock()
                    .unwrap()
                    .push(end.map_or_else(|refusal| refusal.to_string(), |outcome| outcome.code().to_owned()));
                said("over")
            }
        })
    };
    let nests = Registration { nested: vec![Capability::FsRead], ..reader("t.hook") };
    let world = Setup::new()
        .model(model(vec![uses(&[("t.read", "{}")]), text("ok")]))
        .tool(reader("t.read"), tool.clone())
        .tool(nests, hook)
        .boot()
        .await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    // Model: it chose the tool under the older law.
    let of = asked(&process).await;
    // Hook: its call runs since before, and asks for more behind the change.
    let hooked = process.call(direct("t.hook", "{}")).unwrap();
    waits.notified().await;
    // Message and schedule: accepted and made before.
    let mut other = world.puppet(PLENTY).await;
    let part = || vec![Part { kind: PartKind::Typed, text: "read it".into() }];
    other.say("read it").await;
    let errand = Errand { parts: part(), workspace: "/tmp".into(), model: None, agent: None, scope: None };
    world.kernel.schedule(world.who(), "daily", "0 7 * * *".into(), "UTC".into(), Missed::Once, errand).await.unwrap();
    world.enact(&without_reading()).await.unwrap();
    goes.notify_one();
    assert_eq!(code(&hooked.ended().await), "done");
    assert!(inside.lock().unwrap()[0].contains("no reading"), "{inside:?}");
    assert_eq!(code(&done(&process, chosen(of, 0)).await), "Denied");
    let (delegated, _end) = other.born().await;
    delegated.receive().await;
    assert_eq!(code(&done(&delegated, direct("t.read", "{}")).await), "Denied");
    let mut fired = world.puppet(PLENTY).await;
    world.kernel.fire(fired.session, part(), None, "daily", Timestamp(1)).await.unwrap();
    let (sent, _end) = fired.born().await;
    sent.receive().await;
    assert_eq!(code(&done(&sent, direct("t.read", "{}")).await), "Denied");
    assert_eq!(tool.runs(), 0);
    holds(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_permit_is_made_under_a_law_that_is_over() {
    let tool = Does::saying("x");
    let world = Setup::new().tool(reader("t.read"), tool.clone()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    // Usually the first try meets the moment between the intent and the permit.
    for number in 0..50 {
        let (policy, runs) = (world.kernel.policy(), tool.runs());
        world.disk.hold();
        let call = process.call(direct("t.read", &format!(r#"{{"path":"{number}"}}"#))).unwrap();
        until(|| world.disk.waiting() > 0).await;
        let text = with(&format!("// {number}"));
        let enacting = world.enact(&text);
        let released = async {
            until(|| world.kernel.policy() != policy).await;
            world.disk.release();
        };
        let (enacted, ()) = tokio::join!(enacting, released);
        enacted.unwrap();
        if code(&call.ended().await) == "cancelled" {
            assert_eq!(tool.runs(), runs, "its intent stands before the change, and nothing began behind it");
            return holds(&world).await;
        }
    }
    panic!("the moment was never met");
}

#[tokio::test]
async fn only_an_owners_signature_over_exactly_this_text_enacts() {
    let world = Setup::new().tool(reader("t.read"), Does::saying("x")).boot().await;
    let approver = world.enrol(40, Role::Approver).await;
    let before = world.kernel.policy();
    let parse = |text: &str| Constitution::parse(text).unwrap();
    let (wanted, other) = (parse(&with("// wanted")), parse(&with("// other")));
    let Draft { origin, latest, decree } = world.kernel.draft(wanted.clone()).unwrap();
    let message = decree.signed_bytes(&origin, latest);
    let own = world.operator.sign(&message).to_bytes().to_vec();
    let others = approver.sign(&message).to_bytes().to_vec();
    let (owner, someone) = (world.who(), operator_id(&approver.verifying_key()));
    let older = world.operator.sign(&decree.signed_bytes(&origin, ephor_base::Seq(0))).to_bytes().to_vec();
    for (who, constitution, signature) in [
        (someone, &wanted, others.clone()),
        (owner, &wanted, others),
        (someone, &wanted, own.clone()),
        (owner, &other, own.clone()),
        (owner, &wanted, older),
        (owner, &wanted, Vec::new()),
    ] {
        let refused = world.kernel.enact(who, constitution.clone(), signature).await;
        assert!(matches!(refused, Err(NotDecreed::Rule(_))), "{refused:?}");
        assert_eq!(world.kernel.policy(), before);
    }
    world.kernel.enact(owner, wanted.clone(), own.clone()).await.unwrap();
    assert_ne!(world.kernel.policy(), before);
    // Once: the same signature does not put it in force again, behind another.
    world.enact(&with("// other")).await.unwrap();
    assert!(world.kernel.enact(owner, wanted, own).await.is_err());
}

/// What is decided while the law changes is recorded under the law that decided it, whoever is faster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_verdict_stands_behind_a_law_that_it_was_not_given_under() {
    let mut setup = Setup::new();
    for number in 0..4 {
        setup = setup.tool(reader(&format!("t.read-{number}")), Does::saying("x"));
    }
    let world = setup.boot().await;
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut busy = Vec::new();
    for number in 0..4 {
        let (mut puppet, over) = (world.puppet(PLENTY).await, over.clone());
        busy.push(tokio::spawn(async move {
            let (process, _end) = puppet.in_turn("go").await;
            let mut calls = 0;
            while !over.load(std::sync::atomic::Ordering::SeqCst) {
                let _either_way = done(&process, direct(&format!("t.read-{number}"), "{}")).await;
                calls += 1;
            }
            calls
        }));
    }
    for number in 0..60 {
        world.enact(&with(&format!("// number {number}"))).await.unwrap();
    }
    over.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut calls = 0;
    for one in busy {
        calls += one.await.unwrap();
    }
    assert!(calls > 60, "{calls} calls");
    holds(&world).await;
}
