//! What reaches a node over its socket.

use std::{
    fs,
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use ed25519_dalek::SigningKey;
use rustix::process::Signal;
use serde_json::{Value, json};
use snow::Builder;

use crate::{
    place::{Place, Running, wait_until},
    wire::{PATTERN, PROLOGUE, Wire, connect, credential, exchange, greeting, hex},
};

/// What a node may have in memory while it is attacked, in kilobytes.
const MOST_MEMORY: u64 = 150 * 1024;

/// Puts something in the place of a node's socket; where the node itself is found from then on.
fn in_place_of(place: &Place) -> (UnixListener, PathBuf) {
    let (socket, real) = (place.home.join("node.sock"), place.home.join("node.real"));
    fs::rename(&socket, &real).unwrap();
    (UnixListener::bind(&socket).unwrap(), real)
}

/// Which byte of what passes is changed: of those to the node or of those to the client, and which.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    ToNode(usize),
    ToClient(usize),
}

/// What a relay has seen and does.
struct Relay {
    seen: Mutex<Vec<u8>>,
    change: Mutex<Option<Change>>,
    /// How many bytes went to the node and to the client on the latest connection.
    passed: Mutex<Arc<[AtomicUsize; 2]>>,
}

impl Relay {
    /// Passes everything on between the clients of a home and its node, and changes what it is told to.
    fn start(place: &Place) -> Arc<Self> {
        let (listener, real) = in_place_of(place);
        let relay = Arc::new(Self { seen: Mutex::default(), change: Mutex::default(), passed: Default::default() });
        let shared = relay.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(node) = UnixStream::connect(&real) else { return };
                let passed: Arc<[AtomicUsize; 2]> = Arc::default();
                *shared.passed.lock().unwrap() = passed.clone();
                let (client_again, node_again) = (client.try_clone().unwrap(), node.try_clone().unwrap());
                let (up, down) = (shared.clone(), shared.clone());
                let passed_again = passed.clone();
                thread::spawn(move || up.pass(client, node, &passed[0], Change::ToNode));
                thread::spawn(move || down.pass(node_again, client_again, &passed_again[1], Change::ToClient));
            }
        });
        relay
    }

    fn pass(&self, mut from: UnixStream, mut to: UnixStream, passed: &AtomicUsize, changed: impl Fn(usize) -> Change) {
        let mut buffer = [0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let change = *self.change.lock().unwrap();
            for (at, byte) in buffer[..length].iter_mut().enumerate() {
                let place = passed.load(Ordering::SeqCst) + at;
                if change == Some(changed(place)) {
                    *byte ^= 1;
                }
            }
            self.seen.lock().unwrap().extend(&buffer[..length]);
            passed.fetch_add(length, Ordering::SeqCst);
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _closed = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
    }

    fn passed(&self) -> [usize; 2] {
        let passed = self.passed.lock().unwrap().clone();
        [passed[0].load(Ordering::SeqCst), passed[1].load(Ordering::SeqCst)]
    }

    fn has_seen(&self, words: &str) -> bool {
        self.seen.lock().unwrap().windows(words.len()).any(|window| window == words.as_bytes())
    }
}

