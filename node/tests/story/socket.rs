//! The protocol, spoken by hand over the socket of the home: what a client may not do, whoever it is.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use ed25519_dalek::{Signer, SigningKey};
use ephor_base::{Decision, Digest, SessionId};
use ephor_chain::record::RulingOn;
use ephor_kernel::{Statement, operator_id};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Running, wait_until};

/// A node that runs, and its place.
struct Node {
    place: Place,
    up: Running,
}

/// A connection.
struct Talk(BufReader<UnixStream>);

impl Node {
    fn start() -> Self {
        let place = Place::new();
        let up = place.up();
        Self { place, up }
    }

    /// Connects and hears the challenge.
    fn connect(&self) -> (Talk, Vec<u8>) {
        let stream = UnixStream::connect(self.place.home.join("node.sock")).unwrap();
        // Only so that a node that says nothing fails the test.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut talk = Talk(BufReader::new(stream));
        let first = talk.hear().expect("the node speaks first");
        assert_eq!((&first["say"], &first["protocol"]), (&json!("challenge"), &json!(2)));
        (talk, bytes(first["challenge"].as_str().unwrap()))
    }

    /// Connects as the operator.
    fn operator(&self) -> Talk {
        let (mut talk, challenge) = self.connect();
        talk.say(&authentication(&self.key(), &challenge));
        assert_eq!(talk.hear().unwrap()["say"], "welcome");
        talk
    }

    fn key(&self) -> SigningKey {
        let seed = fs::read(self.place.home.join("keys/operator")).unwrap();
        SigningKey::from_bytes(&seed.try_into().unwrap())
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
        writeln!(self.0.get_mut(), "{request}").unwrap();
    }

    /// The next line; nothing if the node has closed the connection.
    fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Says something, and hears what it is answered; what is seen in between is passed by.
    fn ask(&mut self, request: &Value) -> Value {
        self.say(request);
        self.until(|answer| answer["say"] != "seen")
    }

    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let answer = self.hear().expect("the node goes on talking");
            if is_it(&answer) {
                return answer;
            }
        }
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
        let Statement { session, on, decision, arguments, policy, call, registration, .. } = statement;
        let permit = *decision == Decision::Permit;
        let answer = self.ask(&json!({
            "say": "rule", "session": session, "on": on, "permit": permit,
            "arguments": arguments, "policy": policy, "call": call, "registration": registration, "signature": signature,
        }));
        match answer["say"].as_str().unwrap() {
            "ruled" => Ok(()),
            "refused" => Err(answer["why"].as_str().unwrap().to_owned()),
            other => panic!("{other}"),
        }
    }
}

