//! Runs the judge: a real Erlang.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::{scenario::Scenario, trace::Trace};

/// How many scenarios run at the same time in the one Erlang: most of their time is waiting.
const AT_ONCE: usize = 256;

/// An Erlang with the judge compiled.
pub(crate) struct Judge {
    folder: tempfile::TempDir,
}

impl Judge {
    /// `None` where no Erlang is installed.
    pub(crate) fn find() -> Option<Self> {
        let version = Command::new("erl").arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !version.is_ok_and(|status| status.success()) {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder for the judge");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otp/judge.erl");
        let compiled = Command::new("erlc").arg("-o").arg(folder.path()).arg(source).status().expect("erlc runs");
        assert!(compiled.success(), "the judge does not compile");
        Some(Self { folder })
    }

    /// Which OTP and supervisor judge.
    pub(crate) fn version(&self) -> String {
        let show = "application:load(stdlib), {ok, V} = application:get_key(stdlib, vsn), \
                    io:format(\"OTP ~s, stdlib ~s\", [erlang:system_info(otp_release), V]), halt().";
        let output = Command::new("erl").args(["-noshell", "-eval", show]).output().expect("erl runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What Erlang does with each of the scenarios.
    pub(crate) fn traces(&self, scenarios: &[Scenario]) -> Vec<Trace> {
        let (input, output) = (self.folder.path().join("scenarios"), self.folder.path().join("traces"));
        let terms: Vec<String> = scenarios.iter().enumerate().map(|(id, scenario)| scenario.term(id)).collect();
        fs::write(&input, terms.join("\n")).expect("scenarios are written");
        let run = format!("judge:main({input:?}, {output:?}, {AT_ONCE}), halt().");
        let status = Command::new("erl")
            .args(["-noshell", "-pa"])
            .arg(self.folder.path())
            .args(["-eval", &run])
            .stdin(Stdio::null())
            .status()
            .expect("erl runs");
        assert!(status.success(), "the judge failed");
        let text = fs::read_to_string(&output).expect("traces are read");
        let mut by_id: HashMap<usize, Trace> = HashMap::new();
        for account in format!("\n{text}").split("\n#").skip(1) {
            let mut lines = account.lines();
            let id = lines.next().and_then(|line| line.parse().ok()).expect("an account begins with its number");
            by_id.insert(id, Trace::parse(&lines.collect::<Vec<_>>()));
        }
        let trace =
            |id: usize| by_id.remove(&id).unwrap_or_else(|| panic!("the judge says nothing about scenario {id}"));
        (0..scenarios.len()).map(trace).collect()
    }
}
