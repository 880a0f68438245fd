//! What the arguments of a call add to its effects.

use ephor_base::{ArgumentRule, Arguments, Capability, EffectVector, Flow, Match, Registration};
use ephor_governance::{
    Tool,
    effects::{Circumstances, Named, vector},
    sensitive::SensitivePath,
};

use crate::world::tool;

const MORE: EffectVector = EffectVector::new(800, 0, 0, 0, 0);

fn rises(when: Match, value: &str) -> bool {
    let rules = vec![ArgumentRule { argument: "to".into(), when, effects: MORE }];
    let tool = Tool::new(Registration { flow: Flow { rules, ..Flow::acts() }, ..tool() }).unwrap();
    let arguments = Arguments::parse(&format!("{{\"to\":{value}}}")).unwrap();
    let now = Circumstances { familiar: true, ..Circumstances::default() };
    let named = Named { workspace: "", written: &arguments, reached: &arguments };
    vector(&tool, named, &[], now).risk.value() == 800
}

/// What a call adds that changes, or only reads, `path` in `workspace`.
fn touching(workspace: &str, path: &str, changes: bool) -> EffectVector {
    let flow = Flow { consequential: changes, ..Flow::acts() };
    let capability = if changes { Capability::FsWrite } else { Capability::FsRead };
    let paths = vec!["to".to_owned()];
    let tool = Tool::new(Registration { flow, capability, paths, effects: EffectVector::NONE, ..tool() }).unwrap();
    let arguments = Arguments::parse(&serde_json::json!({ "to": path }).to_string()).unwrap();
    let named = Named { workspace, written: &arguments, reached: &arguments };
    let now = Circumstances { familiar: true, ..Circumstances::default() };
    vector(&tool, named, &SensitivePath::defaults(), now)
}

#[test]
fn a_host_outside_the_declared_ones_is_known_however_it_is_spelled() {
    let inside = || Match::HostOutside(vec!["corp.example".into(), ".api.example".into()]);
    for ours in [
        r#""https://corp.example/x""#,
        r#""a@corp.example""#,
        r#""CORP.example.""#,
        r#""https://u:p@v1.api.example:8443/x?y""#,
        "null",
    ] {
        assert!(!rises(inside(), ours), "{ours}");
    }
    for theirs in [
        r#""https://evil.example""#,
        r#""https://corp.example@evil.example/""#,
        r#""https://evil.example/corp.example""#,
        r#""https://corp.example.evil.example""#,
        r#""xapi.example""#,
        r#""https://evil.example\\@corp.example""#,
        r#""https://cоrp.example""#,
        r#"["a@corp.example","b@evil.example"]"#,
        r#""""#,
        "7",
        "true",
    ] {
        assert!(rises(inside(), theirs), "{theirs}");
    }
}

#[test]
fn a_command_and_an_amount_are_found() {
    let rm = || Match::Command("rm".into());
    for bad in [r#""rm -rf x""#, r#""/bin/RM x""#, r#""ls; rm x""#, r#""ls|rm""#, r#""$(rm x)""#, r#""'rm' x""#, "7"] {
        assert!(rises(rm(), bad), "{bad}");
    }
    assert!(!rises(rm(), r#""ls farm""#));
    for over in ["1001", "1000.01", r#""1,001""#, r#""$1'500""#, r#""EUR 2000""#, r#""many""#, "true", "1e300"] {
        assert!(rises(Match::AmountOver(1000), over), "{over}");
    }
    for under in ["1000", "-5", "999.99", r#""$12.50""#] {
        assert!(!rises(Match::AmountOver(1000), under), "{under}");
    }
}

#[test]
fn a_sensitive_path_is_known_however_it_is_spelled() {
    for path in [
        ".git",
        "a/.git/config",
        "a\\.GIT\\config",
        ".Git.",
        ".git /x",
        ".g\u{200c}it/config",
        ".\u{17f}sh/id",
        "x/ID_RSA",
        "a.PEM",
        "key.pem.",
        "id_rsa.bak",
        "a.pem.old~",
        "infra/terraform.tfstate.17.backup",
        ".psql_history",
    ] {
        assert_eq!(touching("/w", path, false).privacy.value(), 700, "{path:?}");
        assert!(!rises(Match::Path(".nothing".into()), &serde_json::to_string(path).unwrap()));
    }
    for path in [".github/x", "AGENTS.md", "mirror.git/hooks/update", ".bash_login", "ci/Jenkinsfile.release"] {
        assert_eq!(touching("/w", path, true).security.value(), 700, "{path:?}");
        assert_eq!(touching("/w", path, false), EffectVector::NONE, "{path:?}");
    }
    assert_eq!(touching("/w", ".git/hooks/update.sample", true).security.value(), 700);
    assert_eq!(touching("/w", "docs/HEAD", true).security.value(), 700);
    for path in [".env.example", "a/.envrc.sample", "git", "a.git/x", "pem", "id_rsa.pub", "history", "agents.mdx"] {
        assert_eq!(touching("/w", path, true), EffectVector::NONE, "{path:?}");
    }
    assert!(rises(Match::Path("*.pem".into()), r#""a/B.PEM""#));
}

#[test]
fn a_file_is_no_less_sensitive_for_a_folder_that_was_chosen_inside() {
    for (workspace, path) in
        [("/home/a/.ssh", "config"), ("/home/a/toy/.git", "hooks/update"), ("/home/a/.config", "gh/hosts.yml")]
    {
        assert_eq!(touching(workspace, path, true).security.value(), 700, "{workspace} {path}");
        assert_eq!(touching(workspace, path, false).privacy.value(), 700, "{workspace} {path}");
    }
    assert_eq!(touching("/home/a/git", "hooks/update", true), EffectVector::NONE);
}