fn stop(up: Running) {
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

fn socket(place: &Place) -> PathBuf {
    place.home.join("node.sock")
}

fn owner(place: &Place) -> SigningKey {
    credential(&place.home.join("keys/operator"))
}

/// Connects as an operator.
fn client(socket: &Path, key: &SigningKey) -> Wire {
    let mut wire = Wire::open(socket, key).unwrap();
    assert_eq!(wire.introduce().unwrap()["say"], "welcome");
    wire
}

#[test]
fn a_relay_can_read_nothing_of_what_is_said() {
    let place = Place::new();
    place.file("diary.txt", "the magpie nests in the old oak");
    let up = place.up();
    let relay = Relay::start(&place);
    let read = json!({"tool_calls": [{"name": "fs.read", "arguments": {"path": "diary.txt"}}]});
    let ran = place.play(&[], &[read, json!({"text": "a magpie was mentioned"})]).succeeded();
    assert!(ran.stdout.contains("a magpie was mentioned"), "the conversation went through the relay: {ran}");
    place.run(&["ps"]).succeeded();
    assert!(relay.has_seen("challenge"), "the relay saw the greeting");
    for word in ["magpie", "diary", "go on", "authenticate", "welcome", "session", "owner", "processes"] {
        assert!(!relay.has_seen(word), "`{word}` was to be read");
    }
    let operator = ephor_kernel::operator_id(&owner(&place).verifying_key()).to_string();
    assert!(!relay.has_seen(&operator), "who speaks was to be read");
    stop(up);
    place.verify();
}

/// Suspends every agent with a note of its own, over `socket`; what the client was told, if anything.
fn suspend(socket: &Path, key: &SigningKey, note: &str) -> Option<Value> {
    let stream = UnixStream::connect(socket).ok()?;
    // Where a length was changed, each side may wait for the other: then nothing was believed.
    stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let mut wire = Wire::on(stream, key)?;
    (wire.introduce()?["say"] == "welcome").then_some(())?;
    let operation = json!({"do": "signal", "signal": "suspend", "target": null, "tree": true, "note": note});
    wire.say(&json!({"say": "operate", "operation": operation}));
    // Whoever waits for more than comes, because a length was changed, is not to wait for long.
    wire.ends();
    wire.hear()
}

#[test]
fn nothing_that_a_relay_changes_is_carried_out() {
    let place = Place::new();
    let up = place.up();
    let key = owner(&place);
    let relay = Relay::start(&place);
    let note = |number: usize| format!("as it was said {number:06}");
    assert_eq!(suspend(&socket(&place), &key, &note(0)).unwrap()["say"], "operated");
    let [to_node, to_client] = relay.passed();
    assert!(to_node > 300 && to_client > 200, "{to_node} and {to_client} bytes were looked at");
    let changes = (0..to_node).map(Change::ToNode).chain((0..to_client).map(Change::ToClient));
    for (number, change) in (1..).zip(changes) {
        *relay.change.lock().unwrap() = Some(change);
        let told = suspend(&socket(&place), &key, &note(number));
        // A changed byte to the node is never acted on, and one to the client is never believed.
        match change {
            Change::ToNode(at) => {
                assert_eq!(told, None, "byte {at} to the node was changed, and the client was answered")
            }
            Change::ToClient(at) => assert_eq!(told, None, "byte {at} to the client was changed, and believed"),
        }
    }
    *relay.change.lock().unwrap() = None;
    stop(up);
    place.verify();
    let said: Vec<String> =
        place.facts("signal").iter().map(|fact| fact["note"].as_str().unwrap().to_owned()).collect();
    assert_eq!(said[0], note(0));
    // What was carried out is what the client said, and of the changed connections only those whose request had passed.
    let whole: Vec<String> = (0..=to_node + to_client).map(note).collect();
    for note in &said[1..] {
        let number = whole.iter().position(|one| one == note);
        assert!(number.is_some_and(|number| number > to_node), "`{note}` was carried out");
    }
}

/// Passes on what a client says until it is known: its half of the exchange of keys, and the frame that says who it is, which is given.
fn let_in(client: &mut UnixStream, node: &mut UnixStream) -> Vec<u8> {
    let mut half = [0; 48];
    client.read_exact(&mut half).unwrap();
    node.write_all(&half).unwrap();
    let mut frame = vec![0; 2];
    client.read_exact(&mut frame).unwrap();
    let length = usize::from(u16::from_be_bytes([frame[0], frame[1]]));
    frame.resize(2 + length, 0);
    client.read_exact(&mut frame[2..]).unwrap();
    node.write_all(&frame).unwrap();
    frame
}

#[test]
fn a_relay_says_nothing_of_its_own() {
    let place = Place::new();
    let up = place.up();
    let (listener, real) = in_place_of(&place);
    // It lets the client prove who it is, and then speaks in its place.
    let relay = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut node = UnixStream::connect(&real).unwrap();
        let (mut back, mut forth) = (node.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut back, &mut forth));
        let introduction = let_in(&mut client, &mut node);
        // The same once more, and a word of its own, as a frame and as a line.
        let stop = json!({"say": "operate", "operation": {"do": "signal", "signal": "stop", "target": null, "tree": true, "note": "mitm"}});
        let stop = stop.to_string();
        let length = u16::try_from(stop.len()).unwrap().to_be_bytes();
        let _hung_up = (node.write_all(&introduction), node.write_all(&length), node.write_all(stop.as_bytes()));
        let mut rest = Vec::new();
        let _hung_up = node.read_to_end(&mut rest);
    });
    place.run(&["ps"]).failed(&[]);
    relay.join().unwrap();
    stop(up);
    assert_eq!(place.facts("signal").len(), 0);
    place.verify();
}

