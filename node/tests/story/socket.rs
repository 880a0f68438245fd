//! The protocol, spoken by hand over the socket of the home: what a client may not do, whoever it is.

use std::io::{Read, Write};

use ed25519_dalek::SigningKey;
use ephor_base::{Decision, Digest, SessionId};
use ephor_kernel::{Statement, operator_id};
use ephor_record::RulingOn;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    place::{Place, Running, wait_until},
    wire::{Wire, connect, credential, hex},
};

/// A node that runs, and its place.
struct Node {
    place: Place,
    up: Running,
}

/// A connection.
struct Talk(Wire);

impl Node {
    fn start() -> Self {
        let place = Place::new();
        let up = place.up();
        Self { place, up }
    }

    /// Connects, to speak with this key; who speaks is not said yet.
    fn connect(&self, key: &SigningKey) -> Talk {
        let wire = Wire::open(&self.place.home.join("node.sock"), key).expect("the node exchanges keys");
        assert!(wire.is_of(&self.place.home), "the node shows the keys of its home");
        Talk(wire)
    }

    /// Connects as the operator.
    fn operator(&self) -> Talk {
        self.as_operator(&self.key())
    }

    fn as_operator(&self, key: &SigningKey) -> Talk {
        let mut talk = self.connect(key);
        assert_eq!(talk.0.introduce().unwrap()["say"], "welcome");
        talk
    }

    fn key(&self) -> SigningKey {
        credential(&self.place.home.join("keys/operator"))
    }

    /// The node is unharmed: it answers a run, stops in order, and its chain holds.
    fn stays_well(self) -> Place {
        self.place.run(&["run", "list the files"]).succeeded();
        self.up.signal(Signal::TERM);
        self.up.ended().succeeded();
        self.place.verify();
        self.place
    }
}

impl Talk {
    fn say(&mut self, request: &Value) {
        self.0.say(request);
    }

    /// The next answer; nothing if the node has closed the connection.
    fn hear(&mut self) -> Option<Value> {
        self.0.hear()
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.0.ask(request)
    }

    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        self.0.until(is_it)
    }

    /// Opens a session with a model that plays `lines`; its id and the policy.
    fn open(&mut self, place: &Place, answers: bool, lines: &[Value]) -> (SessionId, Digest) {
        let script: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let model = json!({"provider": "script", "name": "test", "script": script});
        let opened =
            self.ask(&json!({"say": "open", "workspace": place.workspace, "model": model, "answers": answers}));
        assert_eq!(opened["say"], "opened", "{opened}");
        let parse = |key: &str| opened[key].clone();
        (serde_json::from_value(parse("session")).unwrap(), serde_json::from_value(parse("policy")).unwrap())
    }

    fn send(&mut self, session: SessionId) {
        self.say(&json!({"say": "send", "session": session, "parts": [{"kind": "typed", "text": "go on"}]}));
    }

    /// The next question to a person.
    fn question(&mut self) -> Value {
        self.until(|answer| answer["event"] == "deferred")
    }

    fn turn_ended(&mut self) {
        self.until(|answer| answer["event"] == "turn_ended");
    }

    /// Puts a ruling; whether it counts.
    fn rule(&mut self, statement: &Statement, key: &SigningKey) -> Result<(), String> {
        let signature = hex(&statement.clone().sign(key).signature);
        self.rule_with(statement, &signature)
    }

    fn rule_with(&mut self, statement: &Statement, signature: &str) -> Result<(), String> {
        let Statement { session, on, decision, arguments, policy, call, registration, shown, .. } = statement;
        let permit = *decision == Decision::Permit;
        let answer = self.ask(&json!({
            "say": "rule", "session": session, "on": on, "permit": permit,
            "arguments": arguments, "policy": policy, "call": call, "registration": registration, "shown": shown,
            "signature": signature,
        }));
        match answer["say"].as_str().unwrap() {
            "ruled" => Ok(()),
            "refused" => Err(answer["why"].as_str().unwrap().to_owned()),
            other => panic!("{other}"),
        }
    }
}

/// A model that writes two files, one after the other.
fn writing() -> [Value; 3] {
    let write = |path: &str| json!({"tool_calls": [{"name": "fs.write", "arguments": {"path": path, "content": "x"}}]});
    [write("one.txt"), write("two.txt"), json!({"text": "done"})]
}

