//! The environment and the command of a container.

use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVar, EnvVarSource};

use super::{expand::expand, facts::Facts, images::Image, problem::Problem};

/// Env vars, in the order of their definition. A name can have several values, of which the last one counts.
pub(super) type Env = Vec<(String, String)>;

/// Returns the env vars of a container: those of its image, of `envFrom` and of `env`.
pub(super) fn resolve(
    container: &Container,
    image: &Image,
    facts: &Facts<'_>,
) -> Result<Env, Problem> {
    let mut env = Env::new();
    for source in container.env_from.iter().flatten() {
        env.extend(all_of(source, facts)?);
    }
    for var in container.env.iter().flatten() {
        if let Some(value) = value(var, container, facts, &env)? {
            env.push((var.name.clone(), value));
        }
    }
    let of_image = image.env.iter().cloned();
    Ok(of_image.chain(env).collect())
}

/// Returns the command of a container with its arguments, in which its env vars are replaced.
pub(super) fn command(
    container: &Container,
    image: &Image,
    env: &Env,
) -> Result<Vec<String>, Problem> {
    let own = container.command.clone().unwrap_or_default();
    let expanded = |text: &String| expand(text, |name| find(env, name));
    let mut command: Vec<String> = match own.is_empty() {
        true => image.entrypoint.clone(),
        false => own.iter().map(expanded).collect(),
    };
    command.extend(container.args.iter().flatten().map(expanded));
    if command.is_empty() {
        let image = container.image.as_deref().unwrap_or_default();
        return Err(Problem::Unsupported(format!(
            "the container {} has no command, and neither has its image {image} in the images of the test",
            container.name
        )));
    }
    Ok(command)
}

pub(super) fn find<'e>(env: &'e Env, name: &str) -> Option<&'e str> {
    let mut last = env.iter().rev();
    last.find(|(of, _)| of == name).map(|(_, v)| v.as_str())
}

fn value(
    var: &EnvVar,
    container: &Container,
    facts: &Facts<'_>,
    before: &Env,
) -> Result<Option<String>, Problem> {
    let Some(from) = &var.value_from else {
        let value = var.value.as_deref().unwrap_or_default();
        return Ok(Some(expand(value, |name| find(before, name))));
    };
    referenced(from, container, facts)
}

/// Returns the value of a reference; `None` if it is optional and does not exist.
fn referenced(
    from: &EnvVarSource,
    container: &Container,
    facts: &Facts<'_>,
) -> Result<Option<String>, Problem> {
    if let Some(field) = &from.field_ref {
        return facts.field(field).map(Some);
    }
    if let Some(resource) = &from.resource_field_ref {
        return facts.resource(resource, container).map(Some);
    }
    let (kind, name, key, optional, found) = if let Some(of) = &from.config_map_key_ref {
        let object = facts.objects.config_maps.get(&of.name);
        let data = object.and_then(|object| object.data.as_ref());
        let found = data.and_then(|data| data.get(&of.key)).cloned();
        ("ConfigMap", &of.name, &of.key, of.optional, found)
    } else if let Some(of) = &from.secret_key_ref {
        let object = facts.objects.secrets.get(&of.name);
        let data = object.and_then(|object| object.data.as_ref());
        let found = data.and_then(|data| data.get(&of.key));
        let found = found.map(|value| String::from_utf8_lossy(&value.0).into_owned());
        ("Secret", &of.name, &of.key, of.optional, found)
    } else {
        return Err(Problem::Unsupported(format!(
            "the fake kubelet does not know this source of an env var: {from:?}"
        )));
    };
    match found {
        None if optional != Some(true) => Err(Problem::Missing(format!(
            "couldn't find key {key} in {kind} {name}"
        ))),
        found => Ok(found),
    }
}

/// Returns the env vars of an entry of `envFrom`.
fn all_of(source: &EnvFromSource, facts: &Facts<'_>) -> Result<Env, Problem> {
    let missing = |kind: &str, name: &str, optional: Option<bool>| match optional {
        Some(true) => Ok(Env::new()),
        _ => Err(Problem::Missing(format!("{kind} {name} does not exist"))),
    };
    let all: Env = if let Some(of) = &source.config_map_ref {
        let Some(object) = facts.objects.config_maps.get(&of.name) else {
            return missing("ConfigMap", &of.name, of.optional);
        };
        object
            .data
            .clone()
            .unwrap_or_default()
            .into_iter()
            .collect()
    } else if let Some(of) = &source.secret_ref {
        let Some(object) = facts.objects.secrets.get(&of.name) else {
            return missing("Secret", &of.name, of.optional);
        };
        let data = object.data.iter().flatten();
        data.map(|(key, value)| (key.clone(), String::from_utf8_lossy(&value.0).into_owned()))
            .collect()
    } else {
        Env::new()
    };
    let prefix = source.prefix.as_deref().unwrap_or_default();
    let named = all
        .into_iter()
        .map(|(key, value)| (format!("{prefix}{key}"), value));
    Ok(named.collect())
}

#[cfg(test)]
#[path = "env_tests.rs"]
mod tests;