/// Poses as a node: exchanges keys with a client, shows it this signature, and hears what else it says.
fn pose(listener: &UnixListener, vouched: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (mut client, _) = listener.accept().unwrap();
    let mut noise = Builder::new(PATTERN.parse().unwrap()).prologue(PROLOGUE).unwrap().build_initiator().unwrap();
    let mut half = [0; 48];
    let length = noise.write_message(&[], &mut half).unwrap();
    // The number of the version is that of the node, which the caller has asked.
    let hello =
        json!({"say": "challenge", "protocol": protocol(), "challenge": hex(&half[..length])}).to_string() + "\n";
    client.write_all(hello.as_bytes()).unwrap();
    let mut theirs = [0; 48];
    client.read_exact(&mut theirs).unwrap();
    noise.read_message(&theirs, &mut []).unwrap();
    let hash = exchange(noise.get_handshake_hash(), &hello);
    let mut noise = noise.into_transport_mode().unwrap();
    let plain = [vouched(&hash), vec![0]].concat();
    let mut frame = vec![0; plain.len() + 16];
    noise.write_message(&plain, &mut frame).unwrap();
    let length = u16::try_from(frame.len()).unwrap().to_be_bytes();
    client.write_all(&[length.as_slice(), &frame].concat()).unwrap();
    let mut said = Vec::new();
    client.read_to_end(&mut said).unwrap();
    said
}

/// The version that the binary speaks, as a node of it says.
fn protocol() -> u64 {
    static VERSION: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *VERSION.get_or_init(|| {
        let place = Place::new();
        let up = place.up();
        let hello: Value = serde_json::from_str(&greeting(&connect(&socket(&place))).unwrap()).unwrap();
        let version = hello["protocol"].as_u64().unwrap();
        stop(up);
        version
    })
}

#[test]
fn what_answers_without_the_keys_of_the_home_is_told_nothing() {
    protocol();
    let place = Place::new();
    let up = place.up();
    let (listener, real) = in_place_of(&place);
    let key = owner(&place);
    let poser = thread::spawn(move || {
        let mut heard = Vec::new();
        // With no signature, with one of another key, and with one that the node made for its own exchange.
        for number in 0..15 {
            heard.extend(pose(&listener, |hash| match number / 5 {
                0 => vec![0; 64],
                1 => ed25519_dalek::Signer::sign(&SigningKey::from_bytes(&[7; 32]), hash).to_bytes().to_vec(),
                _ => Wire::open(&real, &key).unwrap().vouched,
            }));
        }
        heard
    });
    for _ in 0..3 {
        place.run(&["ps"]).failed(&["does not have the keys of this home", "keys/log.pub", "nothing was said to it"]);
    }
    assert_eq!(poser.join().unwrap(), Vec::<u8>::new(), "it heard something");
    stop(up);
}

#[test]
fn a_node_of_another_version_is_named_with_what_to_type() {
    let place = Place::new();
    let up = place.up();
    let (listener, _) = in_place_of(&place);
    let other = thread::spawn(move || {
        for _ in 0..2 {
            let (mut client, _) = listener.accept().unwrap();
            writeln!(client, "{}", json!({"say": "challenge", "protocol": 2, "challenge": "00".repeat(32)})).unwrap();
            let mut said = Vec::new();
            client.read_to_end(&mut said).unwrap();
            assert_eq!(said, b"", "nothing is said to another version");
        }
    });
    let kill = format!("`kill {}`", std::process::id());
    place.run(&["ps"]).failed(&["another version of Ephor", &kill]);
    place.run(&["run", "hello"]).failed(&["another version of Ephor", &kill]);
    other.join().unwrap();
    stop(up);
}

