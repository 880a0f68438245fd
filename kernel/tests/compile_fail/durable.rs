use ephor_base::Receipt;
use ephor_chain::{Durable, Intent};

fn make(value: Intent, receipt: Receipt) -> Durable<Intent> {
    Durable { value, receipt }
}

fn main() {}
