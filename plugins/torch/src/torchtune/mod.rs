//! torchtune: completes `tune run` with the recipe and the configuration that fit the model, the nodes, the devices and the settings.

mod method;
mod model;

use trainyard_sdk::{Container, Context, PROCESSES, PodSet};

use self::{
    method::{Method, QUANTIZE, Scale, key},
    model::{CONFIG, Model},
};
use crate::Environment;

/// The settings of the runtime's command that a TrainJob cannot replace: where the model is read and written.
const FIXED: [&str; 4] = [
    "output_dir",
    "tokenizer.path",
    "tokenizer.merges_file",
    "checkpointer.checkpoint_dir",
];

/// Whether a container with this command runs `tune run` without a recipe. A complete line is left as its author wrote it.
pub(crate) fn is_incomplete(command: &[String], node: &Container) -> bool {
    command == ["tune", "run"] && !has_recipe(&node.args().unwrap_or_default())
}

/// Whether these arguments of `tune run` name a recipe: after options, and before settings.
fn has_recipe(args: &[String]) -> bool {
    let mut is_value = false;
    let mut words = args.iter().filter(|word| {
        let follows_config = std::mem::replace(&mut is_value, *word == CONFIG);
        !follows_config && !word.starts_with('-')
    });
    words.next().is_some_and(|word| !is_setting(word))
}

/// Warns of a complete line in which each node waits for the others at its own address, as in a runtime that is written for one node.
pub(crate) fn warn_of_local_rendezvous(
    ctx: &Context,
    pod_set: &PodSet,
    node: &Container,
    command: &[String],
) {
    let is_local = |word: &String| {
        let endpoint = word.strip_prefix("--rdzv_endpoint=");
        let endpoint = endpoint.or_else(|| word.strip_prefix("--rdzv-endpoint="));
        endpoint.is_some_and(|endpoint| endpoint.starts_with("localhost"))
    };
    let is_tune = command.first().is_some_and(|word| word == "tune");
    if !is_tune || !command.iter().any(is_local) {
        return;
    }
    let nodes = ctx.job().nodes();
    if nodes > 1 {
        let message = format!(
            "the {nodes} nodes cannot connect to each other at `localhost`; set the TrainJob's command to `[tune, run]`, or `numNodes` to 1"
        );
        ctx.warn(&message, Some(&pod_set.path_in(node, "command")));
    }
}

/// Whether a word is `KEY=VALUE`, or `~KEY`, which removes a key of the configuration.
fn is_setting(word: &str) -> bool {
    word.starts_with('~') || !word.starts_with('-') && word.contains('=')
}

/// Completes the command, with the processes and the address that torchrun gets.
pub(crate) fn complete(
    ctx: &Context,
    pod_set: &PodSet,
    node: &Container,
    environment: &Environment,
) {
    let run = RecipeRun::of(ctx, pod_set, node, environment);
    run.refuse_fixed_settings(ctx);
    run.refuse_options(ctx);
    run.warn_of_unused_dataset(ctx);
    run.warn_of_missing_mounts(ctx);
    let Some(model) = run.model(ctx) else {
        return;
    };
    match model.configuration(run.method, run.scale) {
        Some(configuration) => run.set_command(ctx, &configuration),
        None => run.refuse_configuration(ctx, model),
    }
}

/// One run of a recipe.
struct RecipeRun<'h> {
    pod_set: &'h PodSet,
    node: &'h Container,
    settings: Vec<String>,
    /// The runtime's command and arguments.
    runtime_line: Vec<String>,
    /// Whether the TrainJob sets the arguments.
    has_own_args: bool,
    /// The settings of the runtime's command and arguments that a TrainJob cannot replace, unless they are still in effect.
    fixed_settings: Vec<String>,
    method: Method,
    scale: Scale,
    /// The address at which the nodes meet.
    endpoint: String,
}

