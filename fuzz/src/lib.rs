//! What the fuzz targets run. The chain's tests run the same on the corpus and on changes of it.

#[path = "../../chain/tests/it/common/forge.rs"]
#[expect(dead_code, reason = "the tests of the chain use more of it")]
mod forge;
mod targets;

use targets::TARGETS;

/// Runs the target of this name.
pub fn run(name: &str, bytes: &[u8]) {
    for target in TARGETS.iter().filter(|target| target.name == name) {
        (target.run)(bytes);
    }
}
