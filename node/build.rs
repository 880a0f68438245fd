//! Numbers the protocol between client and node: any change of any source of the binary gives another number, so that none is
//! forgotten, and two programs that understand each other are the same.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn main() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let root = manifest.parent().map(Path::to_owned).unwrap_or_default();
    let mut files = Vec::new();
    for part in ["base", "governance", "chain", "kernel", "egress", "sandbox", "models", "agents", "node"] {
        let sources = root.join(part).join("src");
        println!("cargo::rerun-if-changed={}", sources.display());
        collect(&sources, &mut files);
    }
    files.sort();
    let number = files.iter().fold(FNV_OFFSET, |number, file| hashed(number, &fs::read(file).unwrap_or_default()));
    println!("cargo::rustc-env=EPHOR_PROTOCOL={number:x}");
}

/// The sources in a folder and below it.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

const FNV_OFFSET: u32 = 0x811c_9dc5;

/// FNV-1a: nobody has a reason to look for two sources of one number.
fn hashed(number: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(number, |number, byte| (number ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
