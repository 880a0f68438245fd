//! What an auditor gets, and what a forger does not get past: proofs, exports, and verification from a trusted checkpoint.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ephor_base::{Digest, files::Files};
use ephor_chain::disk::Disk;
use ephor_signatures::Signatures;
use ephor_tlog::{
    Checkpoint, ForkProof,
    proof::{check_inclusion, consistency, root},
};
use ephor_verify::Published;
use serde_json::{Value, json};

use crate::{
    gate::writing,
    place::{Place, Ran, Running},
};

/// A home that was used and stopped, and its public keys in a file of their own.
fn used() -> (Place, String) {
    let place = Place::new();
    place.play(&[], &writing()).unasked();
    place.node_is_gone();
    let keys = keys(&place);
    (place, keys)
}

/// The file of a home's public keys.
fn keys(place: &Place) -> String {
    let keys = place.root().join("public");
    fs::write(&keys, place.run(&["chain", "key"]).succeeded().stdout).unwrap();
    keys.display().to_string()
}

/// A proof of the entry `seq`, and the file it is in.
fn proven(place: &Place, seq: &str) -> (String, PathBuf) {
    let proof = place.run(&["chain", "prove", seq]).succeeded().stdout;
    let file = place.root().join(format!("proof-{seq}"));
    fs::write(&file, &proof).unwrap();
    (proof, file)
}

/// `chain check` where there is no home, no environment and nothing to write to.
fn check(file: &Path, more: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ephor"));
    command.args(["chain", "check"]).arg(file).args(more).env_clear().current_dir("/").stdin(Stdio::null());
    Running::start(&mut command).ended()
}

#[track_caller]
fn refused(ran: &Ran, word: &str) {
    assert_eq!(ran.status.code(), Some(1), "{ran}");
    assert!(ran.stdout.starts_with("NOT proven") && ran.stdout.contains(word), "`{word}` is not said: {ran}");
}

#[test]
fn an_entry_is_proven_and_checked_with_the_keys_alone() {
    let (place, keys) = used();
    let log = place.log();
    let verdict = log.iter().find(|entry| entry["fact"]["kind"] == "verdict").unwrap();
    let seq = verdict["seq"].to_string();
    let (proof, file) = proven(&place, &seq);
    assert!(proof.starts_with("c2sp.org/tlog-proof@v1\n"), "{proof}");
    let told = check(&file, &["--key", &keys]).succeeded().stdout;
    for word in
        ["proven", &format!("entry {seq} "), &format!("{} entries", log.len()), "verdict", "Ed25519", "ML-DSA-65"]
    {
        assert!(told.contains(word), "`{word}` is not said: {told}");
    }
    assert!(told.lines().all(|line| line.len() < 150), "a person reads this: {told}");
    let told = check(&file, &["--key", &keys, "--json"]).succeeded().stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["ok"], &told["proven"], &told["seq"]), (&json!(true), &json!("entry"), &verdict["seq"]));
    assert_eq!(told["entry"]["fact"], verdict["fact"]);
    assert_eq!(told["head"]["size"], json!(log.len()));
    // From standard input, and with the keys as they stand.
    let both = fs::read_to_string(&keys).unwrap();
    let [first, second] = both.lines().collect::<Vec<_>>()[..] else { panic!() };
    place.pipe(&["chain", "check", "-", "--key", first, "--key", second], &proof).succeeded();
    // Every entry, and a copied folder without anything around it.
    let alone = place.root().join("alone");
    copy(&place.home.join("chain"), &alone);
    fs::remove_dir_all(alone.join("journal")).unwrap();
    let alone = alone.display().to_string();
    for seq in 0..log.len() {
        let proof = place.run(&["chain", "prove", &seq.to_string(), &alone]).succeeded().stdout;
        assert_eq!(proof, place.run(&["chain", "prove", &seq.to_string()]).stdout);
        fs::write(&file, proof).unwrap();
        check(&file, &["--key", &keys]).succeeded();
    }
    let json = place.run(&["chain", "prove", &seq, "--json"]).succeeded().stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["proof"], json!(proof));
}

