//! Linux namespaces as pods on one network, for tests that start real programs in them.
//!
//! A [`Machine`] is a set of namespaces that no process outlives, with a bridge. A [`Pod`] in it has its own host name, address,
//! `/etc/hosts` and shared memory, and sees the files of this machine. Both are made by `unshare`, `nsenter`, `mount` and `ip`, so they
//! need util-linux and iproute2, and either root or the permission to create user namespaces. Pods reach nothing outside of the machine but
//! the ports that are [forwarded](Machine::forward). A test that needs what this machine lacks is [skipped](skip).

mod hosts;
mod machine;
mod pod;
mod process;
mod rights;
mod skipped;

pub use hosts::HostsFile;
pub use machine::Machine;
pub use pod::{Pod, PodSpec};
pub use process::{Child, kill_with};
pub use rights::Rights;
pub use skipped::skip;
