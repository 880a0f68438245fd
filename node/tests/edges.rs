//! Who may depend on whom: the crates are those of the table in `ARCHITECTURE.md`, and so are the edges between them.
#![expect(clippy::expect_used, reason = "a test stops at the first surprise")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// Every one of our crates is called this and the name of its folder, which may lie in that of its area.
const PREFIX: &str = "ephor-";

/// Between these two lines of `ARCHITECTURE.md` stands the table.
const TABLE: [&str; 2] = ["<!-- edges -->", "<!-- /edges -->"];

/// The libraries that are given, each with the crates that do its job with it.
const GIVEN: [(&str, &[&str]); 9] = [
    ("ed25519-dalek", &["chain"]),
    ("hnsw_rs", &["memory"]),
    ("petgraph", &["memory"]),
    ("pqcrypto-mldsa", &["chain"]),
    ("serde", &["base"]),
    ("sled", &["chain"]),
    ("tokio", &["kernel", "node"]),
    ("tracing", &["kernel", "node"]),
    ("wasmtime", &["sandbox"]),
];

/// Libraries that only these crates may name, so that what they do stays in one place.
const CONFINED: [(&str, &[&str]); 33] = [
    ("anyhow", &["node"]),
    ("argon2", &["chain"]),
    ("bip39", &["mesh"]),
    ("cedar-policy", &["governance"]),
    ("clap", &["node"]),
    ("crc32fast", &["chain"]),
    ("croner", &["node"]),
    ("csv", &["governance"]),
    ("ed25519-dalek", &["chain", "record", "kernel", "node", "signatures"]),
    ("faer", &["memory"]),
    ("foca", &["mesh"]),
    ("getrandom", &["node"]),
    ("hnsw_rs", &["memory"]),
    ("icu_properties", &["base"]),
    ("iban_validate", &["governance"]),
    ("jiff", &["governance", "node"]),
    ("json-event-parser", &["governance"]),
    ("jsonschema", &["governance"]),
    ("landlock", &["confine"]),
    ("petgraph", &["memory"]),
    ("pqcrypto-mldsa", &["chain"]),
    ("pqcrypto-traits", &["chain"]),
    ("ratatui", &["node"]),
    ("reqwest", &["egress"]),
    ("saphyr-parser", &["governance"]),
    ("seccompiler", &["confine"]),
    ("sled", &["chain"]),
    ("snow", &["mesh", "node"]),
    ("tokio", &["chain", "kernel", "runtime", "egress", "sandbox", "confine", "mcp", "models", "node"]),
    ("toml", &["node"]),
    ("unicode-normalization", &["governance"]),
    ("wasmtime", &["sandbox"]),
    ("wasmtime-wasi", &["sandbox"]),
];

/// What the kernel and the agents must not even reach through others: drivers bring these.
const FOREIGN: [&str; 9] =
    ["axum", "hyper", "reqwest", "rmcp", "rustls", "snow", "tungstenite", "wasmtime", "wasmtime-wasi"];

/// The workspace as cargo resolves it here.
fn workspace() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .other_options(["--locked".into(), "--filter-platform".into(), host()])
        .exec()
        .expect("cargo metadata answers")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("node lies in the workspace")
}

/// The platform that builds. Packages of other platforms need not be downloaded.
fn host() -> String {
    let output = Command::new(env!("CARGO")).arg("-vV").output().expect("cargo starts");
    let text = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host").to_owned()
}

/// What `ARCHITECTURE.md` allows: each crate, and the crates it may depend on.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md can be read");
    let [begin, end] = TABLE;
    let table = text.split_once(begin).and_then(|(_, rest)| rest.split_once(end)).expect("the table is there").0;
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let read: BTreeMap<String, BTreeSet<String>> = rows.map(row).collect();
    let names: BTreeSet<String> = read.keys().cloned().collect();
    read.into_iter()
        .map(|(name, mut on)| {
            if on.remove("all") {
                on = names.iter().filter(|other| **other != name).cloned().collect();
            }
            assert!(on.is_subset(&names), "the row of `{name}` names a crate without a row: {on:?}");
            (name, on)
        })
        .collect()
}

/// A row: the crate in the first cell, those it may depend on in the last.
fn row(line: &str) -> (String, BTreeSet<String>) {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let (first, last) = (cells.first().expect("a first cell"), cells.last().expect("a last cell"));
    let on = last.split(',').map(|name| name.trim().trim_matches('`').to_owned()).filter(|name| name != "–").collect();
    (first.trim_matches('`').to_owned(), on)
}

