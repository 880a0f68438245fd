//! Who may answer: the record says, at the moment of the answer.

use ed25519_dalek::SigningKey;
use ephor_base::Seq;
use ephor_kernel::{BadRuling, NotDecreed, Roster, operator_id};
use ephor_record::{Decree, Fact, Role, RulingOn};

use crate::world::{Does, PLENTY, Setup, code, direct, question, writer};

#[tokio::test]
async fn only_an_approver_in_office_answers() {
    let tool = Does::saying("written");
    let world = Setup::new().tool(writer("t.write"), tool.clone()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let mut seen = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.in_turn("go").await;
    let call = process.call(direct("t.write", r#"{"path":"a"}"#)).unwrap();
    let asked = question(&mut seen).await;
    let permit = || world.ruling(asked.session, RulingOn::Ticket(asked.ticket), asked.digest);
    let allow =
        || world.ruling(puppet.session, RulingOn::Tools(vec!["t.write".parse().unwrap()]), ephor_base::Digest::of(&[]));
    for (seed, role) in [(20, Role::Viewer), (21, Role::Operator)] {
        let key = world.enrol(seed, role).await;
        for statement in [permit(), allow()] {
            assert_eq!(world.kernel.rule(statement.sign(&key)).await, Err(BadRuling::NotAnApprover(role.name())));
        }
    }
    let approver = world.enrol(22, Role::Approver).await;
    let id = operator_id(&approver.verifying_key());
    world.decree(Decree::Rank { operator: id, role: Role::Viewer }).await.unwrap();
    assert_eq!(world.kernel.rule(permit().sign(&approver)).await, Err(BadRuling::NotAnApprover("viewer")));
    let other = world.enrol(23, Role::Approver).await;
    world.decree(Decree::Dismiss { operator: operator_id(&other.verifying_key()) }).await.unwrap();
    assert_eq!(world.kernel.rule(permit().sign(&other)).await, Err(BadRuling::NotAnOperator));
    assert_eq!(tool.runs(), 0);
    world.decree(Decree::Rank { operator: id, role: Role::Approver }).await.unwrap();
    world.kernel.rule(permit().sign(&approver)).await.unwrap();
    assert_eq!((code(&call.ended().await).as_str(), tool.runs()), ("done", 1));
    let stored = world.record().await;
    let ruling = stored.iter().find(|stored| matches!(stored.entry.fact, Fact::Ruling { .. })).unwrap();
    assert_eq!(ruling.entry.subject.operator, Some(id), "the record names who answered");
}

#[tokio::test]
async fn only_an_owner_decrees_and_never_the_last_owner_away() {
    let world = Setup::new().boot().await;
    let approver = world.enrol(30, Role::Approver).await;
    let (owner, own) = (world.who(), operator_id(&approver.verifying_key()));
    let stranger = SigningKey::from_bytes(&[31; 32]);
    let enrol =
        |key: &SigningKey| Decree::Enrol { key: key.verifying_key().to_bytes(), name: "eve".into(), role: Role::Owner };
    let Roster { origin, latest, operators } = world.kernel.roster();
    assert_eq!(operators.len(), 2);
    for (who, decree) in [
        (own, enrol(&stranger).sign(&origin, latest, &approver)),
        (owner, enrol(&stranger).sign(&origin, latest, &approver)),
        (operator_id(&stranger.verifying_key()), enrol(&stranger).sign(&origin, latest, &stranger)),
        (owner, enrol(&stranger).sign(&origin, Seq(latest.0 - 1), &world.operator)),
        (owner, enrol(&stranger).sign("ephor/00", latest, &world.operator)),
        (owner, Decree::Dismiss { operator: owner }.sign(&origin, latest, &world.operator)),
        (owner, Decree::Rank { operator: owner, role: Role::Viewer }.sign(&origin, latest, &world.operator)),
    ] {
        assert!(matches!(world.kernel.decree(who, decree).await, Err(NotDecreed::Rule(_))));
    }
    assert_eq!(world.kernel.roster().operators, operators);
    world.decree(Decree::Rank { operator: own, role: Role::Owner }).await.unwrap();
    world.decree(Decree::Dismiss { operator: owner }).await.unwrap();
    assert_eq!((world.kernel.role(owner), world.kernel.role(own)), (None, Some(Role::Owner)));
}
