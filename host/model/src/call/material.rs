//! `objects.key-pair` and `objects.random`: key material by id.

use super::{Call, Fault, wrong};
use crate::{
    contract::handle,
    material::{Algorithm, Form, Half, SecretText},
    names::is_dns_label,
    policy::Phase,
};

/// The key material that a call asked for.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// What handles of key pairs mean, and what random texts are made of.
    materials: Vec<Material>,
    /// What handles of texts mean.
    texts: Vec<SecretText>,
}

#[derive(Debug)]
struct Material {
    id: String,
    algorithm: Algorithm,
    /// The object that it has its place in.
    place: Option<handle::Object>,
}

impl Call {
    /// The number of the key material of that id, which is noted if it is new.
    fn material(&mut self, id: &str, algorithm: Algorithm) -> Result<usize, Fault> {
        if self.phase != Phase::Build {
            return Err(Fault::WrongPhase {
                what: "ask for key material",
                phase: self.phase,
            });
        }
        if !is_dns_label(id) {
            return wrong("the id of key material is not a DNS label, such as `ssh`");
        }
        let materials = &self.asked.materials;
        if let Some(at) = materials.iter().position(|known| known.id == id) {
            return match materials.get(at) {
                Some(known) if known.algorithm == algorithm => Ok(at),
                _ => wrong(format!(
                    "it has asked for other key material of the id `{id}` already: with another algorithm, length or encoding"
                )),
            };
        }
        self.meter.key_material()?;
        self.asked.materials.push(Material {
            id: id.to_owned(),
            algorithm,
            place: None,
        });
        Ok(self.asked.materials.len() - 1)
    }

    /// A text of the key material of that id, as a handle.
    fn new_text(&mut self, id: &str, form: Form) -> Result<handle::SecretText, Fault> {
        let plugin = self.inputs.plugin.id.name.clone();
        let Some(text) = SecretText::new(plugin, id, form) else {
            return Err(Fault::DeadHandle { what: "key pair" });
        };
        let number = u32::try_from(self.asked.texts.len()).unwrap_or(u32::MAX);
        let handle = self.give_handle(handle::SecretText(number))?;
        self.asked.texts.push(text);
        Ok(handle)
    }

    /// The text of a handle.
    pub(super) fn secret_text(&self, handle: handle::SecretText) -> Result<SecretText, Fault> {
        let text = self.asked.texts.get(handle.0 as usize);
        text.cloned().ok_or(Fault::DeadHandle {
            what: "secret text",
        })
    }

    /// Gives the key material of a text its place in an object: made again for a second one, it would be another.
    pub(super) fn give_place(
        &mut self,
        text: &SecretText,
        object: handle::Object,
    ) -> Result<(), Fault> {
        let mut materials = self.asked.materials.iter_mut();
        let Some(material) = materials.find(|material| material.id == text.id()) else {
            return Err(Fault::DeadHandle {
                what: "secret text",
            });
        };
        match material.place {
            Some(place) if place != object => wrong(format!(
                "the key material `{}` has its place in another object already",
                text.id()
            )),
            _ => {
                material.place = Some(object);
                Ok(())
            }
        }
    }

    /// `objects.key-pair`
    pub fn objects_key_pair(
        &mut self,
        _: handle::Objects,
        id: &str,
        algorithm: &str,
    ) -> Result<handle::KeyPair, Fault> {
        self.meter.add_bytes(id.len() + algorithm.len())?;
        let Some(algorithm) = Algorithm::of_key_pair(algorithm) else {
            let known = Algorithm::OF_KEY_PAIRS.map(Algorithm::name).join(", ");
            return wrong(format!("the algorithm is none of {known}"));
        };
        let at = self.material(id, algorithm)?;
        self.give_handle(handle::KeyPair(u32::try_from(at).unwrap_or(u32::MAX)))
    }

    /// `objects.random`
    pub fn objects_random(
        &mut self,
        _: handle::Objects,
        id: &str,
        bytes: u32,
        encoding: &str,
    ) -> Result<handle::SecretText, Fault> {
        self.meter.add_bytes(id.len() + encoding.len())?;
        let Some(form) = Form::random(bytes, encoding) else {
            return wrong("random text has 16 to 1,024 bytes, as `hex` or `base64`");
        };
        self.material(id, form.algorithm())?;
        self.new_text(id, form)
    }

    /// The text of a half of a key pair.
    fn half(
        &mut self,
        handle: handle::KeyPair,
        half: Half,
        encoding: &str,
    ) -> Result<handle::SecretText, Fault> {
        self.meter.text(encoding)?;
        let Some(pair) = self.asked.materials.get(handle.0 as usize) else {
            return Err(Fault::DeadHandle { what: "key pair" });
        };
        let mut texts = pair.algorithm.key_texts(half);
        let Some(form) = texts.find(|form| form.encoding() == encoding) else {
            let known: Vec<_> = pair.algorithm.key_texts(half).map(Form::encoding).collect();
            let (half, algorithm) = (half.name(), pair.algorithm.name());
            return wrong(format!(
                "a {half} of {algorithm} has the encodings {}, and no other",
                known.join(", ")
            ));
        };
        let id = pair.id.clone();
        self.new_text(&id, form)
    }

    /// `key-pair.private`
    pub fn key_pair_private(
        &mut self,
        handle: handle::KeyPair,
        encoding: &str,
    ) -> Result<handle::SecretText, Fault> {
        self.half(handle, Half::Private, encoding)
    }

    /// `key-pair.public`
    pub fn key_pair_public(
        &mut self,
        handle: handle::KeyPair,
        encoding: &str,
    ) -> Result<handle::SecretText, Fault> {
        self.half(handle, Half::Public, encoding)
    }
}