#[test]
fn a_running_node_publishes_what_is_to_be_proven() {
    let (place, keys) = used();
    let up = place.up();
    // Whatever the newest entry is at this moment: the client that asks is recorded as well.
    for _ in 0..5 {
        let last = place.log_now().len() - 1;
        let (_, file) = proven(&place, &last.to_string());
        check(&file, &["--key", &keys]).succeeded();
    }
    up.signal(rustix::process::Signal::INT);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn no_byte_of_a_proof_can_be_changed_and_nothing_left_out() {
    let (place, keys) = used();
    let (proof, file) = proven(&place, "5");
    let proof = proof.into_bytes();
    let header = proof.windows(2).position(|pair| pair == b"\n\n").unwrap();
    let near = (0..header + 200).step_by(7).chain((header + 200..proof.len()).step_by(41));
    for at in near.chain([proof.len() - 1]) {
        let mut changed = proof.clone();
        changed[at] ^= 1;
        fs::write(&file, changed).unwrap();
        refused(&check(&file, &["--key", &keys]), "");
    }
    for length in [1, 22, 23, header, header + 1, header + 2, proof.len() / 2, proof.len() - 1] {
        fs::write(&file, &proof[..length]).unwrap();
        refused(&check(&file, &["--key", &keys]), "");
        let json = check(&file, &["--key", &keys, "--json"]);
        let told: Value = serde_json::from_str(&json.stdout).unwrap();
        assert!(json.status.code() == Some(1) && told["ok"] == false && told["why"].is_string(), "{json}");
    }
    fs::write(&file, &proof).unwrap();
    check(&file, &["--key", &keys]).succeeded();
}

#[test]
fn what_is_no_proof_or_under_no_key_is_said() {
    let (place, keys) = used();
    let (proof, file) = proven(&place, "3");
    let (other, others) = used();
    let with = |bytes: &[u8], more: &[&str]| {
        fs::write(&file, bytes).unwrap();
        check(&file, &[&["--key", &keys][..], more].concat())
    };
    refused(&with(b"", &[]), "empty");
    refused(&with(&vec![b'x'; 5 << 20], &[]), "too many bytes");
    refused(&with(&[0xff; 100], &[]), "UTF-8");
    refused(&with(proven(&other, "3").0.as_bytes(), &[]), "no key was given for the log");
    fs::write(&file, &proof).unwrap();
    refused(&check(&file, &["--key", &others]), "no key was given for the log");
    // Of two logs, that of the proof counts.
    check(&file, &["--key", &others, "--key", &keys]).succeeded();
    let both = fs::read_to_string(&keys).unwrap();
    let (one, _) = both.split_once('\n').unwrap();
    check(&file, &["--key", one]).failed(&["--key", "both are needed"]);
    check(&file, &["--key", "/nowhere"]).failed(&["`/nowhere` is neither a key nor a file"]);
    check(&file, &["--key", &keys, "--witness", one]).failed(&["--witness"]);
    check(&file, &[]).failed(&["--key"]);
    check(place.root(), &["--key", &keys]).failed(&["is a folder", "ephor chain verify"]);
    check(Path::new("/nowhere"), &["--key", &keys]).failed(&["`/nowhere` cannot be read", "ephor chain prove SEQ"]);
}

#[test]
fn an_entry_that_there_is_not_is_said() {
    let (place, _) = used();
    let last = place.log().len() - 1;
    place.run(&["chain", "prove", "9999"]).failed(&["there is no entry 9999", &format!("0 to {last}")]);
    place.run(&["chain", "prove", "18446744073709551615"]).failed(&["there is no entry"]);
    place.run(&["chain", "prove", "tree"]).failed(&["an entry is named by its number"]);
    place.run(&["chain", "prove", "-1"]).failed(&[]);
    place.run(&["chain", "prove", "1", "/nowhere"]).failed(&["`/nowhere` is no folder"]);
    place.run(&["chain", "prove", "1", &place.workspace.display().to_string()]).failed(&["there is no chain in"]);
    Place::fresh().run(&["chain", "prove", "1"]).failed(&["there is no chain yet", "ephor run"]);
    // A damaged folder proves nothing.
    for bundle in below(&place.home.join("chain/tile/entries")) {
        let mut bytes = fs::read(&bundle).unwrap();
        bytes[40] ^= 1;
        fs::write(&bundle, bytes).unwrap();
    }
    place.run(&["chain", "prove", "0"]).failed(&["damaged", "ephor chain verify"]);
}

#[test]
fn a_log_is_verified_from_a_checkpoint_that_was_kept() {
    let (place, _) = used();
    let (earlier, kept) = (place.root().join("earlier"), place.root().join("kept"));
    copy(&place.home, &earlier);
    fs::copy(place.home.join("chain/checkpoint"), &kept).unwrap();
    let known = place.log().len();
    place.play(&[], &writing()).unasked();
    place.node_is_gone();
    let kept = kept.display().to_string();
    let told = place.run(&["chain", "verify", "--from", &kept, "--json"]).succeeded().stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["ok"], &told["report"]["since"]), (&json!(true), &json!(known)));
    assert!(told["report"]["head"]["size"].as_u64().unwrap() > known as u64 && told["contents"] == true, "{told}");
    let told = place.run(&["chain", "verify", "--from", &kept]).succeeded().stdout;
    assert!(told.contains("verified earlier"), "{told}");
    // The log was cut back behind it, with its head.
    let newer = place.home.join("chain/checkpoint").display().to_string();
    let earlier = earlier.display().to_string();
    let cut = place.run(&["chain", "verify", &earlier, "--from", &newer]);
    assert!(cut.status.code() == Some(1) && cut.stdout.contains("NOT OK") && cut.stdout.contains("cut back"), "{cut}");
    // Another history under the same keys.
    let forked = place.root().join("forked");
    copy(Path::new(&earlier), &forked);
    let fork = place.command(&["--home", &forked.display().to_string(), "run", "list the files"]).output().unwrap();
    assert!(fork.status.success(), "{fork:?}");
    crate::place::wait_until("the node of the fork ends", || {
        fs::File::options().write(true).open(forked.join("lock")).unwrap().try_lock().is_ok()
    });
    let forked = place.run(&["chain", "verify", &forked.display().to_string(), "--from", &newer]);
    assert!(forked.status.code() == Some(1) && forked.stdout.contains("NOT OK"), "{forked}");
    // Nothing of this log, or nothing at all.
    let (other, _) = used();
    let foreign = other.home.join("chain/checkpoint").display().to_string();
    place.run(&["chain", "verify", "--from", &foreign]).failed(&["is one of the log `", "and these keys are of `"]);
    let keys = place.home.join("keys/log.pub").display().to_string();
    place.run(&["chain", "verify", "--from", &keys]).failed(&["is not a checkpoint"]);
    place.run(&["chain", "verify", "--from", "/nowhere"]).failed(&["`/nowhere` cannot be read"]);
    place.verify();
}

