//! Attacks on plans: the attacker has every untrusted result and chooses what the worker reads and calls. Written by others who had read only
//! what the gate promises; each beside the honest trace that it is an attack on.

use std::{fs, path::Path};

use ephor_base::Decision;
use ephor_governance::{Constitution, Environment, OperatorPolicy, replay};
use serde::Deserialize;
use serde_json::Value;

/// What is not held, and why. To be shortened only.
const OPEN: [(&str, &[u16]); 4] = [
    // Words that a person typed narrow a read as the worker likes.
    ("typed words in a read", &[75, 282, 283, 284]),
    // A registration that says more than its tool keeps: an id that is an address, an answer that repeats an earlier call.
    ("registrations that promise too much", &[292, 308]),
    // Pages of no size.
    ("size of a page", &[129]),
    // The same: a host by IDNA, an address without case, and one of two that a list asked for and did not get.
    ("held in fact", &[234, 331, 347]),
];

#[derive(Deserialize)]
struct Attack {
    attack: String,
    lines: Vec<String>,
    forbidden: Vec<String>,
    twin: Vec<String>,
}

/// The calls that are permitted. A trace that is refused permits none behind that.
fn permitted(lines: &[String]) -> Vec<String> {
    let constitution = Constitution::parse(Constitution::default_text(Environment::Dev)).unwrap();
    let answers = replay(lines.iter().map(String::as_str), constitution, OperatorPolicy::default());
    let answers = answers.map_while(Result::ok).filter(|answer| answer.decision == Decision::Permit);
    answers.map(|answer| answer.id).collect()
}

#[test]
fn attacks_on_plans_are_held_and_their_honest_twins_are_not() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/against-plans.jsonl");
    let text = fs::read_to_string(path).unwrap();
    let (mut count, mut twins) = (0, 0);
    for line in text.lines() {
        let attack: Attack = serde_json::from_str(line).unwrap();
        let number: u16 = attack.attack.split_once(' ').unwrap().0.parse().unwrap();
        let mut through = permitted(&attack.lines);
        through.retain(|id| attack.forbidden.contains(id));
        let is_open = OPEN.iter().any(|(_, numbers)| numbers.contains(&number));
        assert_eq!(!through.is_empty(), is_open, "{}: {through:?}", attack.attack);
        if !attack.twin.is_empty() {
            let lines = attack.twin.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let last = lines.rev().find(|line| line["type"] == "call").unwrap()["id"].clone();
            assert_eq!(
                permitted(&attack.twin).last().map(String::as_str),
                last.as_str(),
                "the twin of {}",
                attack.attack
            );
            twins += 1;
        }
        count += 1;
    }
    let open: usize = OPEN.iter().map(|(_, numbers)| numbers.len()).sum();
    println!("{count} attacks on plans, {twins} with a twin, {open} not held");
}
