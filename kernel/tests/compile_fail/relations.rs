//! What a process may do about another: watch it.
use ephor_base::Pid;
use ephor_kernel::Process;

fn watch(process: &Process, other: Pid) -> bool {
    let monitor = process.monitor(other);
    process.demonitor(monitor)
}

fn main() {
    let _ = watch;
}
