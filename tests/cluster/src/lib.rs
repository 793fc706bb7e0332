//! A control plane of real Kubernetes binaries for tests: etcd and kube-apiserver, as plain processes on this machine.
//!
//! [`run`] is the `main` of a test program: it starts one [`ControlPlane`] when the first test needs it, hands it to every
//! test, and stops it when the last one is done. Tests keep apart by [namespaces](ControlPlane::new_namespace) and names.

mod answer;
mod api;
mod binaries;
mod cache;
mod certificates;
mod clients;
mod control_plane;
mod crds;
mod definitions;
mod go;
mod harness;
mod input;
mod ports;
mod process;
mod resource;

pub use answer::{Answer, Cause, Refusal};
pub use api::{Api, Validation, Write};
pub use binaries::Binaries;
pub use clients::{GoTypes, PythonModels, Round};
pub use control_plane::ControlPlane;
pub use crds::{Install, install};
pub use definitions::{Definition, Definitions};
pub use harness::{Test, run};
pub use input::Input;
pub use resource::{Resource, UnknownKind};
