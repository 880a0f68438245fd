//! Names of tools and ids of calls on the wire.

use std::collections::BTreeMap;

use ephor_base::ToolName;
use ephor_wire::request::{tool_of, wire_name};
use proptest::{prelude::*, test_runner::Config};

fn fits(wire: &str) -> bool {
    (1..=64).contains(&wire.len()) && wire.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[test]
fn names_go_out_and_come_back() {
    for (name, wire) in [
        ("fs.read", "fsRead"),
        ("fs_read", "fs_read"),
        ("a.1", "aZ1"),
        ("a.z", "aZz"),
        ("a..b", "aZB"),
        (".", "Z"),
        ("git-hub.create_issue", "git-hubCreate_issue"),
    ] {
        assert_eq!((wire_name(name).as_str(), tool_of(wire).as_str()), (wire, name));
    }
}

/// All names of up to five characters that differ in what matters.
#[test]
fn no_two_names_are_the_same_on_the_wire() {
    let mut taken = BTreeMap::new();
    let mut names = vec![String::new()];
    for _ in 0..5 {
        let longer: Vec<String> =
            names.iter().flat_map(|name| ['a', 'y', 'z', '1', '.', '_', '-'].map(|c| format!("{name}{c}"))).collect();
        for name in &longer {
            let wire = wire_name(name);
            assert!(fits(&wire) && wire.len() <= name.len(), "{name} {wire}");
            assert_eq!(tool_of(&wire), *name);
            assert_eq!(taken.insert(wire, name.clone()), None);
        }
        names = longer;
    }
}

#[test]
fn names_that_no_tool_has_pass_as_they_came() {
    for wire in ["rm -rf", "fs.read", "aZb", "", "Ünïcode"] {
        assert_eq!(tool_of(wire), wire);
    }
    assert_eq!((wire_name("made up!").as_str(), wire_name("").as_str()), ("made_up_", "_"));
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_name_goes_out_and_comes_back(name in "[a-z0-9._-]{1,64}") {
        prop_assert!(name.parse::<ToolName>().is_ok());
        let wire = wire_name(&name);
        prop_assert!(fits(&wire));
        prop_assert_eq!(tool_of(&wire), name);
    }

    #[test]
    fn whatever_a_model_calls_can_be_sent_back(name in any::<String>()) {
        prop_assert!(fits(&wire_name(&tool_of(&name))));
    }
}
