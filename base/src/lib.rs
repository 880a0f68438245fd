//! The words everyone uses; no I/O.