#[test]
fn what_is_published_is_verified_without_the_journal_in_a_folder_and_behind_a_web_server() {
    let (place, keys) = used();
    let public = place.root().join("as-published");
    copy(&place.home.join("chain"), &public);
    fs::remove_dir_all(public.join("journal")).unwrap();
    let server = Server::of(&public);
    for from in [public.display().to_string(), server.url.clone()] {
        let said = place.run(&["chain", "verify", &from, "--key", &keys]).succeeded().stdout;
        assert!(said.contains("published entries verified") && said.contains("there is no journal"), "{said}");
        let told = place.run(&["chain", "verify", &from, "--key", &keys, "--json"]).succeeded().stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["ok"], &told["published"]["against_head"]), (&json!(true), &json!(false)));
        let head = public.join("checkpoint").display().to_string();
        place.run(&["chain", "verify", &from, "--key", &keys, "--head", &head]).succeeded();
    }
    // The longest is the newest: shorter ones that it took the place of may lie beside it, and are not read.
    let tiles = below(&public.join("tile")).into_iter().filter(|path| path.is_file());
    let tile = tiles.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&tile).unwrap();
    bytes[5] ^= 1;
    fs::write(&tile, bytes).unwrap();
    for from in [public.display().to_string(), server.url.clone()] {
        let ran = place.run(&["chain", "verify", &from, "--key", &keys]);
        assert!(ran.stdout.starts_with("NOT OK: "), "{} {}", ran.stdout, ran.stderr);
        assert_eq!(ran.status.code(), Some(1));
    }
    let nowhere = format!("{}/nowhere", server.url);
    let ran = place.run(&["chain", "verify", &nowhere, "--key", &keys]);
    assert!(ran.stdout.contains("the published checkpoint is missing"), "{}", ran.stdout);
    drop(server);
    place
        .run(&["chain", "verify", "http://127.0.0.1:9/", "--key", &keys])
        .failed(&["nothing is known about the chain"]);
    place.run(&["chain", "verify", "http://example.com/log", "--key", &keys]).failed(&["is not encrypted"]);
}

