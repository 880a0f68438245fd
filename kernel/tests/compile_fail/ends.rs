use ephor_base::{ExitReason, Pid};
use ephor_kernel::Process;

fn end(process: &Process, other: Pid) {
    let _ = process.exit(other, ExitReason::Killed);
}

fn main() {}
