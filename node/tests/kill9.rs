//! `kill -9` of the client, of the node, or of both, at random moments of `ephor run`: the record survives.
//!
//! After each point the chain verifies against its pinned head; acknowledged ⊆ recovered ⊆ submitted; what tools did,
//! counted in the workspace, has an intent on the chain; and the home goes on. `EPHOR_KILL9_POINTS` and
//! `EPHOR_KILL9_SEED` choose how many points there are and which; the seed is printed.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

mod record;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ephor_tlog::Tree;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use record::{Place, wait};

/// How many points share a home. The first of each cut off the first start on a home.
const POINTS_A_HOME: u64 = 20;
/// Every so many points a run is left alone, and must do everything.
const WHOLE_EVERY: u64 = 5;
/// The writes of a turn, each of another file.
const WRITES: u64 = 6;

#[test]
fn nothing_acknowledged_is_lost_and_nothing_runs_unrecorded_at_forty_random_kills() {
    soak(points(40));
}

#[test]
#[ignore = "takes minutes; `just kill9` runs it"]
fn nothing_acknowledged_is_lost_and_nothing_runs_unrecorded_at_many_random_kills() {
    soak(points(500));
}

fn points(usual: u64) -> u64 {
    std::env::var("EPHOR_KILL9_POINTS").ok().map_or(usual, |points| points.parse().expect("a number of points"))
}

/// Numbers that a seed determines (SplitMix64).
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let given = std::env::var("EPHOR_KILL9_SEED").ok().map(|seed| seed.parse().expect("a seed is a number"));
        let seed = given.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
            u64::from(now.subsec_nanos()) ^ now.as_secs()
        });
        println!("EPHOR_KILL9_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    Client,
    Node,
    ClientThenNode,
    NodeThenClient,
}

