//! Runs tools: WASM guests that see only what they were given.
