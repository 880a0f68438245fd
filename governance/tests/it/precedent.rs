//! A ruling is reused only where it was meant.

use std::collections::BTreeMap;

use ephor_base::{Arguments, Decision, Seat, Seq, Timestamp};
use ephor_governance::{Precedent, Precedents};

fn ruling(number: u64, decision: Decision, others: bool) -> Precedent {
    let pattern = Arguments::parse(r#"{"to":"a@b.example"}"#).unwrap();
    Precedent {
        ruling: Seq(number),
        seat: Seat::root("node").child("agents"),
        tool: "mail.send".parse().unwrap(),
        arguments: pattern.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect::<BTreeMap<_, _>>(),
        others,
        decision,
        until: Timestamp(100),
    }
}

#[test]
fn it_covers_its_seat_tool_arguments_and_time_and_nothing_else() {
    let seat = Seat::root("node").child("agents").child("a");
    let (tool, other) = ("mail.send".parse().unwrap(), "mail.delete".parse().unwrap());
    let arguments = |text: &str| Arguments::parse(text).unwrap();
    let good = arguments(r#"{"to":"a@b.example"}"#);
    let precedent = ruling(1, Decision::Permit, false);
    assert!(precedent.covers(&seat, &tool, &good, Timestamp(99)));
    assert!(!precedent.covers(&seat, &tool, &good, Timestamp(100)), "it has ended");
    assert!(!precedent.covers(&Seat::root("node").child("agentsx"), &tool, &good, Timestamp(1)));
    assert!(!precedent.covers(&seat, &other, &good, Timestamp(1)));
    for bad in ["{}", r#"{"to":"A@b.example"}"#, r#"{"to":"a@b.example","cc":"x"}"#, r#"{"to":["a@b.example"]}"#] {
        assert!(!precedent.covers(&seat, &tool, &arguments(bad), Timestamp(1)), "{bad}");
    }
    let open = ruling(2, Decision::Permit, true);
    assert!(open.covers(&seat, &tool, &arguments(r#"{"to":"a@b.example","body":"x"}"#), Timestamp(1)));
}

#[test]
fn a_refusal_comes_first_and_what_is_revoked_is_gone() {
    let (seat, tool) = (Seat::root("node").child("agents"), "mail.send".parse().unwrap());
    let good = Arguments::parse(r#"{"to":"a@b.example"}"#).unwrap();
    let mut all = Precedents::default();
    all.add(ruling(1, Decision::Permit, false));
    all.add(ruling(2, Decision::Deny, false));
    let decision = |all: &Precedents| all.find(&seat, &tool, &good, Timestamp(1)).map(|found| found.decision);
    assert_eq!(decision(&all), Some(Decision::Deny));
    assert!(all.revoke(Seq(2)) && !all.revoke(Seq(2)));
    assert_eq!(decision(&all), Some(Decision::Permit));
    assert_eq!(all.iter().count(), 1);
}
