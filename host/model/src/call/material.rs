//! `objects.key-pair` and `objects.random`: key material, by id.

use super::{Call, Fault, wrong};
use crate::{
    contract::handle,
    material::{Algorithm, Form, Half, KeyText, Material, RandomText, SecretText},
    names::is_dns_label,
    phase::Phase,
};

/// The error for an invalid id.
const NO_ID: &str = "the id of key material is not a DNS label, such as `ssh`";

/// The key material that a call requested.
#[derive(Debug, Default)]
pub(super) struct RequestedMaterial {
    /// The key pairs and random texts, by id. Handles of key pairs refer to these.
    made: Vec<MaterialEntry>,
    /// The texts that handles refer to.
    texts: Vec<SecretText>,
}

#[derive(Debug)]
struct MaterialEntry {
    id: String,
    material: Material,
    /// The object that contains it.
    place: Option<handle::Object>,
}

impl MaterialEntry {
    /// The id and the algorithm of a key pair.
    fn key_pair(&self) -> Option<(&str, Algorithm)> {
        match self.material {
            Material::KeyPair(algorithm) => Some((&self.id, algorithm)),
            Material::Random(_) => None,
        }
    }
}

impl Call {
    /// The number of the key material with that id, which is added if it is new.
    fn material(&mut self, id: &str, material: Material) -> Result<usize, Fault> {
        if self.phase != Phase::Build {
            return Err(Fault::WrongPhase {
                what: "request key material",
                phase: self.phase,
            });
        }
        if !is_dns_label(id) {
            return wrong(NO_ID);
        }
        let made = &self.requested.made;
        if let Some(at) = made.iter().position(|known| known.id == id) {
            return match made.get(at) {
                Some(known) if known.material == material => Ok(at),
                _ => wrong(format!(
                    "key material with the id `{id}` was already requested with another algorithm, length or encoding"
                )),
            };
        }
        self.meter.key_material()?;
        self.requested.made.push(MaterialEntry {
            id: id.to_owned(),
            material,
            place: None,
        });
        Ok(self.requested.made.len() - 1)
    }

    /// A handle to a text of the key material.
    fn new_text(&mut self, id: &str, form: Form) -> Result<handle::SecretText, Fault> {
        let text = SecretText::new(id, form).map_or_else(|| wrong(NO_ID), Ok)?;
        let number = u32::try_from(self.requested.texts.len()).unwrap_or(u32::MAX);
        let handle = self.give_handle(handle::SecretText(number))?;
        self.requested.texts.push(text);
        Ok(handle)
    }

    /// The text of a handle.
    pub(super) fn secret_text(&self, handle: handle::SecretText) -> Result<SecretText, Fault> {
        let text = self.requested.texts.get(handle.0 as usize);
        text.cloned().ok_or(Fault::DeadHandle {
            what: "secret text",
        })
    }

    /// Assigns the key material of a text to an object. Key material can be in only one object, because it is generated with it.
    pub(super) fn give_place(
        &mut self,
        text: &SecretText,
        object: handle::Object,
    ) -> Result<(), Fault> {
        let mut made = self.requested.made.iter_mut();
        let Some(known) = made.find(|known| known.id == text.id()) else {
            return Err(Fault::DeadHandle {
                what: "secret text",
            });
        };
        match known.place {
            Some(place) if place != object => wrong(format!(
                "the key material `{}` is already in another object",
                text.id()
            )),
            _ => {
                known.place = Some(object);
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
        let Some(algorithm) = Algorithm::named(algorithm) else {
            let known = Algorithm::ALL.map(Algorithm::name).join(", ");
            return wrong(format!("the algorithm must be one of {known}"));
        };
        let at = self.material(id, Material::KeyPair(algorithm))?;
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
        let Some(text) = RandomText::new(bytes, encoding) else {
            return wrong(
                "random text must have 16 to 1,024 bytes and the encoding `hex` or `base64`",
            );
        };
        self.material(id, Material::Random(text))?;
        self.new_text(id, Form::Random(text))
    }

    /// A text of one half of a key pair.
    fn half(
        &mut self,
        handle: handle::KeyPair,
        half: Half,
        encoding: &str,
    ) -> Result<handle::SecretText, Fault> {
        self.meter.text(encoding)?;
        let pair = self.requested.made.get(handle.0 as usize);
        let Some((id, algorithm)) = pair.and_then(MaterialEntry::key_pair) else {
            return Err(Fault::DeadHandle { what: "key pair" });
        };
        let mut texts = algorithm.texts(half);
        let Some(text) = texts.find(|text| text.encoding() == encoding) else {
            let known: Vec<_> = algorithm.texts(half).map(KeyText::encoding).collect();
            let (half, algorithm) = (half.name(), algorithm.name());
            return wrong(format!(
                "unsupported encoding; the encodings of a {half} of {algorithm} are {}",
                known.join(", ")
            ));
        };
        let id = id.to_owned();
        self.new_text(&id, Form::Key(text))
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
