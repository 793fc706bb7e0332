//! A rendering that needs a lookup and is refused in the same phase waits for the lookup, so all problems are reported at once.

use std::sync::Arc;

use serde_json::json;
use trainyard_model::{
    contract::handle,
    deadline::Deadline,
    lookup::{LookupAnswer, LookupKey, Lookups, ObjectKey},
    plugin::Phase,
};
use trainyard_render::{Needs, Rendered, Stopped};

use crate::common::{Scripted, catalog, input, renderer};

const MAP: [&str; 3] = ["v1", "ConfigMap", "zones"];

fn key() -> LookupKey {
    let [api_version, kind, name] = MAP.map(str::to_owned);
    LookupKey::Object(ObjectKey::new(api_version, kind, name))
}

/// Refuses every TrainJob in this phase.
fn refuses(name: &str, phase: Phase) -> Scripted {
    Scripted::new(name, &[], move |of, call| match of == phase {
        true => call.context_error(handle::Context(0), "no", None),
        false => Ok(()),
    })
}

/// Reads the ConfigMap in this phase, and refuses the TrainJob with its content.
fn looks_up(name: &str, phase: Phase) -> Scripted {
    let claim = format!("lookups[{}]", MAP.join("/"));
    Scripted::new(name, &[("reads", &claim)], move |of, call| {
        if of == phase {
            let [api_version, kind, name] = MAP;
            call.lookups_get(handle::Lookups(0), api_version, kind, name)?;
            call.context_error(handle::Context(0), "no such zone", None)?;
        }
        Ok(())
    })
}

fn with_map() -> Lookups {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "zones"}});
    let mut lookups = Lookups::default();
    lookups.insert(key(), LookupAnswer::Object(Arc::new(object)));
    lookups
}

fn render(plugins: &[Scripted], lookups: Lookups) -> Result<Rendered, Stopped> {
    let (catalog, renderer) = (catalog(&input(plugins)), renderer(plugins).unwrap());
    let job = &catalog.jobs[0];
    let (lookups, deadline) = (Arc::new(lookups), Deadline::none());
    renderer.render(&job.train_job, &job.runtime, "default", &lookups, &deadline)
}

fn needs(stopped: Stopped) -> Needs {
    match stopped {
        Stopped::Needs(needs) => needs,
        Stopped::Refused(problems) => panic!("{problems:?}"),
    }
}

#[test]
fn of_one_phase() {
    for phase in Phase::ALL {
        for names in [["a", "b"], ["b", "a"]] {
            let plugins = [refuses(names[0], phase), looks_up(names[1], phase)];
            let needs = needs(render(&plugins, Lookups::default()).unwrap_err());
            assert_eq!((needs.lookups.len(), needs.problems.len()), (1, 1));
            assert_eq!(needs.lookups[0].key, key());
            assert_eq!(&*needs.lookups[0].plugin.name, names[1]);
            let refusal = needs.problems[0].to_string();
            assert!(refusal.starts_with("no (plugin "), "{refusal}");

            let stopped = render(&plugins, with_map()).unwrap_err();
            assert!(matches!(stopped, Stopped::Refused(_)), "{stopped:?}");
            assert_eq!(stopped.problems().len(), 2, "{stopped:?}");
        }
    }
}

#[test]
fn a_refusal_of_an_earlier_phase_ends_the_rendering() {
    let plugins = [refuses("a", Phase::Transform), looks_up("b", Phase::Build)];
    let stopped = render(&plugins, Lookups::default()).unwrap_err();
    assert!(matches!(stopped, Stopped::Refused(_)), "{stopped:?}");
}

#[test]
fn the_lookups_of_a_train_job_are_limited() {
    let asks = Scripted::new("a", &[("reads", "lookups[v1/ConfigMap/*]")], |_, call| {
        for number in 0..65 {
            let name = format!("map-{number}");
            call.lookups_get(handle::Lookups(0), "v1", "ConfigMap", &name)?;
        }
        Ok(())
    });
    let (plugins, mut lookups) = ([asks], Lookups::default());
    let problems = loop {
        match render(&plugins, lookups.clone()).unwrap_err() {
            Stopped::Needs(needs) => {
                for needed in needs.lookups {
                    let object = LookupAnswer::Object(Arc::new(json!({})));
                    lookups.insert(needed.key, object);
                }
            }
            Stopped::Refused(problems) => break problems,
        }
    };
    assert_eq!(lookups.len(), 64);
    let refusal = problems[0].to_string();
    let limit = "but the limit of 64 lookups per TrainJob is reached";
    assert!(refusal.contains(limit), "{refusal}");
}

#[test]
fn files_that_lack_the_object_lead_to_both() {
    let plugins = [refuses("a", Phase::Check), looks_up("b", Phase::Check)];
    let lines = |text: &str| {
        let catalog = catalog(text);
        let renderer = renderer(&plugins).unwrap();
        catalog
            .render(&catalog.jobs[0], &renderer, &Deadline::none())
            .unwrap_err()
            .lines()
    };
    let refusal = "no (plugin a 1.0.0 (native) in check)";
    let needs =
        "plugin b 1.0.0 (native) in check needs ConfigMap `zones` (v1) for namespace `default`";
    assert_eq!(lines(&input(&plugins)), [refusal, needs]);
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: zones}}";
    let both = lines(&format!("{}---\n{map}\n", input(&plugins)));
    assert_eq!(
        both,
        [refusal, "no such zone (plugin b 1.0.0 (native) in check)"]
    );
}
