//! What a log costs on the disk once it is published.

use std::path::Path;

use ephor_base::{
    ActionKind, Budget, CallId, Confidentiality, Decision, Digest, EndReason, MessageId, Seq, SpanId, TurnReport,
};
use ephor_chain::{IntentRecord, Log};
use ephor_record::{Chosen, Content, Fact, Grounds, Record, Subject};

use crate::common::{World, block_on, intent, memory::Memory, message, verdict};

/// The block of most file systems: each file takes whole ones.
const BLOCK: u64 = 4096;

/// What an agent does in one turn: eleven model requests, ten tool calls between them, and a reply.
struct Turn<'a> {
    log: &'a Log,
    number: u64,
    calls: u64,
    spans: u64,
    /// Bytes of text that were new.
    text: u64,
}

impl Turn<'_> {
    fn run(mut self) -> u64 {
        let question = "x".repeat(240);
        block_on(self.log.append(message(self.number, &question))).unwrap();
        self.text += question.len() as u64;
        for _ in 0..10 {
            self.request(300);
            // What the model wrote as arguments is recorded beside the verdict once more.
            self.call(ActionKind::Tool, Content::Text("a".repeat(90)), 2500);
        }
        self.request(300);
        let prompt = Content::Prompt(vec![SpanId(self.spans)]);
        self.call(ActionKind::Reply, prompt, 700);
        let fact =
            Fact::TurnEnd { message: MessageId(self.number), end: EndReason::Replied, report: TurnReport::default() };
        block_on(self.log.append(Record { subject: Subject::default(), fact, content: None })).unwrap();
        block_on(self.log.publish()).unwrap();
        self.text
    }

    fn request(&mut self, length: usize) {
        let prompt = (0..=self.spans).map(SpanId).collect();
        self.call(ActionKind::Model, Content::Prompt(prompt), length);
    }

    fn call(&mut self, action: ActionKind, asked: Content, length: usize) {
        self.calls += 1;
        let call = self.number * 100 + self.calls;
        let intent =
            IntentRecord { action, call: CallId(call), arguments: Digest::of(&call.to_be_bytes()), ..intent(call) };
        let mut given = Record { content: Some(asked), ..verdict(call, Decision::Permit) };
        if let Fact::Verdict { action: asked, grounds, .. } = &mut given.fact {
            *asked = action;
            let chosen = (action == ActionKind::Tool).then_some(Chosen { of: CallId(call), index: 9 });
            let context = Confidentiality::Internal;
            *grounds = Some(Grounds { context, suspended: false, over: false, chosen, within: None, spent: None });
        }
        let seq: Seq = block_on(self.log.intend(given, intent.clone())).unwrap().seq();
        let fact = Fact::Outcome { intent: seq, end: "done".into(), used: Budget { tokens: 900, ..Budget::ZERO } };
        let content = Some(Content::Text("y".repeat(length)));
        block_on(self.log.settle(seq, Record { subject: intent.subject(), fact, content })).unwrap();
        self.text += length as u64;
        self.spans += 1;
    }
}

fn size_below(memory: &Memory, folder: &str) -> u64 {
    let files = memory.everything().into_iter().filter(|(path, _)| path.starts_with(folder));
    files.map(|(_, bytes)| (bytes.len() as u64).div_ceil(BLOCK) * BLOCK).sum()
}

/// Runs so many turns between a start and a clean stop; says how much new text they had.
fn turns(world: &World, numbers: std::ops::Range<u64>) -> u64 {
    let (log, _) = world.open().unwrap();
    let text = numbers.map(|number| Turn { log: &log, number, calls: 0, spans: 0, text: 0 }.run()).sum();
    block_on(log.close()).unwrap();
    text
}

#[test]
fn a_turn_of_ten_tool_calls_costs_little_once_it_is_published() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    turns(&world, 1..10);
    let before = (size_below(&memory, "/home/chain"), size_below(&memory, "/home/vault"));
    let count = 100;
    let text = turns(&world, 10..10 + count);
    let chain = (size_below(&memory, "/home/chain") - before.0) / count;
    let vault = (size_below(&memory, "/home/vault") - before.1) / count;
    let text = text / count;
    println!("a turn: {chain} bytes of chain, {vault} bytes in the vault for {text} bytes of text");
    assert!(chain <= 64 << 10, "{chain} bytes of chain");
    assert!(vault * 10 <= text * 12, "{vault} bytes in the vault for {text} bytes of text");
    assert!(world.verify(world.pinned()).unwrap().published > 60 * count);
}