/// The statement that permits what `question` asks.
fn permit(question: &Value) -> Statement {
    let parse = |value: &Value| serde_json::from_value::<Digest>(value.clone()).unwrap();
    Statement {
        session: serde_json::from_value(question["session"].clone()).unwrap(),
        on: RulingOn::Ticket(serde_json::from_value(question["ticket"].clone()).unwrap()),
        decision: Decision::Permit,
        arguments: parse(&question["digest"]),
        policy: parse(&question["verdict"]["policy"]),
        call: serde_json::from_value(question["call"].clone()).unwrap(),
        registration: Some(parse(&question["registration"])),
        always: None,
        note: None,
        shown: Some(Digest::of(question["text"].as_str().unwrap().as_bytes())),
    }
}

#[test]
fn a_signed_ruling_lets_one_call_run_and_no_other() {
    let node = Node::start();
    let mut talk = node.operator();
    let (session, _) = talk.open(&node.place, true, &writing());
    talk.send(session);
    let first = permit(&talk.question());
    talk.rule(&first, &node.key()).unwrap();
    let second = talk.question();
    assert!(node.place.workspace.join("one.txt").exists());
    // The first ruling again, and the first signature under the second ticket.
    assert!(talk.rule(&first, &node.key()).is_err());
    let second = permit(&second);
    let replayed = hex(&first.clone().sign(&node.key()).signature);
    assert!(talk.rule_with(&second, &replayed).is_err());
    assert!(!node.place.workspace.join("two.txt").exists());
    talk.rule(&Statement { decision: Decision::Deny, ..second }, &node.key()).unwrap();
    talk.turn_ended();
    drop(talk);
    let place = node.stays_well();
    assert!(!place.workspace.join("two.txt").exists());
}

#[test]
fn a_ruling_that_is_not_the_operators_counts_for_nothing() {
    let node = Node::start();
    let mut talk = node.operator();
    let (session, policy) = talk.open(&node.place, true, &writing());
    let stranger = SigningKey::from_bytes(&[7; 32]);
    let tools = Statement {
        session,
        on: RulingOn::Tools(vec!["fs.write".parse().unwrap()]),
        decision: Decision::Permit,
        arguments: Digest::of(&[]),
        policy,
        call: None,
        registration: None,
        always: None,
        note: None,
        shown: None,
    };
    assert!(talk.rule(&tools, &stranger).is_err(), "a stranger's signature");
    assert!(talk.rule_with(&tools, "").is_err(), "no signature");
    assert!(talk.rule_with(&tools, "zz").is_err(), "a signature that is none");
    talk.send(session);
    let question = talk.question();
    let right = permit(&question);
    assert!(talk.rule(&right, &stranger).is_err(), "a stranger's signature on a ticket");
    let denied = Statement { decision: Decision::Deny, ..right.clone() };
    let turned = hex(&denied.sign(&node.key()).signature);
    assert!(talk.rule_with(&right, &turned).is_err(), "a refusal turned into a permit");
    for wrong in [
        Statement { arguments: Digest::of(b"others"), ..right.clone() },
        Statement { policy: Digest::of(b"another"), ..right.clone() },
        Statement { session: SessionId([9; 16]), ..right.clone() },
        Statement { on: RulingOn::Ticket(ephor_base::TicketId(4711)), ..right.clone() },
    ] {
        assert!(talk.rule(&wrong, &node.key()).is_err(), "{wrong:?}");
    }
    assert!(!node.place.workspace.join("one.txt").exists(), "nothing ran");
    talk.say(&json!({"say": "cancel", "session": session}));
    talk.turn_ended();
    drop(talk);
    let place = node.stays_well();
    assert!(!place.workspace.join("one.txt").exists());
    let rulings = place.facts("ruling");
    assert!(rulings.iter().all(|fact| fact["decision"] != "permit"), "{rulings:?}");
}

