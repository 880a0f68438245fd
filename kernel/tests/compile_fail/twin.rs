//! What a driver may do with a permit: look at it, and use it up.
use ephor_kernel::Permit;

fn use_up(permit: Permit) -> u32 {
    permit.attempt()
}

fn look(permit: &Permit) -> (ephor_base::Pid, &ephor_base::Task) {
    (permit.pid(), permit.task())
}

fn read(intent: &ephor_chain::Durable<ephor_chain::Intent>) -> ephor_base::Seq {
    intent.seq()
}

fn main() {
    let _ = (use_up, look, read);
}
