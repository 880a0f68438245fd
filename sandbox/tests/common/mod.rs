//! A folder, an engine that ticks, and calls of the built-in tools.

#![expect(dead_code, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use ephor_base::{Arguments, Limits};
use ephor_sandbox::{
    Access, Component, DEFAULT_LIMITS, Engine, FILES, GuestAnswer, GuestCall, GuestFailure, OpenWorkspace, ToolFailure,
    foresee,
};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

pub(crate) const HOSTILE: &[u8] = include_bytes!("../fixtures/hostile.wasm");

/// One engine for a test binary, ticked by a thread: in the product a process does that.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let engine = Engine::new().unwrap();
        let ticked = engine.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Engine::TICK);
                ticked.tick();
            }
        });
        engine
    })
}

pub(crate) fn files() -> &'static Component {
    static COMPONENT: OnceLock<Component> = OnceLock::new();
    COMPONENT.get_or_init(|| engine().load(FILES, None, None).unwrap())
}

pub(crate) fn hostile() -> &'static Component {
    static COMPONENT: OnceLock<Component> = OnceLock::new();
    COMPONENT.get_or_init(|| engine().load(HOSTILE, None, None).unwrap())
}

/// A workspace inside a folder of its own, so that there is something outside it.
pub(crate) struct Folder {
    outer: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir(outer.path().join("workspace")).unwrap();
        std::fs::write(outer.path().join("secret"), "TODO: keep secret\n").unwrap();
        Self { outer }
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.outer.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.outside("workspace").join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) -> &Self {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
        self
    }

    pub(crate) fn fifo(&self, name: &str) -> &Self {
        self.node(name, rustix::fs::FileType::Fifo, 0).unwrap();
        self
    }

    pub(crate) fn node(&self, name: &str, kind: rustix::fs::FileType, device: u64) -> rustix::io::Result<()> {
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, self.path(name), kind, mode, device)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A call as the driver makes it: its path is followed first, and what it leads to is what the guest is given.
    pub(crate) fn judged(&self, tool: &str, arguments: impl ToString) -> Result<GuestCall, GuestFailure> {
        let mut arguments = arguments.to_string();
        let workspace = OpenWorkspace::open(&self.outside("workspace")).unwrap();
        let mut files = Vec::new();
        let mut parsed: serde_json::Value = serde_json::from_str(&arguments).unwrap_or_default();
        let writes = ["fs.write", "fs.edit", "fs.move", "fs.remove"].contains(&tool);
        let meant = Arguments::parse(&arguments);
        for name in ["path", "from", "to"] {
            let path = parsed.get(name).and_then(|path| path.as_str()).map(str::to_owned);
            let Some(path) = path.filter(|path| stays_inside(path)) else { continue };
            let held = workspace.follow(&path, writes).map_err(refused)?;
            if let Some(fields) = parsed.as_object_mut().filter(|_| !path.ends_with('/')) {
                fields.insert(name.to_owned(), held.place.path.clone().into());
                arguments = parsed.to_string();
            }
            files.push((name, held));
        }
        if let (true, Ok(meant)) = (writes, meant) {
            foresee(tool, &meant, &mut files.iter_mut().map(|(name, held)| (*name, held)).collect::<Vec<_>>());
        }
        let files = files.into_iter().map(|(_, held)| held).collect();
        Ok(GuestCall {
            tool: tool.to_owned(),
            arguments,
            workspace,
            access: if writes { Access::ReadWrite } else { Access::ReadOnly },
            files,
            withheld: |path| path.split('/').any(|part| part == ".secret"),
            session: None,
            seed: [7; 32],
            limits: DEFAULT_LIMITS,
        })
    }

    pub(crate) fn call(&self, tool: &str, arguments: impl ToString) -> GuestCall {
        self.judged(tool, arguments).unwrap()
    }

    /// Calls a built-in tool.
    pub(crate) async fn run(&self, tool: &str, arguments: serde_json::Value) -> Result<GuestAnswer, GuestFailure> {
        engine().run(files(), self.judged(tool, arguments)?, std::future::pending()).await
    }

    pub(crate) async fn answer(&self, tool: &str, arguments: serde_json::Value) -> GuestAnswer {
        self.run(tool, arguments).await.unwrap()
    }

    /// The sort of no and the sentence of a built-in tool that must refuse.
    pub(crate) async fn refusal(&self, tool: &str, arguments: serde_json::Value) -> (ToolFailure, String) {
        match self.run(tool, arguments.clone()).await {
            Err(GuestFailure::Tool { kind, message }) => (kind, message),
            other => panic!("{tool} {arguments}: {other:?}"),
        }
    }

    /// Calls the hostile guest.
    pub(crate) async fn misbehave(
        &self,
        way: &str,
        arguments: &str,
        limits: Limits,
    ) -> Result<GuestAnswer, GuestFailure> {
        let call = GuestCall { limits, ..self.call(way, arguments) };
        engine().run(hostile(), call, std::future::pending()).await
    }
}

fn stays_inside(path: &str) -> bool {
    let mut depth = 0_i64;
    let deep = |part: &str| {
        depth += match part {
            "" | "." => 0,
            ".." => -1,
            _ => 1,
        };
        depth >= 0
    };
    !path.is_empty() && !path.starts_with('/') && !path.contains('\0') && path.split('/').all(deep)
}

/// What the host says of a path that leads nowhere, as if the tool had said it.
fn refused(message: String) -> GuestFailure {
    let kinds = [
        ("does not exist", ToolFailure::NotFound),
        ("too long for a path", ToolFailure::InvalidArguments),
        ("permission denied", ToolFailure::Io),
    ];
    let kind = kinds.iter().find(|(words, _)| message.contains(words)).map_or(ToolFailure::Refused, |(_, kind)| *kind);
    GuestFailure::Tool { kind, message }
}