#[test]
fn who_was_dismissed_can_do_nothing_more_on_a_connection_that_is_open() {
    let node = Node::start();
    let eve = SigningKey::from_bytes(&[7; 32]);
    let public = hex(eve.verifying_key().as_bytes());
    let add = ["operator", "add", "eve", "--role", "approver", "--public", &public];
    node.place.run(&add).succeeded();
    let mut talk = node.as_operator(&eve);
    let (session, _) = talk.open(&node.place, true, &writing());
    talk.send(session);
    let question = talk.question();
    // Less than an approver, she may still speak, and not answer.
    node.place.run(&["operator", "role", "eve", "operator"]).succeeded();
    assert!(talk.rule(&permit(&question), &eve).unwrap_err().contains("role `approver`"));
    node.place.run(&["operator", "remove", "eve"]).succeeded();
    // Her session ends with her office, and nothing more is heard of her.
    let heard: Vec<Value> = std::iter::from_fn(|| talk.hear()).collect();
    assert!(heard.iter().any(|answer| answer.to_string().contains("its operator was dismissed")), "{heard:?}");
    node.place.run(&add).failed(&["enrolled before"]);
    let mut back = node.connect(&eve);
    assert_eq!(back.0.introduce().unwrap()["say"], "refused");
    drop((talk, back));
    let place = node.stays_well();
    assert!(!place.workspace.join("one.txt").exists());
}

#[test]
fn a_ruling_of_one_session_does_not_count_in_another() {
    let node = Node::start();
    let (mut one, mut two) = (node.operator(), node.operator());
    let (first, policy) = one.open(&node.place, true, &writing());
    let (second, _) = two.open(&node.place, true, &writing());
    let tools = |session| Statement {
        session,
        on: RulingOn::Tools(vec!["fs.write".parse().unwrap()]),
        decision: Decision::Permit,
        arguments: Digest::of(&[]),
        policy,
        call: None,
        registration: None,
        always: None,
        note: None,
        shown: None,
    };
    one.rule(&tools(first), &node.key()).unwrap();
    let signature = hex(&tools(first).sign(&node.key()).signature);
    assert!(two.rule_with(&tools(second), &signature).is_err());
    two.send(second);
    two.question();
    assert!(!node.place.workspace.join("one.txt").exists());
    // Nor may a connection speak in a session that is not its own.
    let refused = two.ask(&json!({"say": "send", "session": first, "parts": [{"kind": "typed", "text": "go on"}]}));
    assert_eq!(refused["say"], "refused");
    drop((one, two));
    node.stays_well();
}

#[test]
fn a_client_that_does_not_prove_a_credential_gets_nothing() {
    let node = Node::start();
    let (own, stranger) = (node.key(), SigningKey::from_bytes(&[7; 32]));
    let operator = operator_id(&own.verifying_key());
    let open = json!({"say": "open", "workspace": node.place.workspace, "model": null, "answers": false});
    for said in [json!({"say": "processes"}), open, json!("hello"), json!({"say": "authenticate"})] {
        let mut talk = node.connect(&own);
        talk.say(&said);
        assert_eq!(talk.hear(), None, "{said}");
    }
    // With a key that is nobody's, in the operator's name, and in the operator's name with the operator's words of another time.
    let mut talk = node.connect(&stranger);
    assert_eq!(talk.0.introduce().unwrap()["say"], "refused");
    assert_eq!(talk.hear(), None, "the connection is closed");
    let mut talk = node.connect(&stranger);
    talk.say(&json!({"say": "authenticate", "operator": operator}));
    assert_eq!(talk.hear().unwrap()["say"], "refused");
    let said = json!({"say": "authenticate", "operator": operator}).to_string();
    for change in [|wire: &mut Wire| wire.number = 1, |wire: &mut Wire| wire.hash = [0; 32]] {
        let mut talk = node.connect(&own);
        change(&mut talk.0);
        talk.0.say_bytes(said.as_bytes());
        assert_eq!(talk.hear().unwrap()["say"], "refused");
        assert_eq!(talk.hear(), None);
    }
    let mut talk = node.connect(&own);
    talk.0.put(said.as_bytes());
    assert_eq!(talk.hear(), None, "what is not signed at all");
    // Who says nothing is sent away.
    let mut silent = connect(&node.place.home.join("node.sock"));
    silent.read_to_end(&mut Vec::new()).unwrap();
    let place = node.stays_well();
    assert_eq!(place.facts("message").len(), 1, "only the run at the end was taken");
}

#[test]
fn each_request_is_signed_for_its_place() {
    let node = Node::start();
    for change in [
        |wire: &mut Wire| wire.number += 1,
        |wire: &mut Wire| wire.hash[0] ^= 1,
        |wire: &mut Wire| {
            wire.key = SigningKey::from_bytes(&[7; 32]);
        },
    ] {
        let mut talk = node.operator();
        change(&mut talk.0);
        assert_eq!(talk.ask(&json!({"say": "processes"}))["say"], "refused");
        assert_eq!(talk.hear(), None, "and nothing more is heard");
    }
    node.stays_well();
}