impl<'h> RecipeRun<'h> {
    fn of(
        ctx: &Context,
        pod_set: &'h PodSet,
        node: &'h Container,
        environment: &Environment,
    ) -> Self {
        let settings = node.args().unwrap_or_default();
        let runtime_command = node.runtime_command().unwrap_or_default();
        let runtime_args = node.runtime_args().unwrap_or_default();
        let has_own_args = runtime_args != settings;
        let mut fixed_settings = runtime_command.clone();
        if has_own_args {
            fixed_settings.extend_from_slice(&runtime_args);
        }
        fixed_settings.retain(|word| is_setting(word) && FIXED.contains(&key(word)));
        Self {
            method: Method::of(&settings),
            scale: scale(ctx.job().nodes(), pod_set, &environment.processes),
            endpoint: environment.endpoint(),
            pod_set,
            node,
            settings,
            runtime_line: [runtime_command, runtime_args].concat(),
            has_own_args,
            fixed_settings,
        }
    }

    /// Returns the model of the runtime's command and arguments, or else of the runtime's name.
    fn model(&self, ctx: &Context) -> Option<&'static Model> {
        let model = Model::of_line(&self.runtime_line)
            .or_else(|| Model::of_runtime(&ctx.job().runtime_name()));
        if model.is_none() {
            let message = format!(
                "the runtime names no model for torchtune, neither in its command nor in its name; add `--config MODEL_full` to the command of its container `node`, where MODEL is one of {}",
                Model::names()
            );
            ctx.error(&message, Some("spec.runtimeRef.name"));
        }
        model
    }

    fn set_command(&self, ctx: &Context, configuration: &str) {
        let mut line = vec!["tune".to_owned(), "run".to_owned()];
        if self.scale != Scale::SingleDevice {
            line.push(format!("--rdzv_endpoint={}", self.endpoint));
        }
        let recipe = self.method.recipe(self.scale);
        line.extend([recipe, CONFIG, configuration].map(str::to_owned));
        line.extend_from_slice(&self.fixed_settings);
        ctx.because("the recipe and configuration for the model, the nodes, the devices and the arguments, with the paths in the runtime's command");
        self.node.set_command(&line);
    }

    /// Returns the path of an argument.
    fn arg_path(&self, index: usize) -> String {
        let arg = format!("args[{index}]");
        match self.has_own_args {
            true => format!("spec.trainer.{arg}"),
            false => self.pod_set.path_in(self.node, &arg),
        }
    }

    fn refuse_fixed_settings(&self, ctx: &Context) {
        if !self.has_own_args {
            return;
        }
        for (index, setting) in self.settings.iter().enumerate() {
            let key = key(setting);
            if FIXED.contains(&key) {
                let message = format!(
                    "must not set `{key}`, which is a path in the volume of the runtime; remove it"
                );
                ctx.error(&message, Some(&self.arg_path(index)));
            }
        }
    }

    fn refuse_options(&self, ctx: &Context) {
        for (index, word) in self.settings.iter().enumerate() {
            if word.starts_with('-') && key(word) != CONFIG {
                let message = format!(
                    "must be a setting `KEY=VALUE` or `{CONFIG}`, the only option of torchtune's recipes; remove `{word}`, or write the whole line: `tune run OPTIONS RECIPE {CONFIG} CONFIGURATION`"
                );
                ctx.error(&message, Some(&self.arg_path(index)));
            }
        }
    }

    /// Warns of a dataset that is fetched and not read.
    fn warn_of_unused_dataset(&self, ctx: &Context) {
        let is_fetched = ctx.job().spec().kind("/initializer/dataset").is_some();
        let is_read = |setting: &String| {
            let key = key(setting);
            key == "dataset" || key.starts_with("dataset.")
        };
        if is_fetched && !self.settings.iter().any(is_read) {
            let message = "the dataset is fetched, but not used: no argument sets `dataset`, so torchtune downloads the dataset of its configuration; add arguments such as `dataset.source=parquet` and `dataset.data_dir=/workspace/dataset/data`";
            ctx.warn(message, Some("spec.initializer.dataset"));
        }
    }

    /// Warns of paths that no volume of the runtime or a patch provides. The base is read, because plugins mount no models.
    fn warn_of_missing_mounts(&self, ctx: &Context) {
        let pod_set = ctx.base_of(self.pod_set);
        let node = pod_set.and_then(|set| set.container(&self.node.name()));
        let mounts = node.map(|node| node.mounts()).unwrap_or_default();
        let is_mounted = |path: &str| {
            let mut mounts = mounts.iter().map(|mount| mount.path.trim_end_matches('/'));
            mounts.any(|mount| {
                let rest = path.strip_prefix(mount);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        for setting in &self.fixed_settings {
            let path = setting.split_once('=').map_or("", |(_, path)| path);
            if path.starts_with('/') && !is_mounted(path) {
                let message = format!(
                    "no volume is mounted at `{path}`, which the runtime sets as `{}`; mount the volume of the initializers there",
                    key(setting)
                );
                ctx.warn(
                    &message,
                    Some(&self.pod_set.path_in(self.node, "volumeMounts")),
                );
            }
        }
    }

    /// Reports that torchtune has no configuration for the method on these nodes and devices.
    fn refuse_configuration(&self, ctx: &Context, model: &Model) {
        let (name, method) = (model.name, self.method.name());
        let has = |scale| model.configuration(self.method, scale).is_some();
        let one_node = has(Scale::SingleDevice) || has(Scale::SeveralDevices);
        match self.scale {
            Scale::SeveralNodes if one_node => {
                let nodes = ctx.job().nodes();
                let message = format!(
                    "must be 1 for {method} of `{name}`, which torchtune runs on one node; found {nodes}"
                );
                ctx.error(&message, Some(&ctx.job().nodes_path()));
            }
            Scale::SeveralDevices if has(Scale::SingleDevice) => {
                let message = format!(
                    "must be 1 for {method} of `{name}`, which torchtune runs on a single device{}; set it to 1",
                    found(ctx)
                );
                ctx.error(&message, Some(PROCESSES));
            }
            Scale::SingleDevice if one_node => {
                let message = format!(
                    "must be greater than 1 for {method} of `{name}`, which torchtune runs on several devices{}; {}",
                    found(ctx),
                    self.how_to_use_several_devices(ctx)
                );
                ctx.error(&message, Some(PROCESSES));
            }
            _ => self.refuse_quantization(ctx, model),
        }
    }

    /// Returns what to do if one process is too few.
    fn how_to_use_several_devices(&self, ctx: &Context) -> String {
        let is_explicit = ctx.job().processes_per_node().is_some();
        match self.pod_set.accelerators() {
            Some(several @ 2..) => {
                format!("a node has {several} accelerators, so set it to {several}")
            }
            _ if is_explicit => "raise it, and request as many accelerators".to_owned(),
            _ => "request more accelerators".to_owned(),
        }
    }

    /// Reports that torchtune has no configuration for QLoRA, the only method that a model lacks on all nodes and devices.
    fn refuse_quantization(&self, ctx: &Context, model: &Model) {
        let mut settings = self.settings.iter();
        let index = settings.position(|word| key(word) == QUANTIZE);
        let message = format!(
            "must not set `{QUANTIZE}`, because torchtune has no configuration for {} of `{}`; remove it",
            self.method.name(),
            model.name
        );
        ctx.error(&message, Some(&self.arg_path(index.unwrap_or_default())));
    }
}

/// Returns the number of processes for a message, if there is an explicit one.
fn found(ctx: &Context) -> String {
    let explicit = ctx.job().processes_per_node();
    explicit.map_or_else(String::new, |processes| format!("; found {processes}"))
}

/// Returns where the recipe runs. If the number of accelerators is not known, it is taken to be several.
fn scale(nodes: u32, pod_set: &PodSet, processes: &str) -> Scale {
    if nodes > 1 {
        return Scale::SeveralNodes;
    }
    let counted = || {
        let has_accelerators = pod_set.accelerators() != Some(0);
        let counted = pod_set.processes_by_accelerators();
        counted.filter(|_| has_accelerators).map(|(count, _)| count)
    };
    match processes.parse::<u32>().ok().or_else(counted) {
        Some(1) => Scale::SingleDevice,
        _ => Scale::SeveralDevices,
    }
}
