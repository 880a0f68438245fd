//! A page can check a proof: `chain/tlog` is built for `wasm32-unknown-unknown` with signatures of other libraries, and run.
#![expect(clippy::expect_used, reason = "a test may stop at the first surprise")]

use std::{path::Path, process::Command};

use wasmtime::{Engine, Instance, Module, Store, TypedFunc};

const TARGET: &str = "wasm32-unknown-unknown";

/// The module, or nothing where its target is not installed.
fn built() -> Option<Vec<u8>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../chain/tlog/page");
    let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    if !libraries.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()) {
        println!("SKIPPED: the target {TARGET} is not installed, so no proof was checked in a page");
        return None;
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "--quiet", "--target", TARGET, "--target-dir"]).arg(&target);
    let status = cargo.arg("--manifest-path").arg(page.join("Cargo.toml")).status().expect("cargo runs");
    assert!(status.success(), "the page does not build");
    Some(std::fs::read(target.join(TARGET).join("release/ephor_page.wasm")).expect("it was built"))
}

struct Page {
    store: Store<()>,
    push: TypedFunc<u32, ()>,
    holds: TypedFunc<u32, i32>,
}

impl Page {
    fn new(module: &[u8]) -> Self {
        let engine = Engine::default();
        let module = Module::new(&engine, module).expect("it is a module");
        assert_eq!(module.imports().count(), 0, "it wants nothing of the page");
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).expect("it starts");
        let push = instance.get_typed_func(&mut store, "push").expect("it takes bytes");
        let holds = instance.get_typed_func(&mut store, "holds").expect("it checks");
        Self { store, push, holds }
    }

    fn holds(&mut self, proof: &[u8], keys: &[u8]) -> bool {
        for byte in proof.iter().chain(keys) {
            self.push.call(&mut self.store, u32::from(*byte)).expect("it takes a byte");
        }
        let length = u32::try_from(proof.len()).expect("it is short");
        self.holds.call(&mut self.store, length).expect("it does not trap") == 1
    }
}

#[test]
fn a_proof_is_checked_in_a_page_and_a_changed_one_refused() {
    let Some(module) = built() else { return };
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/chain-format/vectors");
    let [proof, keys] = ["proof", "keys"].map(|name| std::fs::read(vectors.join(name)).expect("the vectors are there"));
    let mut page = Page::new(&module);
    assert!(page.holds(&proof, &keys));
    for at in (0..proof.len()).step_by(17) {
        let mut other = proof.clone();
        other[at] ^= 1;
        assert!(!page.holds(&other, &keys), "byte {at} of the proof");
    }
    for at in (0..keys.len()).step_by(97) {
        let mut other = keys.clone();
        other[at] ^= 1;
        assert!(!page.holds(&proof, &other), "byte {at} of the keys");
    }
}
