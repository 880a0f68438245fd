//! What reading a recorded stream costs, beside serde_json reading the same bytes into values: the ratio is the figure.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench stops at the first surprise, and prints")]

use std::{
    fs,
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

use ephor_wire::{Decoder, Grammar, Limits};
use serde_json::Value;

/// How long each side is measured, and how many times in turn.
const SPAN: Duration = Duration::from_millis(100);
const ROUNDS: usize = 5;

fn decode(grammar: Grammar, bytes: &[u8]) {
    let (mut decoder, mut events) = (Decoder::new(grammar, Limits::of_request(4096, 10_000), 1), Vec::new());
    // As pieces come from a socket.
    for piece in bytes.chunks(1400) {
        decoder.push(piece, &mut events).unwrap();
    }
    black_box(decoder.finish(&mut events));
}

fn parse(text: &str) {
    for line in text.lines() {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        black_box(serde_json::from_str::<Value>(line).ok());
    }
}

/// Seconds for one run.
fn time(mut run: impl FnMut()) -> f64 {
    let (begin, mut runs) = (Instant::now(), 0_u32);
    while begin.elapsed() < SPAN {
        run();
        runs += 1;
    }
    begin.elapsed().as_secs_f64() / f64::from(runs)
}

fn main() {
    let streams = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    println!("{:<24}{:>8}{:>12}{:>12}{:>8}", "stream", "bytes", "decode µs", "values µs", "ratio");
    for grammar in Grammar::ALL {
        let end = if grammar == Grammar::Ollama { "ndjson" } else { "sse" };
        for name in ["text", "calls"] {
            let text = fs::read_to_string(streams.join(grammar.name()).join(format!("{name}.{end}"))).unwrap();
            let mut rounds: Vec<(f64, f64)> =
                (0..ROUNDS).map(|_| (time(|| decode(grammar, text.as_bytes())), time(|| parse(&text)))).collect();
            rounds.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
            let (ours, theirs) = rounds[ROUNDS / 2];
            let stream = format!("{grammar}/{name}");
            println!("{stream:<24}{:>8}{:>12.1}{:>12.1}{:>8.2}", text.len(), ours * 1e6, theirs * 1e6, ours / theirs);
        }
    }
}