fn authentication(key: &SigningKey, challenge: &[u8]) -> Value {
    let signature = key.sign(&[b"ephor client v1\n", challenge].concat()).to_bytes();
    json!({"say": "authenticate", "operator": operator_id(&key.verifying_key()), "signature": hex(&signature)})
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
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
    let (mut talk, challenge) = node.connect();
    talk.say(&authentication(&eve, &challenge));
    assert_eq!(talk.hear().unwrap()["say"], "welcome");
    let (session, _) = talk.open(&node.place, true, &writing());
    talk.send(session);
    let question = talk.question();
    // Less than an approver, she may still speak, and not answer.
    node.place.run(&["operator", "role", "eve", "operator"]).succeeded();
    assert!(talk.rule(&permit(&question), &eve).unwrap_err().contains("role `approver`"));
    node.place.run(&["operator", "remove", "eve"]).succeeded();
    assert!(talk.rule(&permit(&question), &eve).unwrap_err().contains("not an operator"));
    for said in [
        json!({"say": "processes"}),
        json!({"say": "send", "session": session, "parts": [{"kind": "typed", "text": "go on"}]}),
        json!({"say": "operate", "operation": {"do": "signal", "signal": "stop", "target": null, "tree": true, "note": ""}}),
    ] {
        assert_eq!(talk.ask(&said)["say"], "refused", "{said}");
    }
    node.place.run(&add).failed(&["enrolled before"]);
    let (mut back, challenge) = node.connect();
    back.say(&authentication(&eve, &challenge));
    assert_eq!(back.hear().unwrap()["say"], "refused");
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
fn a_client_that_does_not_sign_the_challenge_gets_nothing() {
    let node = Node::start();
    let stranger = SigningKey::from_bytes(&[7; 32]);
    let open = json!({"say": "open", "workspace": node.place.workspace, "model": null, "answers": false});
    let as_operator =
        json!({"say": "authenticate", "operator": operator_id(&node.key().verifying_key()), "signature": "00"});
    let (mut old, first) = node.connect();
    let stale = authentication(&node.key(), &first);
    old.say(&json!({"say": "processes"}));
    assert_eq!(old.hear().unwrap()["say"], "refused");
    assert_eq!(old.hear(), None, "the connection is closed");
    for said in
        [json!({"say": "processes"}), open, as_operator, stale, json!("hello"), authentication(&stranger, &first)]
    {
        let (mut talk, _) = node.connect();
        talk.say(&said);
        assert_eq!(talk.hear().unwrap()["say"], "refused", "{said}");
        assert_eq!(talk.hear(), None, "{said}");
    }
    let (mut silent, _) = node.connect();
    assert_eq!(silent.hear(), None, "who stays silent is sent away");
    let place = node.stays_well();
    assert_eq!(place.facts("message").len(), 1, "only the run at the end was taken");
}

#[test]
fn a_line_that_makes_no_sense_is_refused_and_the_connection_lives() {
    let node = Node::start();
    let mut talk = node.operator();
    for line in ["", "garbage", "[]", "{\"say\":\"fly\"}", "{\"say\":\"processes\",\"x\":1}", "\u{7f}\u{0}"] {
        writeln!(talk.0.get_mut(), "{line}").unwrap();
        assert_eq!(talk.hear().unwrap()["say"], "refused", "{line}");
    }
    assert_eq!(talk.ask(&json!({"say": "processes"}))["say"], "processes");
    // What is not even text ends the connection, with a word.
    talk.0.get_mut().write_all(b"\xff\xfe\n").unwrap();
    assert_eq!(talk.hear().unwrap()["say"], "refused");
    assert_eq!(talk.hear(), None);
    node.stays_well();
}

#[test]
fn a_line_without_end_does_not_hurt_the_node() {
    let node = Node::start();
    let long = vec![b'x'; 20 * 1024 * 1024];
    for talk in [node.connect().0, node.operator()] {
        // The node may hang up before it has heard all of it.
        let _hung_up = talk.0.get_ref().write_all(&long);
        let _hung_up = talk.0.get_ref().write_all(b"\n");
    }
    let mut talk = node.operator();
    let _hung_up = talk.0.get_mut().write_all(&long);
    let _hung_up = talk.0.get_mut().write_all(b"\n");
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
        // Before the challenge is answered; with another's key; and in the operator's name under another's signature.
        let (mut talk, _) = node.connect();
        talk.say(&request);
        assert_eq!(talk.hear().unwrap()["say"], "refused");
        assert!(talk.hear().is_none());
        let other = SigningKey::from_bytes(&[1; 32]);
        let (mut talk, challenge) = node.connect();
        talk.say(&authentication(&other, &challenge));
        assert_eq!(talk.hear().unwrap()["say"], "refused");
        assert!(talk.hear().is_none(), "it hears no more");
        let (mut talk, challenge) = node.connect();
        let mut forged = authentication(&other, &challenge);
        forged["operator"] = json!(operator_id(&node.key().verifying_key()));
        talk.say(&forged);
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
    let agent = format!("node/agents/{}/loop", session.to_string().get(..8).unwrap());
    place.run(&["budget", &agent, "--tool-calls", "0"]).succeeded();
    talk.send(session);
    talk.until(|answer| answer["event"] == "held" && answer["by"] == "spent");
    talk.turn_ended();
    // What is sent now is taken, and waits.
    talk.send(session);
    let waiting = || {
        let out = place.run(&["ps", "--json"]).succeeded().stdout;
        let all: Vec<Value> = serde_json::from_str(&out).unwrap();
        all.into_iter().find(|process| process["seat"] == agent.as_str()).unwrap()
    };
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