/// What the system says of the memory and the descriptors of a node: now, at most, and how many descriptors.
fn memory(place: &Place) -> (u64, u64, usize) {
    let status = fs::read_to_string(format!("/proc/{}/status", pid_of(place))).unwrap();
    let kilobytes = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let descriptors = fs::read_dir(format!("/proc/{}/fd", pid_of(place))).unwrap().count();
    (kilobytes("VmRSS"), kilobytes("VmHWM"), descriptors)
}

/// The process that answers on the socket.
fn pid_of(place: &Place) -> i32 {
    rustix::net::sockopt::socket_peercred(connect(&socket(place))).unwrap().pid.as_raw_nonzero().get()
}

#[test]
fn who_only_looks_and_who_proves_nothing_leaves_no_trace_on_the_record() {
    let place = Place::new();
    let up = place.up();
    let is_exit =
        |entry: &Value| entry["fact"]["kind"] == "exit" && entry["subject"]["seat"] == "node/services/wasm-compiler";
    wait_until("the boot is on the record", || place.log_now().iter().any(is_exit));
    let before = place.log_now().len();
    for _ in 0..2000 {
        drop(connect(&socket(&place)));
    }
    let stranger = SigningKey::from_bytes(&[7; 32]);
    for _ in 0..100 {
        let mut wire = Wire::open(&socket(&place), &stranger).unwrap();
        assert_eq!(wire.introduce().unwrap()["say"], "refused");
    }
    for looks in [&["ps"][..], &["ps", "--json"], &["approvals"], &["operator", "list"], &["sessions"], &["precedents"]]
    {
        place.run(looks).succeeded();
    }
    let shown = place.run(&["ps", "--json"]).succeeded().stdout;
    let clients = shown.matches("services/client-").count();
    assert!(clients <= 1, "strangers have no process: {shown}");
    let (now, most, descriptors) = memory(&place);
    println!("churn: {now} kB now, {most} kB at most, {descriptors} descriptors");
    assert!(most < MOST_MEMORY, "{most} kB");
    stop(up);
    let log = place.log();
    let since = &log[before..];
    assert!(since.iter().all(|entry| entry["fact"]["kind"] == "exit" || entry["fact"]["kind"] == "stop"), "{since:#?}");
    assert!(!log.iter().any(|entry| entry["subject"]["seat"].as_str().is_some_and(|seat| seat.contains("client-"))));
    place.verify();
}

#[test]
fn what_strangers_send_is_not_kept_in_memory() {
    let place = Place::new();
    let up = place.up();
    let fat = Arc::new(vec![b'a'; 15 * 1024 * 1024]);
    // Before the exchange of keys and after it.
    let senders: Vec<_> = (0..250)
        .map(|number| {
            let (socket, fat) = (socket(&place), fat.clone());
            let send = move || {
                let Ok(mut stream) = UnixStream::connect(&socket) else { return };
                if number % 2 == 0 {
                    let _hung_up = stream.write_all(&fat);
                } else if let Some(mut wire) = Wire::on(stream, &SigningKey::from_bytes(&[7; 32])) {
                    wire.put(&fat);
                }
            };
            thread::Builder::new().stack_size(256 * 1024).spawn(send).unwrap()
        })
        .collect();
    place.run(&["ps"]).succeeded();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let (now, most, descriptors) = memory(&place);
    println!("fat: {now} kB now, {most} kB at most, {descriptors} descriptors");
    assert!(most < MOST_MEMORY, "{most} kB");
    stop(up);
    place.verify();
}

