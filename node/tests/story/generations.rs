//! An auditor who knows keys or a checkpoint from before the keys were changed goes on, and is not deceived.

use std::{fs, path::PathBuf};

use ephor_verify::{Change, lineage};
use serde_json::Value;

use crate::{
    auditor::copy,
    gate::writing,
    place::{Place, Ran},
};

/// A home whose keys were changed twice, with something done under each; the public keys and a checkpoint of each time.
fn three() -> (Place, Vec<(PathBuf, PathBuf)>) {
    let place = Place::new();
    let mut times = Vec::new();
    for number in 0..3 {
        if number > 0 {
            place.run(&["chain", "rotate", "--yes"]).succeeded();
        }
        place.play(&[], &writing()).unasked();
        place.node_is_gone();
        let (keys, kept) = (place.root().join(format!("keys-{number}")), place.root().join(format!("kept-{number}")));
        fs::write(&keys, place.run(&["chain", "key"]).succeeded().stdout).unwrap();
        fs::copy(place.home.join("chain/checkpoint"), &kept).unwrap();
        times.push((keys, kept));
    }
    place.play(&[], &writing()).unasked();
    place.node_is_gone();
    (place, times)
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap()
}

#[test]
fn a_log_is_verified_and_exported_with_the_keys_and_from_the_checkpoint_of_any_time() {
    let (place, times) = three();
    let entries = place.log().len() as u64;
    let now = fs::read_to_string(&times[2].0).unwrap();
    for (keys, _) in &times {
        let keys = keys.to_str().unwrap();
        for (_, kept) in &times {
            let told = json(
                &place.run(&["chain", "verify", "--from", kept.to_str().unwrap(), "--key", keys, "--json"]).succeeded(),
            );
            assert!(told["ok"] == true && told["report"]["since"].as_u64() > Some(0), "{told}");
            assert_eq!(told["report"]["head"]["size"].as_u64(), Some(entries));
        }
        // The folder alone, as an auditor has it.
        let alone = place.root().join("alone").join("chain");
        copy(&place.home.join("chain"), &alone);
        let first = json(&place.run(&["chain", "export", alone.to_str().unwrap(), "--key", keys]).succeeded());
        let told: Vec<&str> = first["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
        assert_eq!(told, now.lines().collect::<Vec<_>>(), "the keys that have signed the checkpoint");
        let changes: String = first["changes"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        let changes = Change::parse_all(changes.as_bytes()).unwrap();
        let reached = lineage::follow(&fs::read_to_string(keys).unwrap().parse().unwrap(), &changes);
        assert_eq!(reached.last().unwrap().to_string(), now);
        fs::remove_dir_all(alone.parent().unwrap()).unwrap();
    }
    // Without naming keys, those of the home count.
    place.run(&["chain", "verify", "--from", times[0].1.to_str().unwrap()]).succeeded();
    // Keys of another log do not.
    let (other, others) = (Place::new(), place.root().join("others"));
    other.play(&[], &writing()).unasked();
    other.node_is_gone();
    fs::write(&others, other.run(&["chain", "key"]).succeeded().stdout).unwrap();
    place.run(&["chain", "export", "--key", others.to_str().unwrap()]).failed(&["does not hold under these keys"]);
}

#[test]
fn a_proof_is_checked_with_older_keys_and_the_changes_since() {
    let (place, times) = three();
    let (proof, changes) = (place.root().join("proof"), place.root().join("changes"));
    fs::write(&proof, place.run(&["chain", "prove", "3"]).succeeded().stdout).unwrap();
    let printed = place.run(&["chain", "key", "--changes"]).succeeded().stdout;
    fs::write(&changes, &printed).unwrap();
    let (proof, changes) = (proof.to_str().unwrap(), changes.to_str().unwrap());
    for (number, (keys, _)) in times.iter().enumerate() {
        let keys = keys.to_str().unwrap();
        let alone = place.run(&["chain", "check", proof, "--key", keys]);
        assert_eq!(alone.status.success(), number == 2, "{alone}");
        place.run(&["chain", "check", proof, "--key", keys, "--changes", changes]).succeeded();
    }
    // The second change alone leads from the second keys, and not from the first.
    let second = printed.match_indices("c2sp.org/tlog-proof@v1\n").nth(1).unwrap().0;
    fs::write(changes, &printed[second..]).unwrap();
    let check = |number: usize| {
        let keys = times[number].0.to_str().unwrap();
        place.run(&["chain", "check", proof, "--key", keys, "--changes", changes])
    };
    assert!(check(1).status.success() && !check(0).status.success());
    // What is no change of keys leads nowhere, and what is no proof is said.
    fs::copy(proof, changes).unwrap();
    assert!(!check(1).status.success());
    fs::write(changes, "junk").unwrap();
    check(1).failed(&["does not hold changes of keys", "chain key --changes"]);
}

#[test]
fn a_home_that_goes_on_under_stolen_old_keys_is_not_taken_for_the_log() {
    let place = Place::new();
    place.play(&[], &writing()).unasked();
    place.node_is_gone();
    let (stolen, kept) = (place.root().join("stolen"), place.root().join("kept"));
    copy(&place.home, &stolen);
    fs::copy(place.home.join("chain/checkpoint"), &kept).unwrap();
    place.run(&["chain", "rotate", "--yes"]).succeeded();
    place.play(&[], &writing()).unasked();
    place.node_is_gone();
    let keys = place.root().join("keys");
    fs::write(&keys, place.run(&["chain", "key"]).succeeded().stdout).unwrap();
    // The thief has the whole home as it was, changes the keys too, and goes on.
    let stolen = stolen.to_str().unwrap();
    let fork = place.command(&["--home", stolen, "chain", "rotate", "--yes"]).output().unwrap();
    assert!(fork.status.success(), "{fork:?}");
    let newer = place.home.join("chain/checkpoint");
    let cases: [&[&str]; 3] = [
        &["--key", keys.to_str().unwrap()],
        &["--key", keys.to_str().unwrap(), "--from", kept.to_str().unwrap()],
        &["--from", newer.to_str().unwrap()],
    ];
    for case in cases {
        let ran = place.run(&[&["chain", "verify", stolen], case].concat());
        assert!(ran.status.code() == Some(1) && ran.stdout.contains("NOT OK"), "{case:?}: {ran}");
    }
    place
        .run(&["chain", "export", stolen, "--key", keys.to_str().unwrap()])
        .failed(&["does not hold under these keys"]);
    place.run(&["chain", "verify", "--key", keys.to_str().unwrap(), "--from", kept.to_str().unwrap()]).succeeded();
}