/// When to strike.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So many microseconds after the client was started.
    Time(u64),
    /// So many microseconds after the client has printed so many events.
    Event(u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct Strike {
    victim: Victim,
    moment: Moment,
}

/// How long an undisturbed run takes here, and how many events it prints. Only for aiming.
#[derive(Clone, Copy)]
struct Pace {
    first: u64,
    later: u64,
    events: u64,
}

/// What was seen of all points.
#[derive(Default, Debug)]
struct Figures {
    points: u64,
    whole_runs: u64,
    client_killed: u64,
    node_killed: u64,
    both_killed: u64,
    struck_too_late: u64,
    in_a_first_start: u64,
    torn_ends: u64,
    indeterminate: usize,
    tool_intents: usize,
    files: usize,
    acknowledged: usize,
    entries: usize,
}

fn soak(points: u64) {
    let mut dice = Dice::new();
    let pace = measure();
    let mut figures = Figures::default();
    let mut book = Book::new();
    for point in 0..points {
        if point > 0 && point % POINTS_A_HOME == 0 {
            figures.close(&book);
            book = Book::new();
        }
        let first = !book.place.home.join("chain").exists();
        let strike = aim(&mut dice, if first { pace.first } else { pace.later }, pace.events);
        let what = format!("point {point}, {strike:?}, first start: {first}");
        book.strike(strike, &what, &mut figures);
        figures.in_a_first_start += u64::from(first);
        if point % WHOLE_EVERY == WHOLE_EVERY - 1 || point + 1 == points {
            book.run_whole(&format!("the run after {what}"));
            figures.whole_runs += 1;
        }
    }
    figures.close(&book);
    figures.points = points;
    println!("{figures:#?}");
}

impl Figures {
    fn close(&mut self, book: &Book) {
        let log = book.place.log();
        self.entries += log.len();
        self.indeterminate += log.iter().filter(|entry| entry["fact"]["end"] == "indeterminate").count();
        self.tool_intents += log.iter().filter(|entry| is_tool_intent(entry)).count();
        self.files += book.files().len();
    }
}

fn aim(dice: &mut Dice, time: u64, events: u64) -> Strike {
    let victims = [Victim::Client, Victim::Node, Victim::ClientThenNode, Victim::NodeThenClient];
    let victim = victims[usize::try_from(dice.below(4)).expect("below four")];
    let moment = match dice.below(2) {
        0 => Moment::Time(dice.below(time + time / 5)),
        _ => Moment::Event(1 + dice.below(events), dice.below(4000)),
    };
    Strike { victim, moment }
}

fn measure() -> Pace {
    let mut book = Book::new();
    let mut timed = || {
        let began = Instant::now();
        let events = book.run_whole("an undisturbed run");
        (u64::try_from(began.elapsed().as_micros()).expect("it is over already"), events)
    };
    let ((first, _), (later, events)) = (timed(), timed());
    Pace { first, later, events }
}

/// A home, and what was submitted to it.
struct Book {
    place: Place,
    /// Counts the runs on this home.
    runs: u64,
    /// The leaves that were once read from the chain, in order.
    leaves: Vec<String>,
}

impl Book {
    fn new() -> Self {
        Self { place: Place::new(), runs: 0, leaves: Vec::new() }
    }

    fn script(run: u64) -> String {
        let call = |number: u64| json!({"name": "fs.write", "arguments": {"path": path(run, number), "content": content(run, number)}});
        let lines = [
            json!({"text": thought(run), "delay_ms": 40, "tool_calls": [call(0), call(1)]}),
            json!({"delay_ms": 0, "tool_calls": [call(2), call(3), call(4)]}),
            json!({"text": "One more.", "delay_ms": 10, "tool_calls": [call(5)]}),
            json!({"text": reply(run), "delay_ms": 60}),
        ];
        lines.map(|line| line.to_string()).join("\n")
    }

    fn command(&mut self) -> std::process::Command {
        self.runs += 1;
        let script = self.place.beside("script.jsonl");
        fs::write(&script, Self::script(self.runs)).expect("a script");
        let (model, workspace) = (format!("script:{}", script.display()), self.place.workspace.display().to_string());
        let message = message(self.runs);
        self.place.command(&["run", "--json", "-C", &workspace, "--model", &model, "--allow", "fs.write", &message])
    }

    /// A run that is left alone. Returns how many events it printed.
    fn run_whole(&mut self, what: &str) -> u64 {
        let command = self.command();
        let run = self.place.end(command);
        assert!(run.status.success(), "{what}: {}{}", run.out, run.err);
        self.place.wait_until_alone();
        self.check(&run.out, true, what);
        for number in 0..WRITES {
            let written = fs::read_to_string(self.place.workspace.join(path(self.runs, number))).unwrap_or_default();
            assert_eq!(written, content(self.runs, number), "{what}");
        }
        assert!(run.out.contains(&reply(self.runs)), "{what}: {}", run.out);
        self.check_finished(what);
        run.out.lines().count() as u64
    }

    fn strike(&mut self, strike: Strike, what: &str, figures: &mut Figures) {
        let mut command = self.command();
        let (out, err) = (self.place.beside("run.out"), self.place.beside("run.err"));
        command.stdout(File::create(&out).expect("a file")).stderr(File::create(&err).expect("a file"));
        let mut client = command.spawn().expect("the client starts");
        let began = Instant::now();
        let printed = || fs::read(&out).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count() as u64;
        let delay = match strike.moment {
            Moment::Time(micros) => Duration::from_micros(micros).saturating_sub(began.elapsed()),
            Moment::Event(count, micros) => {
                while printed() < count && client.try_wait().expect("a child").is_none() {
                    thread::sleep(Duration::from_micros(200));
                }
                Duration::from_micros(micros)
            }
        };
        thread::sleep(delay);
        let ended = client.try_wait().expect("a child").is_some();
        let mut nodes = 0;
        let mut kill_node = || {
            for node in self.place.nodes() {
                let node = Pid::from_raw(node).expect("a process number");
                nodes += u64::from(kill_process(node, Signal::KILL).is_ok());
            }
        };
        match strike.victim {
            Victim::Client => client.kill().expect("it can be killed"),
            Victim::Node => kill_node(),
            Victim::ClientThenNode => {
                client.kill().expect("it can be killed");
                kill_node();
            }
            Victim::NodeThenClient => {
                kill_node();
                client.kill().expect("it can be killed");
            }
        }
        let status = wait(&mut client, what);
        self.place.wait_until_alone();
        let printed = fs::read_to_string(&out).expect("what it printed");
        if strike.victim == Victim::Node && !printed.contains("\"turn_ended\"") {
            assert!(!status.success(), "{what}: a run whose node was killed reports success\n{printed}");
        }
        let client_killed = strike.victim != Victim::Node && !ended;
        match (client_killed, nodes > 0) {
            (true, true) => figures.both_killed += 1,
            (true, false) => figures.client_killed += 1,
            (false, true) => figures.node_killed += 1,
            (false, false) => figures.struck_too_late += 1,
        }
        let (acknowledged, torn) = self.check(&printed, nodes == 0, what);
        figures.acknowledged += acknowledged;
        figures.torn_ends += u64::from(torn);
    }

    /// Everything that must hold now. Returns how much was acknowledged, and whether the end was torn.
    fn check(&mut self, printed: &str, node_lived: bool, what: &str) -> (usize, bool) {
        // A killed client may have printed half a line.
        let events: Vec<Value> = printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let journal = self.place.home.join("chain").join("journal");
        let begun = fs::read_dir(journal).is_ok_and(|files| {
            files.filter_map(Result::ok).any(|file| file.path().extension().is_none_or(|extension| extension != "tmp"))
        });
        if !begun {
            assert!(
                self.leaves.is_empty() && events.iter().all(|event| receipts(event).is_empty()),
                "{what}: {printed}"
            );
            return (0, false);
        }
        let verified = self.place.ephor(&["chain", "verify", "--json"]);
        assert!(verified.status.success(), "{what}: {}{}", verified.out, verified.err);
        let verified: Value = serde_json::from_str(&verified.out).expect("JSON");
        let report = &verified["report"];
        assert_eq!(report["against_head"], true, "{what}");
        let log = self.place.log();
        assert_eq!(report["head"]["size"], log.len(), "{what}");
        // If nothing was added, the node was not even started.
        if node_lived && log.len() > self.leaves.len() {
            assert_eq!(report["stopped"], true, "{what}: the node was not killed and did not stop cleanly");
            assert_eq!(report["open_intents"], 0, "{what}");
        }
        self.check_history(&log, what);
        let acknowledged = check_acknowledged(&events, &log, what);
        check_outcomes(&log, what);
        self.check_submitted(&log, what);
        self.check_workspace(&log, what);
        (acknowledged, report["torn_bytes"].as_u64() > Some(0))
    }

    /// Every turn that was begun in a run before was finished by a node since, with nobody calling.
    fn check_finished(&self, what: &str) {
        let log = self.place.log();
        let of_kind = |kind: &'static str| log.iter().filter(move |entry| entry["fact"]["kind"] == kind);
        let is_cut_off = |entry: &&Value| {
            of_kind("outcome").any(|end| end["fact"]["intent"] == entry["seq"] && end["fact"]["end"] == "indeterminate")
        };
        let cut_off = log.iter().filter(|entry| is_tool_intent(entry)).filter(is_cut_off);
        let cut_off: BTreeSet<String> = cut_off.map(|entry| text(&arguments(entry, &log)["path"])).collect();
        for entry in of_kind("message") {
            let ends = of_kind("turn_end").filter(|end| end["fact"]["message"] == entry["fact"]["id"]).count();
            assert_eq!(ends, 1, "{what}: {entry} was not answered once");
            let said = text(&entry["private"]["parts"][0]["text"]);
            let run = (1..=self.runs).find(|run| message(*run) == said).expect("somebody said it");
            for number in 0..WRITES {
                let name = path(run, number);
                let written = fs::read_to_string(self.place.workspace.join(&name)).unwrap_or_default();
                // A write that was cut off is not made again by itself: it happened, or it did not.
                let is_open = cut_off.contains(&name) && written.is_empty();
                assert!(is_open || written == content(run, number), "{what}: run {run} was not finished: `{written}`");
            }
        }
    }

    /// What was once recovered stays as it was.
    fn check_history(&mut self, log: &[Value], what: &str) {
        let leaves: Vec<String> = log.iter().map(|entry| text(&entry["leaf"])).collect();
        assert!(leaves.starts_with(&self.leaves), "{what}: what was on the chain is gone or was changed");
        self.leaves = leaves;
    }

    /// Every message and every call on the chain was submitted, and only once.
    fn check_submitted(&self, log: &[Value], what: &str) {
        let mut runs = BTreeMap::new();
        let messages = log.iter().filter(|entry| entry["fact"]["kind"] == "message");
        for entry in messages {
            let said = text(&entry["private"]["parts"][0]["text"]);
            let run = (1..=self.runs).find(|run| message(*run) == said);
            let run = run.unwrap_or_else(|| panic!("{what}: nobody said `{said}`"));
            assert!(runs.values().all(|other| *other != run), "{what}: `{said}` was said once and recorded twice");
            runs.insert(text(&entry["subject"]["session"]), run);
        }
        let mut calls = BTreeMap::new();
        for entry in log.iter().filter(|entry| is_tool_intent(entry)) {
            let asked = arguments(entry, log);
            let (path_asked, written) = (text(&asked["path"]), text(&asked["content"]));
            let run = runs.get(&text(&entry["subject"]["session"]));
            let run = *run.unwrap_or_else(|| panic!("{what}: a call in a session without a message"));
            let number = (0..WRITES).find(|number| path(run, *number) == path_asked);
            let number = number.unwrap_or_else(|| panic!("{what}: nobody asked for `{path_asked}`"));
            assert_eq!(written, content(run, number), "{what}");
            // Each is called once, whatever became of it.
            let call = entry["subject"]["call"].clone();
            let before = calls.insert(path_asked.clone(), call.clone());
            assert!(
                before.is_none_or(|one| one == call),
                "{what}: `{path_asked}` was asked for once and is there twice"
            );
            let tried = |other: &&Value| is_tool_intent(other) && other["subject"]["call"] == call;
            let finished = |other: &Value| {
                log.iter().any(|end| end["fact"]["intent"] == other["seq"] && end["fact"]["end"] == "done")
            };
            let done = log.iter().filter(tried).filter(|other| finished(other)).count();
            assert!(done <= 1, "{what}: `{path_asked}` was done, and then again");
        }
    }

    /// No tool ran whose intent is not on the chain, and what is said to be done is done.
    fn check_workspace(&self, log: &[Value], what: &str) {
        let mut intended = BTreeMap::new();
        let mut done = BTreeSet::new();
        for entry in log.iter().filter(|entry| is_tool_intent(entry)) {
            let asked = arguments(entry, log);
            let ended = log.iter().find(|outcome| outcome["fact"]["intent"] == entry["seq"]);
            if ended.is_some_and(|outcome| outcome["fact"]["end"] == "done") {
                done.insert(text(&asked["path"]));
            }
            intended.insert(text(&asked["path"]), text(&asked["content"]));
        }
        let files = self.files();
        for (name, written) in &files {
            // A write that was cut off can leave its half-made file behind, under a name that `fs.write` makes.
            if name.starts_with(".ephor-part") {
                let ours = intended.values().any(|whole| whole.starts_with(written.as_str()));
                assert!(ours, "{what}: `{name}` was written without an intent on the chain");
                continue;
            }
            let whole = intended.get(name);
            let whole = whole.unwrap_or_else(|| panic!("{what}: `{name}` was written without an intent on the chain"));
            assert!(whole.starts_with(written.as_str()), "{what}: `{name}` holds something else than was intended");
            assert!(
                whole == written || !done.contains(name),
                "{what}: `{name}` is said to be done and is half written"
            );
        }
        assert!(
            done.iter().all(|name| files.contains_key(name)),
            "{what}: something is said to be done and is not there"
        );
    }

    fn files(&self) -> BTreeMap<String, String> {
        let files = fs::read_dir(&self.place.workspace).expect("the workspace").map(|file| file.expect("a file"));
        files
            .map(|file| {
                let text = fs::read_to_string(file.path()).expect("what was written");
                (file.file_name().to_string_lossy().into_owned(), text)
            })
            .collect()
    }
}

fn message(run: u64) -> String {
    format!("Write what run {run} has to write")
}

fn thought(run: u64) -> String {
    format!("Run {run} writes its files now, and takes a little while to say so.")
}

fn reply(run: u64) -> String {
    format!("Run {run} has written everything, and that is all there is to say about it.")
}

fn path(run: u64, number: u64) -> String {
    format!("{run}-{number}.txt")
}

fn content(run: u64, number: u64) -> String {
    format!("run {run}, file {number}\n").repeat(100)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

fn is_tool_intent(entry: &Value) -> bool {
    entry["fact"]["kind"] == "intent" && entry["fact"]["action"] == "tool"
}

fn at<'a>(log: &'a [Value], seq: &Value) -> Option<&'a Value> {
    log.get(usize::try_from(seq.as_u64()?).ok()?)
}