#[test]
fn strangers_take_no_descriptor_that_a_tool_needs() {
    let place = Place::new();
    place.file("notes.md", "the meeting is at ten");
    let up =
        Running::start(place.shell("sh").args(["-c", "ulimit -n 64; exec \"$0\" up", env!("CARGO_BIN_EXE_ephor")]));
    wait_until("the node takes clients", || place.run(&["ps"]).status.success());
    let strangers: Vec<UnixStream> = (0..80).map(|_| connect(&socket(&place))).collect();
    let read = json!({"tool_calls": [{"name": "fs.read", "arguments": {"path": "notes.md"}}]});
    let list = json!({"tool_calls": [{"name": "fs.list", "arguments": {"path": "."}}]});
    let ran = place.play(&[], &[read, list, json!({"text": "done"})]).succeeded();
    assert!(ran.seen("ended").iter().all(|ended| ended["end"] == "done"), "{ran}");
    let (now, most, descriptors) = memory(&place);
    println!("strangers: {now} kB now, {most} kB at most, {descriptors} descriptors");
    assert!(most < MOST_MEMORY, "{most} kB");
    drop(strangers);
    stop(up);
    place.verify();
}

/// Enrols an operator without a passphrase; their key.
fn enrol(place: &Place, name: &str, role: &str) -> SigningKey {
    place.run(&["operator", "add", name, "--role", role, "--unprotected"]).succeeded();
    credential(&place.home.join("keys/operators").join(name))
}

/// Opens a session with a model that plays `lines`.
fn open(wire: &mut Wire, place: &Place, lines: &[Value]) -> Value {
    let script: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let model = json!({"provider": "script", "name": "test", "script": script});
    let opened = wire.ask(&json!({"say": "open", "workspace": place.workspace, "model": model, "answers": true}));
    assert_eq!(opened["say"], "opened", "{opened}");
    opened["session"].clone()
}

fn send(wire: &mut Wire, session: &Value, text: &str) -> Value {
    wire.ask(&json!({"say": "send", "session": session, "parts": [{"kind": "typed", "text": text}]}))
}

fn operate(wire: &mut Wire, operation: &Value) -> Value {
    wire.ask(&json!({"say": "operate", "operation": operation}))
}

#[test]
fn nobody_types_into_the_session_of_another_or_reads_their_dead_letters() {
    let place = Place::new();
    let up = place.up();
    let (ada, eve) = (enrol(&place, "ada", "operator"), enrol(&place, "eve", "operator"));
    let mut adas = client(&socket(&place), &ada);
    let session = open(&mut adas, &place, &[json!({"text": "hello"})]);
    place.run(&["suspend", "--all"]).succeeded();
    assert_eq!(send(&mut adas, &session, "the combination is 4711")["say"], "accepted");
    place.run(&["stop", "--all"]).succeeded();
    place.run(&["resume", "--all"]).succeeded();
    let letters = place.run(&["dead", "--json"]).succeeded().stdout;
    let letter: Value = serde_json::from_str(letters.lines().next().expect("a dead letter")).unwrap();
    let message = letter["message"].clone();
    let (mut adas, mut eves) = (client(&socket(&place), &ada), client(&socket(&place), &eve));
    let mut owners = client(&socket(&place), &owner(&place));
    let of = |wire: &mut Wire| open(wire, &place, &[json!({"text": "hello"})]);
    let (ada_has, eve_has, owner_has) = (of(&mut adas), of(&mut eves), of(&mut owners));
    let show = json!({"do": "letter", "message": message});
    let replay = |session: &Value| json!({"do": "replay", "message": message, "session": session});
    for operation in
        [show.clone(), replay(&eve_has), replay(&ada_has), json!({"do": "bury", "message": message, "note": ""})]
    {
        let answer = operate(&mut eves, &operation);
        assert!(answer["why"].as_str().is_some_and(|why| why.contains("another operator")), "{operation}: {answer}");
        assert!(!answer.to_string().contains("4711"));
    }
    for into in [&eve_has, &owner_has] {
        let answer = operate(&mut adas, &replay(into));
        assert!(answer["why"].as_str().is_some_and(|why| why.contains("another operator")), "{answer}");
    }
    assert_eq!(operate(&mut owners, &replay(&ada_has))["say"], "refused", "not even an owner speaks in it");
    assert!(operate(&mut owners, &show).to_string().contains("4711"), "owners look after what is left");
    assert!(operate(&mut adas, &show).to_string().contains("4711"));
    assert_eq!(operate(&mut adas, &replay(&ada_has))["say"], "operated", "ada goes on with it herself");
    drop((adas, eves, owners));
    stop(up);
    assert_eq!(place.facts("message").len(), 2, "what ada said, and said again");
    place.verify();
}

