//! Secrets, and what the host makes that stands in them.

use super::{Call, Fault, wrong};
use crate::{contract::handle, value::KeyFile};

impl Call {
    /// `pod-set.put-own-secret`
    pub fn pod_set_put_own_secret(
        &mut self,
        _: handle::PodSet,
        _: &str,
        _: &str,
        _: Option<u32>,
        _: &[KeyFile],
    ) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `container.put-env-own-secret`
    pub fn container_put_env_own_secret(
        &mut self,
        _: handle::Container,
        _: &str,
        _: &str,
        _: &str,
    ) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `container.put-env-raw`
    pub fn container_put_env_raw(
        &mut self,
        _: handle::Container,
        _: &str,
        _: &str,
    ) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `object.append-secret`
    pub fn object_append_secret(
        &mut self,
        _: handle::Object,
        _: &str,
        _: handle::SecretText,
    ) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `object.set-type`
    pub fn object_set_type(&mut self, _: handle::Object, _: &str) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `objects.key-pair`
    pub fn objects_key_pair(
        &mut self,
        _: handle::Objects,
        _: &str,
        _: &str,
    ) -> Result<handle::KeyPair, Fault> {
        wrong("not written yet")
    }

    /// `objects.random`
    pub fn objects_random(
        &mut self,
        _: handle::Objects,
        _: &str,
        _: u32,
        _: &str,
    ) -> Result<handle::SecretText, Fault> {
        wrong("not written yet")
    }

    /// `key-pair.private`
    pub fn key_pair_private(
        &mut self,
        _: handle::KeyPair,
        _: &str,
    ) -> Result<handle::SecretText, Fault> {
        wrong("not written yet")
    }

    /// `key-pair.public`
    pub fn key_pair_public(
        &mut self,
        _: handle::KeyPair,
        _: &str,
    ) -> Result<handle::SecretText, Fault> {
        wrong("not written yet")
    }
}
