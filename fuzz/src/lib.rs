//! What the fuzz targets run. The tests of the chain, the mesh, the wire, MCP and edits run the same on the corpus and on changes of it.

#[path = "../../sandbox/guests/edit/tests/common/targets.rs"]
mod edit;
#[path = "../../chain/tests/it/common/forge.rs"]
#[expect(dead_code, reason = "the tests of the chain use more of it")]
mod forge;
#[path = "../../sandbox/mcp/tests/it/targets.rs"]
mod mcp;
#[path = "../../mesh/tests/common/targets.rs"]
mod mesh;
mod targets;
#[path = "../../models/wire/tests/it/targets.rs"]
mod wire;

use targets::TARGETS;

/// Runs the target of this name.
pub fn run(name: &str, bytes: &[u8]) {
    for target in TARGETS.iter().filter(|target| target.name == name) {
        (target.run)(bytes);
    }
    for target in wire::TARGETS.iter().filter(|target| target.name == name) {
        (target.run)(bytes);
    }
    for target in edit::TARGETS.iter().filter(|target| target.name == name) {
        (target.run)(bytes);
    }
    for target in mcp::TARGETS.iter().filter(|target| target.name == name) {
        (target.run)(bytes);
    }
    for target in mesh::TARGETS.iter().filter(|target| target.name == name) {
        (target.run)(bytes);
    }
}