#[test]
fn a_message_that_makes_no_sense_is_refused_and_the_connection_lives() {
    let node = Node::start();
    let mut talk = node.operator();
    for said in ["", "garbage", "[]", "{\"say\":\"fly\"}", "{\"say\":\"processes\",\"x\":1}", "\u{7f}\u{0}"] {
        talk.0.say_bytes(said.as_bytes());
        assert_eq!(talk.hear().unwrap()["say"], "refused", "{said}");
    }
    talk.0.say_bytes(b"\xff\xfe");
    assert_eq!(talk.hear().unwrap()["say"], "refused", "what is not even text");
    assert_eq!(talk.ask(&json!({"say": "processes"}))["say"], "processes");
    node.stays_well();
}

#[test]
fn a_message_without_end_does_not_hurt_the_node() {
    let node = Node::start();
    let long = vec![b'x'; 20 * 1024 * 1024];
    let mut stranger = connect(&node.place.home.join("node.sock"));
    // The node may hang up before it has heard all of it.
    let _hung_up = stranger.write_all(&long);
    let mut talk = node.operator();
    talk.0.say_bytes(&long);
    if let Some(answer) = talk.hear() {
        assert_eq!(answer["say"], "refused");
    }
    drop(talk);
    node.stays_well();
}

#[test]
fn nobody_but_an_operator_stops_resumes_or_raises_a_budget() {
    let node = Node::start();
    let stop = json!({"do": "signal", "signal": "stop", "target": null, "tree": true, "note": ""});
    let raise = json!({"do": "budget", "target": "1", "changes": {"tokens": {"to": 9}}, "note": ""});
    let bury = json!({"do": "bury", "message": 1, "note": ""});
    for operation in [&stop, &raise, &bury] {
        let request = json!({"say": "operate", "operation": operation});
        // Before it was said who speaks; with another's key; and in the operator's name under another's signature.
        let mut talk = node.connect(&node.key());
        talk.say(&request);
        assert_eq!(talk.hear(), None);
        let other = SigningKey::from_bytes(&[1; 32]);
        let mut talk = node.connect(&other);
        assert_eq!(talk.0.introduce().unwrap()["say"], "refused");
        assert!(talk.hear().is_none(), "it hears no more");
        let mut talk = node.connect(&other);
        talk.say(&json!({"say": "authenticate", "operator": operator_id(&node.key().verifying_key())}));
        assert_eq!(talk.hear().unwrap()["say"], "refused");
    }
    // Who acts is never data.
    let mut talk = node.operator();
    let mut named = stop.clone();
    named["operator"] = json!("00000000000000000000000000000000");
    assert_eq!(talk.ask(&json!({"say": "operate", "operation": named}))["say"], "refused");
    drop(talk);
    let place = node.stays_well();
    assert_eq!(place.facts("signal").len(), 0);
}

#[test]
fn a_spent_budget_suspends_the_agent_until_it_is_raised_from_the_command_line() {
    let node = Node::start();
    let place = &node.place;
    let read = json!({"tool_calls": [{"name": "fs.list", "arguments": {"path": "."}}]});
    let mut talk = node.operator();
    let (session, _) = talk.open(place, false, &[read.clone(), json!({"text": "listed"}), json!({"text": "again"})]);
    let agent = format!("node/agents/{session}/loop");
    place.run(&["budget", &agent, "--tool-calls", "0"]).succeeded();
    talk.send(session);
    talk.until(|answer| answer["event"] == "held" && answer["by"] == "spent");
    talk.turn_ended();
    // What is sent now is taken, and waits.
    talk.send(session);
    let waiting = || place.processes().into_iter().find(|process| process["seat"] == agent.as_str()).unwrap();
    wait_until("the message waits", || waiting()["waiting"] == 1);
    assert_eq!(waiting()["held"], "spent");
    place.run(&["resume", &agent]).failed(&["is spent", "ephor budget"]);
    assert_eq!(waiting()["held"], "spent", "an operator who only resumes gives it nothing to spend");
    place.run(&["budget", &agent, "--tool-calls", "+5", "--note", "go on"]).succeeded();
    talk.until(|answer| answer["event"] == "held" && answer["by"].is_null());
    talk.turn_ended();
    drop(talk);
    let limits = node.stays_well().facts("limit");
    assert_eq!(limits.len(), 2);
    assert_eq!(limits[1]["note"], "go on");
}
