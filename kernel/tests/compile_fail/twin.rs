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

fn estimate(of: &ephor_kernel::Estimate<'_>) -> usize {
    match of {
        ephor_kernel::Estimate::Model { shown_bytes, .. } => *shown_bytes,
        ephor_kernel::Estimate::Tool { arguments_bytes, .. } => *arguments_bytes,
        ephor_kernel::Estimate::Reply { text_bytes } => *text_bytes,
    }
}

fn main() {
    let _ = (use_up, look, read, estimate);
}
