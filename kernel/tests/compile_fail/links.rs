use ephor_base::Pid;
use ephor_kernel::Process;

fn take_along(process: &Process, other: Pid) {
    process.link(other);
}

fn main() {}