#[test]
fn a_schedule_is_shown_to_who_made_it_and_ended_by_them() {
    let place = Place::new();
    let up = place.up();
    enrol(&place, "ada", "operator");
    enrol(&place, "eve", "operator");
    place.run(&["--as", "ada", "schedule", "add", "daily", "0 7 * * *", "water the orchids"]).succeeded();
    let listed = |name: &str| place.run(&["--as", name, "schedule", "list", "--json"]).succeeded().stdout;
    assert!(listed("ada").contains("orchids"));
    assert!(listed("eve").contains("daily") && !listed("eve").contains("orchids"));
    place.run(&["--as", "eve", "schedule", "remove", "daily"]).failed(&["another operator"]);
    place.run(&["--as", "ada", "schedule", "remove", "daily"]).succeeded();
    stop(up);
    place.verify();
}

#[test]
fn who_only_looks_sees_which_tool_waits_and_not_with_what() {
    let place = Place::new();
    let up = place.up();
    for (name, role) in [("vera", "viewer"), ("eve", "operator"), ("ann", "approver")] {
        enrol(&place, name, role);
    }
    let mut owners = client(&socket(&place), &owner(&place));
    let write =
        json!({"tool_calls": [{"name": "fs.write", "arguments": {"path": "plan.txt", "content": "the magpie"}}]});
    let session = open(&mut owners, &place, &[write, json!({"text": "done"})]);
    owners.say(&json!({"say": "send", "session": session, "parts": [{"kind": "typed", "text": "go on"}]}));
    owners.until(|answer| answer["event"] == "deferred");
    for name in ["vera", "eve"] {
        for json in [&["--as", name, "approvals"][..], &["--as", name, "approvals", "--json"]] {
            let shown = place.run(json).succeeded().stdout;
            assert!(shown.contains("fs.write"), "{shown}");
            assert!(!shown.contains("magpie") && !shown.contains("plan.txt"), "{shown}");
        }
    }
    for name in ["ann", "owner"] {
        let args: &[&str] = if name == "owner" { &["approvals"] } else { &["--as", name, "approvals"] };
        assert!(place.run(args).succeeded().stdout.contains("plan.txt"), "{name}");
    }
    place.run(&["--as", "vera", "state", "rebuild"]).failed(&["role `operator`"]);
    place.run(&["--as", "eve", "state", "rebuild"]).succeeded();
    drop(owners);
    place.run(&["refuse", "1"]).succeeded();
    stop(up);
    place.verify();
}

#[test]
fn what_an_operator_was_refused_is_on_the_record_with_who_it_was() {
    let place = Place::new();
    let up = place.up();
    let eve = enrol(&place, "eve", "viewer");
    let mut wire = client(&socket(&place), &eve);
    let stop_all = json!({"do": "signal", "signal": "stop", "target": null, "tree": true, "note": ""});
    assert_eq!(operate(&mut wire, &stop_all)["say"], "refused");
    let erase = json!({"say": "erase", "session": "00".repeat(16), "reason": ""});
    assert_eq!(wire.ask(&erase)["say"], "refused");
    for _ in 0..300 {
        assert_eq!(wire.ask(&json!({"say": "rotate"}))["say"], "refused");
    }
    drop(wire);
    stop(up);
    let log = place.log();
    let refused: Vec<&Value> = log.iter().filter(|entry| entry["fact"]["kind"] == "forbidden").collect();
    let operator = json!(ephor_kernel::operator_id(&eve.verifying_key()));
    assert!(refused.iter().all(|entry| entry["subject"]["operator"] == operator), "{refused:#?}");
    let acts: Vec<&str> = refused.iter().map(|entry| entry["fact"]["act"].as_str().unwrap()).collect();
    assert_eq!(acts[..3], ["signal", "erase", "rotate"]);
    assert!(acts.len() < 100, "who is refused for ever does not fill the disk: {}", acts.len());
    place.verify();
}

