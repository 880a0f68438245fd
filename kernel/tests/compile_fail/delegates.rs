use ephor_base::{Part, SessionId};
use ephor_kernel::{Kernel, Process};

fn say(kernel: &Kernel, from: &Process, to: SessionId, parts: Vec<Part>) {
    drop(kernel.delegate(from, to, parts));
}

fn main() {}
