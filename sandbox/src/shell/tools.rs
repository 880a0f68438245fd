//! The two tools, as they are described and registered.

use ephor_base::{Capability, Digest, Limits};

use crate::builtin::{BuiltinError, BuiltinTool};

/// Runs a command.
pub const SHELL: &str = "shell";
/// Puts what a command changed into the workspace. For [`SHELL`] alone.
pub const APPLY: &str = "shell.apply";

const DESCRIPTION: &str = "Runs one command line in bash, in the workspace, without network. What it changes in the workspace is applied \
when it has ended, all or nothing, and can be undone; elsewhere it can write only to /tmp, which is gone afterwards. No process goes \
on after it. Files that are likely to hold secrets, .git among them, are hidden from it unless named in `shows`, which may ask a person.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"command":{"type":"string","minLength":1,"maxLength":100000,"description":"The command line."},
"directory":{"type":"string","description":"The working directory, relative to the workspace."},
"seconds":{"type":"integer","minimum":1,"maximum":3600,"description":"Time limit; 120 if left out."},
"shows":{"type":"array","maxItems":16,"items":{"type":"string"},"description":"Hidden files or folders that the command needs, such as .git."}},
"required":["command"],"additionalProperties":false}"#;

const APPLY_SCHEMA: &str = r#"{"type":"object","properties":{"call":{"type":"string"},"paths":{"type":"array","items":{"type":"string"}}},
"required":["call","paths"],"additionalProperties":false}"#;

/// Fuel and memory are WebAssembly's and do not count here: a command has limits of its own.
const LIMITS: Limits = Limits { fuel: 0, deadline_ms: 3_600_000, memory_bytes: 0, output_bytes: 256 * 1024 };

/// [`SHELL`] and [`APPLY`]. What runs is the node's own code, so its digest is that of what is said of it here.
///
/// # Errors
/// [`BuiltinError::Name`], which a test excludes.
pub fn shell_tools() -> Result<[BuiltinTool; 2], BuiltinError> {
    let tool = |name: &str, description: &str, schema: &str, capability, paths, consequential| {
        Ok::<_, BuiltinError>(BuiltinTool {
            name: name.parse().map_err(|_| BuiltinError::Name(name.to_owned()))?,
            description: description.to_owned(),
            schema: schema.to_owned(),
            capability,
            paths,
            consequential,
            limits: LIMITS,
            code: Digest::of_parts(&[b"ephor native tool ", name.as_bytes(), schema.as_bytes()]),
        })
    };
    let paths: (&'static [&'static str], &'static [&'static str]) = (&["directory", "shows"], &["paths"]);
    Ok([
        tool(SHELL, DESCRIPTION, SCHEMA, Capability::FsRead, paths.0, &[])?,
        // Without a description: no model is offered it.
        tool(APPLY, "", APPLY_SCHEMA, Capability::FsWrite, paths.1, paths.1)?,
    ])
}