/// What an intent was permitted to do.
fn arguments<'a>(intent: &Value, log: &'a [Value]) -> &'a Value {
    let verdict = at(log, &intent["fact"]["verdict"]).expect("an intent names its verdict");
    assert_eq!(verdict["fact"]["arguments"], intent["fact"]["arguments"]);
    &verdict["private"]["call"]["arguments"]
}

/// The places an event promises.
fn receipts(event: &Value) -> Vec<u64> {
    let named = [&event["intent"], &event["outcome"]].into_iter().filter_map(Value::as_u64);
    let listed = event["receipts"].as_array().into_iter().flatten().filter_map(|receipt| receipt["seq"].as_u64());
    named.chain(listed).chain(event["size"].as_u64().map(|size| size.saturating_sub(1))).collect()
}

/// What a client was told is on the chain, as it was told.
fn check_acknowledged(events: &[Value], log: &[Value], what: &str) -> usize {
    let mut count = 0;
    for event in events {
        let lost = || panic!("{what}: acknowledged and lost: {event}");
        for seq in receipts(event) {
            at(log, &json!(seq)).unwrap_or_else(lost);
            count += 1;
        }
        match event["event"].as_str() {
            Some("started") => {
                let intent = at(log, &event["intent"]).unwrap_or_else(lost);
                assert_eq!(intent["fact"]["kind"], "intent", "{what}: {event}");
                assert_eq!(intent["fact"]["action"], event["action"], "{what}: {event}");
                assert_eq!(intent["subject"]["call"], event["call"], "{what}: {event}");
            }
            Some("ended") => {
                let outcome = at(log, &event["outcome"]).unwrap_or_else(lost);
                assert_eq!(outcome["fact"]["kind"], "outcome", "{what}: {event}");
                assert_eq!(outcome["fact"]["end"], event["end"], "{what}: {event}");
                assert_eq!(outcome["subject"]["call"], event["call"], "{what}: {event}");
            }
            Some("accepted") => {
                let found = log
                    .iter()
                    .any(|entry| entry["fact"]["kind"] == "message" && entry["fact"]["id"] == event["message"]);
                assert!(found, "{what}: {event}");
                count += 1;
            }
            Some("reply") => {
                let given = event["receipts"].as_array().expect("receipts");
                for receipt in given {
                    let entry = at(log, &receipt["seq"]).unwrap_or_else(lost);
                    assert_eq!(entry["leaf"], receipt["leaf"], "{what}: {event}");
                }
                let places: Vec<_> = given.iter().map(|receipt| receipt["seq"].as_u64()).collect();
                assert!(places.is_sorted(), "{what}: {event}");
            }
            Some("turn_ended") => {
                let mut tree = Tree::new();
                let size = usize::try_from(event["size"].as_u64().expect("a size")).expect("a size");
                for entry in &log[..size] {
                    tree.push(serde_json::from_value(entry["leaf"].clone()).expect("a leaf"));
                }
                assert_eq!(tree.root().to_string(), text(&event["root"]), "{what}");
            }
            _ => {}
        }
    }
    count
}

/// No intent has two outcomes; whatever a boot found open has one; and only a boot calls one indeterminate.
fn check_outcomes(log: &[Value], what: &str) {
    let mut open = BTreeSet::new();
    let mut booting = false;
    for entry in log {
        let fact = &entry["fact"];
        let kind = fact["kind"].as_str();
        if kind == Some("boot") {
            booting = true;
            continue;
        }
        let indeterminate = fact["end"] == "indeterminate";
        assert!(!indeterminate || booting, "{what}: {entry} does not stand behind a boot");
        if booting && !indeterminate {
            booting = false;
            assert!(open.is_empty(), "{what}: open after a boot: {open:?}");
        }
        match kind {
            Some("intent") => assert!(open.insert(entry["seq"].as_u64()), "{what}"),
            Some("outcome") => {
                assert!(open.remove(&fact["intent"].as_u64()), "{what}: {entry} ends nothing that is open")
            }
            _ => {}
        }
    }
    let stopped = log.last().is_some_and(|entry| entry["fact"]["kind"] == "stop");
    assert!(!stopped || open.is_empty(), "{what}: open after a stop: {open:?}");
}