/// Our crates by their short names.
fn crates(metadata: &Metadata) -> BTreeMap<String, &Package> {
    let short =
        |package: &Package| package.name.strip_prefix(PREFIX).expect("every crate is an ephor- crate").to_owned();
    metadata.workspace_packages().into_iter().map(|package| (short(package), package)).collect()
}

/// The crates that depend on `library` for the product.
fn users(crates: &BTreeMap<String, &Package>, library: &str) -> BTreeSet<String> {
    let uses = |package: &Package| {
        package.dependencies.iter().any(|d| d.name == library && d.kind != DependencyKind::Development)
    };
    crates.iter().filter(|(_, package)| uses(package)).map(|(name, _)| name.clone()).collect()
}

/// The names of all packages that `id` is linked with, however far.
fn reached(metadata: &Metadata, id: &PackageId) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().expect("cargo resolves");
    let (mut todo, mut seen) = (vec![id], BTreeSet::new());
    while let Some(id) = todo.pop() {
        let node = resolve.nodes.iter().find(|node| node.id == *id).expect("every package is resolved");
        let normal = |dependency: &&cargo_metadata::NodeDep| {
            dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal)
        };
        todo.extend(node.deps.iter().filter(normal).map(|dependency| &dependency.pkg).filter(|id| seen.insert(*id)));
    }
    seen.into_iter().map(|id| metadata[id].name.to_string()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_crates_are_those_of_the_architecture() {
    let metadata = workspace();
    let there: Vec<_> = crates(&metadata).into_keys().collect();
    let described: Vec<_> = allowed().into_keys().collect();
    assert_eq!(there, described, "left: the workspace; right: the table in ARCHITECTURE.md");
}

#[test]
fn a_crate_lies_in_the_folder_of_its_name() {
    for (name, package) in crates(&workspace()) {
        let folder = package.manifest_path.parent().and_then(|folder| folder.strip_prefix(root()).ok());
        assert_eq!(folder.and_then(|folder| folder.file_name()), Some(&*name), "`{}`", package.name);
    }
}

#[test]
fn cargo_run_runs_the_product() {
    let metadata = workspace();
    let default: Vec<_> = metadata.workspace_default_packages().into_iter().map(|package| &**package.name).collect();
    assert_eq!(default, ["ephor-node"]);
    let binaries = |package: &Package| {
        let targets = package.targets.iter().filter(|target| target.is_bin());
        targets.map(|target| format!("{}:{}", package.name, target.name)).collect::<Vec<_>>()
    };
    let binaries: Vec<_> = metadata.workspace_packages().into_iter().flat_map(binaries).collect();
    assert_eq!(binaries, ["ephor-node:ephor"], "there is one binary");
}

#[test]
fn a_crate_depends_only_on_those_it_may() {
    let (metadata, allowed) = (workspace(), allowed());
    for (name, package) in crates(&metadata) {
        let ours = package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development);
        let on: BTreeSet<String> = ours.filter_map(|d| d.name.strip_prefix(PREFIX)).map(str::to_owned).collect();
        let may = allowed.get(&name).unwrap_or_else(|| panic!("`{name}` has no row in ARCHITECTURE.md"));
        let beyond: Vec<_> = on.difference(may).collect();
        assert!(beyond.is_empty(), "`{name}` must not depend on {beyond:?}; ARCHITECTURE.md allows {may:?}");
    }
}

#[test]
fn the_given_libraries_do_their_jobs_where_they_belong() {
    let metadata = workspace();
    let crates = crates(&metadata);
    for (library, doers) in GIVEN {
        let users = users(&crates, library);
        assert!(set(doers).is_subset(&users), "`{library}` is for {doers:?}, but only {users:?} depend on it");
    }
    for (library, owners) in CONFINED {
        let (users, owners) = (users(&crates, library), set(owners));
        assert!(users.is_subset(&owners), "`{library}` is for {owners:?} alone, not for {users:?}");
    }
}

#[test]
fn the_kernel_and_the_agents_reach_no_driver_library() {
    let metadata = workspace();
    for (name, package) in crates(&metadata).into_iter().filter(|(name, _)| ["kernel", "agents"].contains(&&**name)) {
        let reached = reached(&metadata, &package.id);
        assert!(reached.contains("tracing"), "the walk from `{name}` went nowhere: {reached:?}");
        let foreign: Vec<_> = FOREIGN.into_iter().filter(|library| reached.contains(*library)).collect();
        assert!(foreign.is_empty(), "`{name}` reaches {foreign:?}");
    }
}
