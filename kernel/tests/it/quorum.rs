//! What the constitution marks takes several different people.

use std::sync::Arc;

use ed25519_dalek::SigningKey;
use ephor_base::Decision;
use ephor_governance::{Constitution, Environment};
use ephor_kernel::{BadRuling, Call, Process, Question, Statement, Subscription, operator_id};
use ephor_record::{Decree, Fact, Role, RulingOn};
use tokio::sync::oneshot;

use crate::{
    retrial::{assert_all_same, retried},
    world::{Does, End, PLENTY, Puppet, Setup, World, code, direct, question, writer},
};

struct Asked {
    world: World,
    tool: Arc<Does>,
    process: Process,
    seen: Subscription,
    puppet: Puppet,
    _end: oneshot::Sender<End>,
}

/// A session whose writes take two people.
async fn two_people() -> Asked {
    let tool = Does::saying("written");
    let world = Setup::new().tool(writer("t.write"), tool.clone()).boot().await;
    let text = Constitution::default_text(Environment::Dev);
    let more = r#"@id("two-people") @decision("defer") @quorum("2") forbid (principal, action == Action::"run", resource == Tool::"t.write");"#;
    world.enact(&format!("{text}\n{more}\n")).await.unwrap();
    let mut puppet = world.puppet(PLENTY).await;
    let seen = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.in_turn("go").await;
    Asked { world, tool, process, seen, puppet, _end }
}

impl Asked {
    async fn call(&mut self, arguments: &str) -> (Call, Question) {
        let call = self.process.call(direct("t.write", arguments)).unwrap();
        let asked = question(&mut self.seen).await;
        assert_eq!(asked.quorum, 2);
        (call, asked)
    }

    async fn answer(&self, asked: &Question, key: &SigningKey, decision: Decision) -> Result<u32, BadRuling> {
        let said = self.world.ruling(asked.session, RulingOn::Ticket(asked.ticket), asked.digest);
        self.world.kernel.rule(Statement { decision, ..said }.sign(key)).await
    }

    async fn permit(&self, asked: &Question, key: &SigningKey) -> Result<u32, BadRuling> {
        self.answer(asked, key, Decision::Permit).await
    }

    /// Every verdict comes out again as it stands, and so many rulings of people are on the record.
    async fn holds(&self, rulings: usize) {
        let record = self.world.record().await;
        assert_all_same(&retried(&record));
        let answered = |fact: &Fact| matches!(fact, Fact::Ruling { how, .. } if how == "answered");
        assert_eq!(record.iter().filter(|one| answered(&one.entry.fact)).count(), rulings);
        assert!(record.iter().any(|one| matches!(one.entry.fact, Fact::Ticket { quorum: Some(2), .. })));
    }
}

#[tokio::test]
async fn two_different_people_are_needed_and_the_same_twice_counts_once() {
    let mut asked = two_people().await;
    let (one, two) = (asked.world.enrol(50, Role::Approver).await, asked.world.enrol(51, Role::Approver).await);
    let (call, ticket) = asked.call(r#"{"path":"a"}"#).await;
    assert_eq!(asked.permit(&ticket, &one).await, Ok(1));
    assert_eq!(asked.permit(&ticket, &one).await, Ok(1), "the same again");
    let viewer = asked.world.enrol(52, Role::Operator).await;
    assert_eq!(asked.permit(&ticket, &viewer).await, Err(BadRuling::NotAnApprover("operator")));
    assert_eq!(asked.tool.runs(), 0);
    assert_eq!(asked.permit(&ticket, &two).await, Ok(0));
    assert_eq!((code(&call.ended().await).as_str(), asked.tool.runs()), ("done", 1));
    assert_eq!(asked.permit(&ticket, &two).await, Err(BadRuling::NotOpen(ticket.ticket)));
    asked.holds(3).await;
}

#[tokio::test]
async fn one_refusal_denies_whoever_permits() {
    let mut asked = two_people().await;
    let (one, two) = (asked.world.enrol(50, Role::Approver).await, asked.world.enrol(51, Role::Approver).await);
    let (call, ticket) = asked.call(r#"{"path":"a"}"#).await;
    assert_eq!(asked.permit(&ticket, &one).await, Ok(1));
    asked.answer(&ticket, &two, Decision::Deny).await.unwrap();
    assert_eq!(code(&call.ended().await), "Denied");
    assert!(asked.permit(&ticket, &asked.world.operator).await.is_err());
    assert_eq!(asked.tool.runs(), 0);
    asked.holds(2).await;
}

#[tokio::test]
async fn an_approver_who_was_removed_in_between_does_not_count() {
    let mut asked = two_people().await;
    let world = &asked.world;
    let (one, two, three) = (
        world.enrol(50, Role::Approver).await,
        world.enrol(51, Role::Approver).await,
        world.enrol(52, Role::Owner).await,
    );
    let (call, ticket) = asked.call(r#"{"path":"a"}"#).await;
    assert_eq!(asked.permit(&ticket, &one).await, Ok(1));
    asked.world.decree(Decree::Dismiss { operator: operator_id(&one.verifying_key()) }).await.unwrap();
    assert_eq!(asked.permit(&ticket, &two).await, Ok(1), "one of the two is gone");
    asked.world.decree(Decree::Rank { operator: operator_id(&two.verifying_key()), role: Role::Viewer }).await.unwrap();
    assert_eq!(asked.permit(&ticket, &three).await, Ok(1), "and now the other");
    assert_eq!(asked.tool.runs(), 0);
    asked
        .world
        .decree(Decree::Rank { operator: operator_id(&two.verifying_key()), role: Role::Approver })
        .await
        .unwrap();
    assert_eq!(asked.permit(&ticket, &three).await, Ok(0), "back in office, with what was said before");
    assert_eq!((code(&call.ended().await).as_str(), asked.tool.runs()), ("done", 1));
    asked.holds(4).await;
}

#[tokio::test]
async fn what_one_person_allows_for_a_session_is_not_the_word_of_two() {
    let mut asked = two_people().await;
    asked.world.kernel.rule(asked.world.allow(asked.puppet.session, &["t.write"])).await.unwrap();
    let (call, ticket) = asked.call(r#"{"path":"a"}"#).await;
    assert_eq!(asked.permit(&ticket, &asked.world.operator).await, Ok(1), "one of two");
    asked.answer(&ticket, &asked.world.operator, Decision::Deny).await.unwrap();
    assert_eq!((code(&call.ended().await).as_str(), asked.tool.runs()), ("Denied", 0));
    asked.holds(3).await;
}
