//! Real Kubernetes for tests, as plain processes on this machine: a [`ControlPlane`] of etcd and kube-apiserver, or a [`Cluster`] that also
//! runs JobSets, with the real controllers and a [`Kubelet`] that can run containers as processes of this machine.
//!
//! A [`Program`] is the `main` of a test program: it starts one of them when the first test needs it, passes it to every test, and stops it
//! after the last one. Tests are kept apart by [namespaces](ControlPlane::new_namespace) and names.

mod answer;
mod api;
mod binaries;
mod cache;
mod certificates;
mod clear;
mod clients;
mod cluster;
mod control_plane;
mod crds;
mod definitions;
mod deploy;
mod framework;
mod gang_scheduler;
mod go;
mod harness;
mod health;
mod input;
mod jobset;
mod kept;
mod kubeconfig;
mod kubectl;
mod kubelet;
mod kustomize;
mod launcher;
mod oracle;
mod plugin;
mod pod_groups;
mod pod_row;
mod ports;
mod process;
mod proxy;
mod python;
mod reference;
mod resource;
mod stop;
mod trainyard;
mod wait;

pub use answer::{Answer, Cause, Refusal};
pub use api::{Api, Validation, Write};
pub use clients::{GoTypes, PythonModels, Round};
pub use cluster::{Cluster, KeptCluster, define_kinds};
pub use control_plane::{Backup, ControlPlane};
pub use crds::{Install, install};
pub use definitions::{Definition, Definitions};
pub use deploy::{apply, deploy};
pub use framework::{Framework, Installed};
pub use gang_scheduler::GangScheduler;
pub use go::is_installed as go_is_installed;
pub use harness::{Program, Shared, Test};
pub use input::Input;
pub use kubeconfig::client_of;
pub use kubectl::kubectl;
pub use kubelet::{Fate, Image, Images, Isolation, Kubelet, NodeSpec, UnknownFate};
pub use kustomize::kustomized;
pub use oracle::{Kueue, Oracle, RunningOracle};
pub use plugin::{build_plugin, with_manifest};
pub use pod_groups::PodGroups;
pub use pod_row::PodRow;
pub use ports::Port;
pub use process::Process;
pub use proxy::{Act, Call, Proxy};
pub use python::{Outcome, PythonClient};
pub use reference::{Reference, ReferenceLimits};
pub use resource::{Resource, UnknownKind};
pub use stop::StopSignals;
pub use trainyard::{Trainyard, http_get};
pub use wait::eventually;
