//! The components that are kept are those the sources make, and say of themselves what the host relies on.

mod common;

use common::{engine, files};
use ephor_base::{Arguments, Capability, Digest};
use ephor_sandbox::{FILES, Guest, builtin_tools};
use std::path::Path;
use std::process::Command;

#[test]
fn the_kept_components_are_what_the_sources_make() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guests = root.join("guests");
    if !has_target(&guests) {
        println!("SKIPPED: the target wasm32-wasip2 is not installed, so the guests were not rebuilt and compared");
        return;
    }
    let built = tempfile::tempdir().unwrap();
    // Another place for everything that is made, so that a place that got into the bytes is seen.
    let status = Command::new(guests.join("build.sh"))
        .arg(built.path().join("components"))
        .arg(built.path().join("fixtures"))
        .env("CARGO_TARGET_DIR", built.path().join("target"))
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env_remove("RUSTUP_TOOLCHAIN")
        .status()
        .unwrap();
    assert!(status.success(), "the guests do not build");
    for (kept, file) in [("components", "files.wasm"), ("tests/fixtures", "hostile.wasm")] {
        let fresh = if kept == "components" { "components" } else { "fixtures" };
        let digest = |path: &Path| Digest::of(&std::fs::read(path.join(file)).unwrap());
        assert_eq!(
            digest(&root.join(kept)),
            digest(&built.path().join(fresh)),
            "{kept}/{file} is not what the sources make; run `just guests`"
        );
    }
}

fn has_target(guests: &Path) -> bool {
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", "wasm32-wasip2"])
        .env_remove("RUSTUP_TOOLCHAIN")
        .current_dir(guests)
        .output();
    libraries.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// With `EPHOR_KEEP_DESCRIPTIONS` set, as in `just guests`, what the guest says is kept anew.
#[tokio::test(flavor = "multi_thread")]
async fn the_kept_descriptions_are_what_the_guest_says() {
    let described = engine().describe(files()).await.unwrap();
    let text = format!("{}\n", serde_json::to_string_pretty(&described).unwrap());
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("components/files.json");
    if std::env::var_os("EPHOR_KEEP_DESCRIPTIONS").is_some() {
        std::fs::write(&kept, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), text, "`just guests` keeps them anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_tools_are_these() {
    let tools = builtin_tools().unwrap();
    let guest = Guest::builtin(engine().clone(), None).unwrap();
    assert_eq!(guest.digest(), Digest::of(FILES));
    let component = guest.ready().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["fs.read", "fs.list", "fs.search", "fs.write", "fs.edit", "fs.move", "fs.remove", "todo"]);
    for tool in &tools {
        let writes = tool.capability == Capability::FsWrite;
        assert_eq!(writes, !["fs.read", "fs.list", "fs.search", "todo"].contains(&tool.name.as_str()));
        assert_eq!(tool.code, component.digest());
        // A schema is an object, and knows every argument the host makes something of.
        let schema = Arguments::parse(&tool.schema).unwrap().to_json();
        for argument in tool.paths.iter().chain(tool.consequential) {
            assert!(schema.contains(&format!("\"{argument}\":{{")), "{}: {argument}", tool.name);
        }
        assert!(schema.contains("\"additionalProperties\":false"), "{}", tool.name);
        assert!(tool.description.len() > 50, "{}", tool.name);
    }
}