/// A web server of another project, with the files of one folder.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn of(folder: &Path) -> Self {
        let mut python = Command::new("python3");
        python.args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"]).arg(folder);
        let piped = Stdio::piped;
        let mut child = python.stdout(piped()).stderr(Stdio::null()).spawn().expect("python3 is there");
        let mut line = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        let port = line.split("port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        Self { child, url: format!("http://127.0.0.1:{port}/") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_proof_of_two_histories_is_told_and_an_honest_log_is_not_accused() {
    let (place, keys) = used();
    let forked = place.root().join("forked");
    copy(&place.home, &forked);
    let kept = fs::read(place.home.join("chain/checkpoint")).unwrap();
    place.play(&[], &writing()).unasked();
    place.node_is_gone();
    let one = fs::read(place.home.join("chain/checkpoint")).unwrap();
    let (text, file) = (place.script(&writing()), place.root().join("fork"));
    let other = ["--home", &forked.display().to_string(), "run", "--model", &text, "another message"];
    for _ in 0..2 {
        assert_eq!(place.command(&other).output().unwrap().status.code(), Some(5));
    }
    crate::place::wait_until("the node of the fork ends", || {
        fs::File::options().write(true).open(forked.join("lock")).unwrap().try_lock().is_ok()
    });
    let two = fs::read(forked.join("chain/checkpoint")).unwrap();
    // Two checkpoints, and the past of the larger log up to the size of the smaller one.
    let accuse = |small: &[u8], large: &[u8], chain: &Path| {
        let [small, large] = [small, large].map(|bytes| Checkpoint::parse(bytes).unwrap());
        let (old, new) = (small.head.size, large.head.size);
        assert!(old < new);
        let mut published = Published::in_folder(chain, &(Arc::new(Disk) as Arc<dyn Files>), new);
        let (prefix, path) = (root(&mut published, old).unwrap(), consistency(&mut published, old, new).unwrap());
        fs::write(&file, ForkProof::of_past(small.note, large.note, prefix, path).to_bytes()).unwrap();
    };
    accuse(&one, &two, &forked.join("chain"));
    let told = check(&file, &["--key", &keys]).succeeded().stdout;
    assert!(told.contains("two histories") && told.contains("has signed both"), "{told}");
    let told: Value = serde_json::from_str(&check(&file, &["--key", &keys, "--json"]).succeeded().stdout).unwrap();
    assert_eq!((&told["ok"], &told["proven"]), (&json!(true), &json!("fork")));
    let mut bytes = fs::read(&file).unwrap();
    bytes[60] ^= 1;
    fs::write(&file, bytes).unwrap();
    refused(&check(&file, &["--key", &keys]), "");
    accuse(&kept, &two, &forked.join("chain"));
    refused(&check(&file, &["--key", &keys]), "agree");
}

