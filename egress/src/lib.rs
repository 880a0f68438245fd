//! Every outgoing connection, each with a permit.
