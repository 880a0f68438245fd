//! See `sandbox/mcp/tests/it/targets.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ephor_fuzz::run("mcp_config", bytes));