#[test]
fn of_two_who_enrol_one_name_at_once_one_does_and_the_credential_is_theirs() {
    let place = Place::new();
    let up = place.up();
    for number in 0..20 {
        let name = format!("ada{number}");
        let add = ["operator", "add", &name, "--role", "operator"];
        let both = [place.start(&add), place.start(&add)].map(Running::ended);
        let enrolled = both.iter().filter(|ran| ran.status.success()).count();
        assert_eq!(enrolled, 1, "{} {}", both[0], both[1]);
        for refused in both.into_iter().filter(|ran| !ran.status.success()) {
            refused.failed(&[&name]);
        }
        // The credential that lies there is the one that counts.
        place.run(&["--as", &name, "ps"]).succeeded();
    }
    stop(up);
    place.verify();
}

#[test]
fn who_comes_to_a_node_that_stops_is_served_by_the_next_one() {
    let place = Place::new();
    place.file("a.txt", "one");
    let up = place.up();
    let (node, (listener, real)) = (rustix::process::Pid::from_raw(pid_of(&place)).unwrap(), in_place_of(&place));
    let relay = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut to_node = UnixStream::connect(&real).unwrap();
        let (mut back, mut forth) = (to_node.try_clone().unwrap(), client.try_clone().unwrap());
        let back = thread::spawn(move || {
            let _ended = std::io::copy(&mut back, &mut forth);
            let _ended = forth.shutdown(Shutdown::Both);
        });
        // The client is let in. What it asks then comes too late.
        let_in(&mut client, &mut to_node);
        client.read_exact(&mut [0; 2]).unwrap();
        rustix::process::kill_process(node, Signal::TERM).unwrap();
        back.join().unwrap();
    });
    let ran = place.run(&["run", "list the files"]).succeeded();
    assert!(ran.stdout.contains("a.txt"), "{ran}");
    relay.join().unwrap();
    up.ended().succeeded();
    assert_eq!(place.facts("boot").len(), 2, "another node was started");
    place.verify();
}

#[test]
fn a_program_that_was_replaced_starts_the_one_in_its_place() {
    let place = Place::new();
    place.file("a.txt", "one");
    let (program, new) = (place.root().join("ephor"), place.root().join("ephor.new"));
    // Another program writes them: a file that a child of ours was born with open cannot be run.
    for path in [&program, &new] {
        let copied = std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_ephor")).arg(path).status().unwrap();
        assert!(copied.success());
    }
    let mut command = place.shell(&program);
    let mut client = command
        .args(["run"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It waits for its message, and is replaced meanwhile.
    fs::rename(&new, &program).unwrap();
    client.stdin.take().unwrap().write_all(b"list the files").unwrap();
    let ended = client.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    place.verify();
}

#[test]
fn a_message_that_the_budget_cannot_hold_is_not_taken_and_the_agent_goes_on() {
    let place = Place::new();
    place.file("a.txt", "one");
    let ran = place.pipe(&["run"], &"a word and another ".repeat(170_000));
    ran.failed(&["tokens long", "send less of it"]);
    assert_eq!(place.facts("message").len(), 0, "nothing was sent");
    place.run(&["run", "list the files"]).succeeded();
    place.verify();
}

#[test]
fn a_request_that_was_kept_back_does_not_count() {
    let place = Place::new();
    let up = place.up();
    let key = owner(&place);
    let suspend = |note: &str| json!({"say": "operate", "operation": {"do": "signal", "signal": "suspend", "target": null, "tree": true, "note": note}});
    let mut wire = client(&socket(&place), &key);
    assert_eq!(wire.ask(&suspend("in time"))["say"], "operated");
    // The same client, whose request left a while ago: it was signed then, and only now it comes.
    wire.age = Duration::from_secs(61);
    wire.say(&suspend("kept back"));
    let told = wire.hear().unwrap();
    assert_eq!(told["say"], "refused", "{told}");
    assert!(told["why"].as_str().unwrap().contains("try again"), "{told}");
    // Who comes in late does not come in.
    let mut late = Wire::open(&socket(&place), &key).unwrap();
    late.age = Duration::from_secs(61);
    assert_ne!(late.introduce().unwrap_or_default()["say"], "welcome");
    stop(up);
    let notes: Vec<_> = place.facts("signal").into_iter().map(|fact| fact["note"].clone()).collect();
    assert_eq!(notes, ["in time"]);
    place.verify();
}
