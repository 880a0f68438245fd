//! See `models/wire/tests/it/targets.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ephor_fuzz::run("wire_responses", bytes));
