//! The same measurements on a real Erlang, which runs `bench.erl`.

use std::{collections::HashMap, path::Path, process::Command};

use crate::{Figures, Sizes};

/// How many children a storm has there: its cost grows with their square, and 30,000 take minutes.
pub(crate) const STORM: usize = 3000;

pub(crate) struct Erlang(tempfile::TempDir);

impl Erlang {
    /// `None` where none is installed.
    pub(crate) fn find() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/runtime/bench.erl");
        let compiled = Command::new("erlc").arg("-o").arg(folder.path()).arg(source).status();
        compiled.is_ok_and(|status| status.success()).then_some(Self(folder))
    }

    fn run(&self, arguments: &[&str]) -> HashMap<String, f64> {
        let call = format!("bench:main({arguments:?}), halt().");
        let mut command = Command::new("erl");
        command.args(["+P", "4000000", "-noshell", "-pa"]).arg(self.0.path()).args(["-eval", &call]);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        let figure = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        };
        text.lines().filter_map(figure).collect()
    }

    pub(crate) fn figures(&self, sizes: Sizes) -> Figures {
        let numbers = [sizes.starts, sizes.kills, sizes.idle, STORM].map(|number| number.to_string());
        let [starts, kills, idle, storm] = numbers.each_ref().map(String::as_str);
        let of = self.run(&["quick", starts, kills, idle, storm]);
        Figures {
            start: of["start"],
            kill: of["kill"],
            panic: of["panic"],
            kill_idle: of["kill_idle"],
            panic_idle: of["panic_idle"],
            storm: of["storm"],
        }
    }

    pub(crate) fn bytes(&self, many: usize) -> f64 {
        self.run(&["memory", &many.to_string()])["memory"]
    }
}
