//! What the simulated cluster does with the objects beside the JobSet.

use trainyard_model::object::ApplyMode;
use trainyard_render::RenderedObject;

use super::{
    client::{CallKind, Client, Delayed, Sabotage},
    *,
};
use crate::reconcile::{
    cluster::{Objects, Result},
    facts::ObjectState,
};

impl Objects for Client<'_> {
    async fn object(&mut self, object: &ObjectRef) -> Result<ObjectState> {
        let reads = |world: &mut World| self.state_of(world, object);
        self.call(CallKind::Read, format!("read {}", object.name), reads)
            .await
    }

    async fn listed_object(&mut self, object: &ObjectRef) -> Result<ObjectState> {
        let reads = |world: &mut World| self.state_of(world, object);
        self.call(CallKind::Read, format!("look at {}", object.name), reads)
            .await
    }

    async fn apply_object(
        &mut self,
        rendered: &RenderedObject,
        over: Option<&ObjectVersion>,
    ) -> Result<Option<Box<str>>> {
        let how = if over.is_some() { "force" } else { "apply" };
        let object = ObjectRef::of(rendered);
        let (mode, content) = (object.apply, self.content());
        assert_ne!(
            mode,
            ApplyMode::Once,
            "an object that is made once is applied"
        );
        let applies = |world: &mut World| {
            world.serves()?;
            let known = world.objects.get(&object);
            let is_read = known.map(|it| version("", it.version)).as_ref() == over;
            if over.is_some() && !is_read || known.is_some_and(|it| !it.ours) && over.is_none() {
                return Err(error(Fault::Conflict));
            }
            let same = known.filter(|it| it.content == content);
            let (exists, same) = (known.is_some(), same.map(|it| it.version));
            let runs = |found: &Option<SimJobSet>| found.as_ref().is_some_and(|it| !it.suspended);
            let is_frozen = runs(&self.began_with) && runs(&world.job_set);
            if exists && mode != ApplyMode::Live && is_frozen {
                world.breaks("nothing beside running pods changes: an object was applied");
            }
            let version = same.unwrap_or_else(|| world.next_version());
            self.creates(world, object, version);
            Ok(Some(version.to_string().into()))
        };
        self.call(CallKind::Write, format!("{how} {}", rendered.name), applies)
            .await
    }

    async fn create_object(&mut self, rendered: &RenderedObject) -> Result<()> {
        let (object, content) = (ObjectRef::of(rendered), self.content());
        if self.sabotage == Some(Sabotage::SecretLast) {
            let it = SimObject {
                ours: true,
                version: 0,
                content,
            };
            self.delayed.push(Delayed::Object(object, it));
            return Ok(());
        }
        let creates = |world: &mut World| {
            world.serves()?;
            if world.objects.contains_key(&object) {
                return Err(error(Fault::Conflict));
            }
            let version = world.next_version();
            self.creates(world, object, version);
            match world.created_by_another {
                true => Err(error(Fault::Conflict)),
                false => Ok(()),
            }
        };
        self.call(
            CallKind::Write,
            format!("create {}", rendered.name),
            creates,
        )
        .await
    }
}

impl Client<'_> {
    fn state_of(&self, world: &World, object: &ObjectRef) -> Result<ObjectState> {
        world.serves()?;
        let owns_all = self.sabotage == Some(Sabotage::OwnsAll);
        Ok(match world.objects.get(object) {
            None => ObjectState::Missing,
            Some(it) if it.ours || owns_all => ObjectState::Ours(version("", it.version)),
            Some(_) => ObjectState::Unusable(error(Fault::Foreign)),
        })
    }

    fn creates(&self, world: &mut World, object: ObjectRef, version: u64) {
        let is_listed = |it: &SimSnapshot| it.ours && it.objects.contains(&object);
        let runs = self.began_with.as_ref().is_some_and(|it| !it.suspended);
        if !world.meddled && !runs && !world.snapshot.as_ref().is_some_and(is_listed) {
            world.breaks("no object is orphaned: one was written that the snapshot does not list");
        }
        let it = SimObject {
            ours: true,
            version,
            content: self.content(),
        };
        world.objects.insert(object, it);
    }
}

impl World {
    /// Fails if the API server does not serve the kinds of the objects.
    fn serves(&self) -> Result<()> {
        match self.served {
            true => Ok(()),
            false => Err(error(Fault::NotServed)),
        }
    }
}
