//! The built-in file tools, as one component: `fs.read`, `fs.list`, `fs.search`, `fs.write`, `fs.edit`, `fs.move`, `fs.remove`; and `todo`.
//!
//! The guest sees one directory, the workspace, preopened as `/`, and nothing else. It refuses by name what the host
//! would refuse anyway, so that a model reads a sentence and not an error number; the host's refusal is the guard.
//!
//! `path` turns text into a path inside the workspace, `workspace` is the only module that talks to WASI, `rules` holds
//! the .gitignore files, and each tool has a module of its own.

mod edit;
mod list;
mod path;
mod read;
mod relocate;
mod rules;
mod search;
mod text;
mod todo;
mod workspace;
mod write;

wit_bindgen::generate!({ path: "../../wit", world: "tool" });

use exports::ephor::tool::guest::{Answer, Description, Failure, Guest};
use serde::de::DeserializeOwned;
use workspace::Workspace;

struct Files;

export!(Files);

impl Guest for Files {
    fn describe() -> Vec<Description> {
        let [moves, removes] = relocate::descriptions();
        let looks = [read::description(), list::description(), search::description()];
        let changes = [write::description(), edit::description(), moves, removes];
        looks.into_iter().chain(changes).chain([todo::description()]).collect()
    }

    fn call(name: String, arguments: String) -> Result<Answer, Failure> {
        match name.as_str() {
            read::NAME => read::run(&Workspace::open()?, parse(&name, &arguments)?),
            list::NAME => list::run(&Workspace::open()?, parse(&name, &arguments)?),
            search::NAME => search::run(&Workspace::open()?, parse(&name, &arguments)?),
            write::NAME => write::run(parse(&name, &arguments)?),
            edit::NAME => edit::run(&Workspace::open()?, parse(&name, &arguments)?),
            relocate::MOVE => relocate::run_move(parse(&name, &arguments)?),
            relocate::REMOVE => relocate::run_remove(&Workspace::open()?, parse(&name, &arguments)?),
            todo::NAME => todo::run(parse(&name, &arguments)?),
            _ => Err(Failure::UnknownTool(format!(
                "there is no tool `{}` here; there are `fs.read`, `fs.list`, `fs.search`, `fs.write`, `fs.edit`, `fs.move`, `fs.remove` and `todo`",
                text::visible(&name)
            ))),
        }
    }
}

fn parse<T: DeserializeOwned>(tool: &str, arguments: &str) -> Result<T, Failure> {
    serde_json::from_str(arguments)
        .map_err(|error| Failure::InvalidArguments(format!("the arguments of `{tool}` do not fit its schema: {error}")))
}
