use ephor_base::{Task, Verdict};
use ephor_kernel::Permit;

fn make(verdict: &Verdict, task: Task) -> Option<Permit> {
    Permit::make(verdict, task)
}

fn convert(verdict: Verdict) -> Permit {
    Permit::from(verdict)
}

fn main() {}
