//! What a guest finds around it: its store, and the host functions that are linked, which are all there are.

use crate::bindings::ephor::tool::host;
use crate::call::{Access, GuestCall};
use crate::filesystem::{Filesystem, Grant, HasFilesystem};
use crate::host::Emitted;
use crate::limits::MemoryMeter;
use crate::output::Printed;
use ephor_base::Limits;
use rand_core::TryRng;
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use std::time::Duration;
use wasmtime::component::{HasData, HasSelf, Linker};
use wasmtime::{Engine, Store};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings;
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, ResourceTable, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

/// Files, directories, streams and pollables a guest may hold at once. Each may be a descriptor of this process, whose
/// number is limited for all guests together.
pub(crate) const MOST_HANDLES: usize = 256;

/// Bytes a guest may hand to the host in one call of a host function, however it is spread over lists.
const HOSTCALL_BYTES: usize = 16 * 1024 * 1024;

/// Random bytes a guest may ask for at once.
const RANDOM_BYTES: u64 = 64 * 1024;

/// Everything a store holds for one call of one guest.
pub(crate) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    meter: MemoryMeter,
    pub(crate) grant: Grant,
    pub(crate) access: Access,
    pub(crate) emitted: Emitted,
}

/// A fresh store. Its fuel is set and its epoch deadline is not.
pub(crate) fn new_store(
    engine: &Engine,
    call: Option<&GuestCall>,
    limits: &Limits,
    printed: &Printed,
    emitted: &Emitted,
) -> wasmtime::Result<Store<State>> {
    let grant = match call {
        Some(call) => Grant::new(call.workspace.directory()?, call.files.clone(), call.withheld),
        None => Grant::default(),
    };
    let seed = call.map_or([0; 32], |call| call.seed);
    let mut table = ResourceTable::new();
    table.set_max_capacity(MOST_HANDLES);
    let state = State {
        wasi: context(seed, printed),
        table,
        meter: MemoryMeter::new(limits.memory_bytes),
        grant,
        access: call.map_or(Access::ReadOnly, |call| call.access),
        emitted: emitted.clone(),
    };
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.meter);
    store.set_fuel(limits.fuel)?;
    store.set_hostcall_fuel(HOSTCALL_BYTES);
    Ok(store)
}

/// No environment, no arguments, no standard input, no network; clocks that stand still and randomness from a seed.
fn context(seed: [u8; 32], printed: &Printed) -> WasiCtx {
    let mut insecure_seed = [0; 16];
    let mut stream = Seeded::new(seed, b"insecure seed");
    stream.fill(&mut insecure_seed);
    WasiCtxBuilder::new()
        .allow_blocking_current_thread(true)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .stdout(printed.clone())
        .stderr(printed.clone())
        .wall_clock(Still)
        .monotonic_clock(Still)
        .secure_random(Seeded::new(seed, b"random"))
        .insecure_random(Seeded::new(seed, b"insecure"))
        .insecure_random_seed(u128::from_le_bytes(insecure_seed))
        .max_random_size(RANDOM_BYTES)
        .build()
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Links what guests get. What is not here, such as `wasi:sockets`, no guest can import: it is refused when it is loaded.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi_io(linker)?;
    host::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    bindings::cli::environment::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    bindings::cli::exit::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    bindings::cli::stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    bindings::cli::stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    bindings::cli::stderr::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    bindings::cli::terminal_input::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    bindings::cli::terminal_output::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    bindings::cli::terminal_stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    bindings::cli::terminal_stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    bindings::cli::terminal_stderr::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    bindings::clocks::wall_clock::add_to_linker::<State, WasiClocks>(linker, State::clocks)?;
    bindings::clocks::monotonic_clock::add_to_linker::<State, WasiClocks>(linker, State::clocks)?;
    bindings::random::random::add_to_linker::<State, WasiRandom>(linker, |state| state.wasi.random())?;
    bindings::random::insecure::add_to_linker::<State, WasiRandom>(linker, |state| state.wasi.random())?;
    bindings::random::insecure_seed::add_to_linker::<State, WasiRandom>(linker, |state| state.wasi.random())?;
    bindings::filesystem::preopens::add_to_linker::<State, HasFilesystem>(linker, filesystem)?;
    bindings::filesystem::types::add_to_linker::<State, HasFilesystem>(linker, filesystem)
}

fn wasmtime_wasi_io(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    bindings::io::error::add_to_linker::<State, HasTable>(linker, |state| &mut state.table)?;
    bindings::io::poll::add_to_linker::<State, HasTable>(linker, |state| &mut state.table)?;
    bindings::io::streams::add_to_linker::<State, HasTable>(linker, |state| &mut state.table)
}

fn filesystem(state: &mut State) -> Filesystem<'_> {
    let State { wasi, table, grant, .. } = state;
    Filesystem { inner: wasmtime_wasi::filesystem::WasiFilesystemCtxView { ctx: wasi.filesystem(), table }, grant }
}

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// A clock that a guest reads and that tells it nothing: the time is information the call was not given. A guest can
/// still wait for a while; its deadline runs on.
struct Still;

impl HostWallClock for Still {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

impl HostMonotonicClock for Still {
    fn resolution(&self) -> u64 {
        1_000_000_000
    }

    fn now(&self) -> u64 {
        0
    }
}

/// Bytes that follow from the seed alone: SHA-256 over seed, purpose and a counter. Good for a guest's hash tables, and no
/// secret: with the seed, they are known.
struct Seeded {
    seed: [u8; 32],
    purpose: &'static [u8],
    counter: u64,
    block: [u8; 32],
    used: usize,
}

impl Seeded {
    fn new(seed: [u8; 32], purpose: &'static [u8]) -> Self {
        Self { seed, purpose, counter: 0, block: [0; 32], used: 32 }
    }

    fn next_byte(&mut self) -> u8 {
        if self.used >= self.block.len() {
            let hash = Sha256::new().chain_update(self.seed).chain_update(self.purpose);
            self.block = hash.chain_update(self.counter.to_le_bytes()).finalize().into();
            self.counter += 1;
            self.used = 0;
        }
        let byte = self.block.get(self.used).copied().unwrap_or_default();
        self.used += 1;
        byte
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.next_byte());
    }
}

impl TryRng for Seeded {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.fill(bytes);
        Ok(())
    }
}
