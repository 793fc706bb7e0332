//! A call records what its effects depend on: the facts and the parts of looked-up objects that it read, and the plugin's own objects to
//! which it refers.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use trainyard_model::{
    call::{Call, CallInputs},
    contract::handle,
    facts::Facts,
    job::Job,
    lookup::{LookupAnswer, LookupKey, Lookups, ObjectKey},
    plugin::Phase,
    session::Session,
};

use crate::common::{FunctionPlugin, everything, job, record, set_and_node};

#[test]
fn facts_that_were_read_are_recorded() {
    let facts = Facts::default().with("read", "1").with("other", "2");
    let host_facts = BTreeMap::from([("host/read".to_owned(), "3".to_owned())]);
    let inputs = CallInputs {
        plugin: everything(),
        rank: 1,
        config: Arc::default(),
        job: Arc::new(Job {
            facts,
            host_facts: Arc::new(host_facts),
            ..(*job()).clone()
        }),
        base: Arc::new(record()),
        lookups: Arc::default(),
        kept: Arc::default(),
    };
    let mut call = Call::new(Phase::Transform, record(), inputs);
    for (name, text) in [
        ("read", Some("1")),
        ("read", Some("1")),
        ("absent", None),
        ("host/read", Some("3")),
        ("host/absent", None),
    ] {
        let fact = call.context_fact(Call::CONTEXT, name);
        assert_eq!(fact.unwrap().as_deref(), text, "{name}");
    }
    assert_eq!(call.job().nodes, 4);
    assert!(call.finish().facts.iter().eq(["read"]));
}

#[test]
fn each_pointer_into_a_looked_up_object_is_recorded() {
    let key = LookupKey::Object(ObjectKey::new("v1", "ConfigMap", "a"));
    let object = json!({"data": {"a": "1", "b": "2", "c": "3"}});
    let mut known = Lookups::default();
    known.insert(key.clone(), LookupAnswer::Object(Arc::new(object)));
    let reader = FunctionPlugin::new(everything(), |_, call| {
        let object = call.lookups_get(handle::Lookups(0), "v1", "ConfigMap", "a")?;
        for pointer in ["/data/a", "/data/b", "/data/b"] {
            call.document_text(object.unwrap(), pointer)?;
        }
        Ok(())
    });
    let mut session = Session::new(job(), record()).with_lookups(Arc::new(known));
    session
        .call(&reader, Phase::Build, 0, Arc::default())
        .unwrap();
    let read = session.read_lookups();
    let part = Value::from_iter([("data", json!({"a": "1", "b": "2"}))]);
    assert_eq!(read.get(&key), Some(&LookupAnswer::Object(part.into())));
}

#[test]
fn references_to_own_objects_are_recorded_until_they_are_emitted() {
    let refers = FunctionPlugin::new(everything(), |phase, call| {
        if phase == Phase::Transform {
            let (set, node) = set_and_node(call);
            call.pod_set_put_own_secret(set, "keys", "-keys", None, &[])?;
            call.container_put_env_own_config_map(node, "OWN", "-a", "key")?;
        } else {
            call.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)?;
        }
        Ok(())
    });
    let mut session = Session::new(job(), record());
    let mut missing_after = |phase| {
        session.call(&refers, phase, 0, Arc::default()).unwrap();
        let missing = session.find_missing_objects().into_iter();
        let missing = missing.map(|object| format!("{}: {}", object.place, object.name));
        missing.collect::<Vec<_>>()
    };
    let volume = "pod-sets[node].volumes[keys]: llama-keys";
    let variable = "pod-sets[node].containers[node].env[OWN]: llama-a";
    assert_eq!(missing_after(Phase::Transform), [volume, variable]);
    assert_eq!(missing_after(Phase::Build), [volume]);
}
