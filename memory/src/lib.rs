//! Recalls: the ECC substrate, made from the record.
//!
//! | module | what it is |
//! |---|---|
//! | [`entry`] | an entry of the log as memory sees it: reference, place in the order, who and when |
//! | [`graph`] | the causal graph: why, effects, path, common cause; drawn as SVG |
//! | [`chunks`] | text that may be recalled, cut to size, each piece with its label |
//! | [`index`] | BM25, embedders, exact nearest neighbours and HNSW as their cache, for each confidentiality |
//! | [`recall`] | the three together, asked a question: what fits, how new a text is, what was touched of late |
//! | [`spectral`] | λ₂, the Fiedler cut and the communities of a window |
//! | [`tick`] | the DEMOCRITUS tick: how memory follows the log |
//!
//! Each module imports only those above it.
//!
//! Everything here is derived. It follows from the entries of the log, in their order, and is thrown away and made again
//! at will; what is erased leaves it as if it had never been there. `docs/memory.md` says how it is wired. The crate does no I/O, reads no clock, has no randomness and begins no thread; it holds no authority, and
//! the labels that it keeps it was given.

pub mod chunks;
pub mod entry;
pub mod graph;
pub mod index;
pub mod recall;
pub mod spectral;
pub mod tick;
