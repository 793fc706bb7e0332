//! The path in a cluster.