#[test]
fn an_export_is_proven_line_by_line() {
    let (place, _) = used();
    let log = place.log();
    let lines = |args: &[&str]| -> Vec<Value> {
        let ran = place.run(&[&["chain", "export"], args].concat()).succeeded();
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = lines(&["--proofs"]);
    let (first, entries) = all.split_first().unwrap();
    let checkpoint = Checkpoint::parse(first["checkpoint"].as_str().unwrap().as_bytes()).unwrap();
    let keys: Vec<&str> = first["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    checkpoint.check(&keys.join("\n").parse().unwrap(), &Signatures).unwrap();
    assert_eq!(entries.len(), log.len());
    for (seq, (line, logged)) in entries.iter().zip(&log).enumerate() {
        let bytes = BASE64.decode(line["cbor"].as_str().unwrap()).unwrap();
        let hash = |hash: &Value| Digest(BASE64.decode(hash.as_str().unwrap()).unwrap().try_into().unwrap());
        let path: Vec<Digest> = line["inclusion"].as_array().unwrap().iter().map(hash).collect();
        check_inclusion(ephor_tlog::tree::leaf_hash(&bytes), seq as u64, &path, checkpoint.head).unwrap();
        assert_eq!((&line["entry"]["fact"], &line["leaf"]), (&logged["fact"], &logged["leaf"]));
        assert!(line["entry"].get("private").is_none());
    }
    let part = lines(&["--from", "2", "--to", "4"]);
    let seqs: Vec<_> = part[1..].iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert!(seqs == [2, 3, 4] && part[1].get("inclusion").is_none() && part[0]["size"] == json!(log.len()), "{part:?}");
    place.run(&["chain", "export", "--from", "4", "--to", "2"]).failed(&["--from comes before --to"]);
    place.run(&["chain", "export", "--to", "9999"]).failed(&["there is no entry 9999"]);
    place.run(&["chain", "export", "--from", "x"]).failed(&["an entry is named by its number"]);
    // A copy needs its keys named.
    let alone = place.root().join("copied").join("alone");
    copy(&place.home.join("chain"), &alone);
    let alone = alone.display().to_string();
    place.run(&["chain", "export", &alone]).failed(&["--key"]);
    let keys = self::keys(&place);
    assert_eq!(lines(&[&alone, "--key", &keys, "--proofs"]), all);
}

#[test]
fn an_export_into_a_pipe_that_closes_ends_quietly() {
    let (place, _) = used();
    let ephor = env!("CARGO_BIN_EXE_ephor");
    let mut shell = place.shell("bash");
    shell
        .args(["-c", "set -o pipefail; \"$0\" chain export --proofs | head -c 10; \"$0\" chain prove 1 | true"])
        .arg(ephor);
    let ran = Running::start(&mut shell).ended().succeeded();
    assert!(ran.stdout.len() == 10 && ran.stderr.is_empty(), "{ran}");
}

#[test]
fn what_the_record_holds_is_counted() {
    let (place, _) = used();
    let log = place.log();
    let stat = |place: &Place| -> Value {
        serde_json::from_str(&place.run(&["chain", "stat", "--json"]).succeeded().stdout).unwrap()
    };
    let told = stat(&place);
    assert_eq!((&told["entries"], &told["published"]), (&json!(log.len()), &json!(log.len())));
    for (kind, count) in told["kinds"].as_object().unwrap() {
        assert_eq!(*count, json!(log.iter().filter(|entry| entry["fact"]["kind"] == *kind).count()), "{kind}");
    }
    let counted: u64 = told["kinds"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counted, log.len() as u64);
    assert_eq!((&told["sessions"], &told["open_intents"]), (&json!(1), &json!(0)));
    assert_eq!((&told["oldest"], &told["newest"]), (&log[0]["time"], &log.last().unwrap()["time"]));
    let latest: u64 = told["latest"]["entries"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(latest, log.len() as u64);
    assert!(told["bytes"]["vault"].as_u64() > Some(0) && told["bytes"]["tiles"].as_u64() > Some(0), "{told}");
    let words = place.run(&["chain", "stat"]).succeeded().stdout;
    assert!(words.contains(&format!("entries    {}, of which", log.len())) && words.contains("verdict"), "{words}");
    let up = place.up();
    assert!(stat(&place)["entries"].as_u64() > Some(log.len() as u64));
    up.signal(rustix::process::Signal::INT);
    up.ended().succeeded();
    Place::fresh().run(&["chain", "stat"]).failed(&["there is no chain yet"]);
}

/// Copies a folder with everything in it but sockets.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, to) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &to);
        } else if kind.is_file() {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// All files below a folder.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}
