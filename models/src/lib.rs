//! Runs models: wire formats, streaming and the built-in model.
