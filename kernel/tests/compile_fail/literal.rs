use ephor_base::{CallId, Pid, Seq, SessionId, Task};
use ephor_kernel::Permit;

fn make(task: Task, session: SessionId) -> Permit {
    Permit {
        task,
        call: CallId(1),
        attempt: 1,
        pid: Pid(1),
        session,
        intent: Seq(1),
        reach: ephor_base::Reach::default(),
        until: unreachable!(),
    }
}

fn main() {}
