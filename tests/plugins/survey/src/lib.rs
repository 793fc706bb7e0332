//! Calls every method of the contract and records the result of each: if a later host answers differently, the rendering differs.

use std::fmt::{Debug, Write as _};

use trainyard_sdk::{
    Build, Check, Config, Container, Context, Document, Failure, KeyFile, Mount, Objects, PodSet,
    Port, Transform,
};

/// The configuration of the plugin.
#[derive(Config)]
pub struct SurveyConfig {
    /// The name of the container that is added.
    #[config(default = "survey-helper")]
    pub helper: String,
}

/// The plugin.
pub struct Survey;

trainyard_sdk::plugin!(Survey: transform, build, check; config = SurveyConfig);

/// The calls and their results.
#[derive(Default)]
struct Sheet(String);

impl Sheet {
    fn note(&mut self, asked: &str, answer: impl Debug) {
        let _ = writeln!(self.0, "{asked}: {answer:?}");
    }

    /// Reads the job, which every phase can do.
    fn job(&mut self, ctx: &Context) {
        let job = ctx.job();
        self.note("job.name", job.name());
        self.note("job.namespace", job.namespace());
        self.note("job.uid", job.uid());
        self.note("job.suspended", job.suspended());
        self.note("job.label", (job.label("team"), job.label("absent")));
        self.note(
            "job.annotation",
            (job.annotation("note"), job.annotation("absent")),
        );
        self.note("job.runtime-kind", job.runtime_kind());
        self.note("job.runtime-name", job.runtime_name());
        self.note("job.runtime-label", job.runtime_label("tier"));
        self.note("job.runtime-annotation", job.runtime_annotation("note"));
        self.note("job.nodes", job.nodes());
        self.note("job.processes-per-node", job.processes_per_node());
        self.document("job.spec", job.spec(), "/trainer");
        self.document("job.config", job.config(), "");
        self.document("job.operator-config", job.operator_config(), "");
        self.note("context.supports", ctx.supports("a feature of later"));
        self.note(
            "context.quantity-ceil",
            ["1500m", "1Ki", "x"].map(|text| ctx.quantity_ceil(text)),
        );
        self.note(
            "context.quantity-milli",
            ["1500m", "2", "x"].map(|text| ctx.quantity_milli(text)),
        );
        self.note("context.fact", ctx.fact("survey/unknown"));
        self.note("context.kept", ctx.kept("survey"));
        self.note(
            "context.fit-name",
            ctx.fit_name("A name that is no label", 20),
        );
        let name = ctx
            .objects()
            .name("v1", "ConfigMap", "-survey", Some("content"));
        self.note("objects.name", name);
    }

    fn document(&mut self, asked: &str, document: &Document, at: &str) {
        self.note(asked, document.json(at));
        self.note("document.kind", document.kind(at));
        self.note("document.len", document.len(at));
        for key in document.keys(at) {
            let below = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            self.note("document.text", (&key, document.text(&below)));
            self.note("document.integer", document.integer(&below));
            self.note("document.boolean", document.boolean(&below));
        }
    }

    fn lookups(&mut self, ctx: &Context) {
        let lookups = ctx.lookups();
        self.note("lookups.served", lookups.served("v1", "ConfigMap"));
        if let Some(sites) = lookups.get("v1", "ConfigMap", "sites") {
            self.document("lookups.get", &sites, "/data");
        }
        let absent = lookups.find("v1", "ConfigMap", "absent");
        self.note("lookups.find", absent.and_then(|object| object.json("")));
        let shared = lookups.find_in_catalog("v1", "ConfigMap", "shared");
        self.note(
            "lookups.find-in-catalog",
            shared.map(|object| object.keys("")),
        );
        for object in lookups.all("v1", "ConfigMap") {
            self.note("lookups.all", object.text("/metadata/name"));
        }
    }

    fn pod_set(&mut self, set: &PodSet) {
        self.note("pod-set.name", set.name());
        self.note("pod-set.ancestor", set.ancestor());
        self.note("pod-set.depends-on", set.depends_on());
        self.note(
            "pod-set.count",
            (set.count(), set.replicas(), set.address_count()),
        );
        self.note("pod-set.selector", set.selector());
        self.note("pod-set.address", set.address(0, 0));
        self.note("pod-set.addresses", set.addresses(1, 2));
        self.note("pod-set.joined-addresses", set.joined_addresses(0, 3, ","));
        self.note("pod-set.hostlist", set.hostlist());
        self.note("pod-set.volumes", set.volumes());
        if let Some(volume) = set.volume("old") {
            self.document("pod-set.volume", &volume, "");
        }
        self.note("pod-set.devices", set.devices());
        self.note("pod-set.pod-requests", set.pod_requests());
        self.note("pod-set.accelerators", set.accelerators());
        self.note("pod-set.processes", set.processes());
        self.note("pod-set.pod-label", set.pod_label("old"));
        self.note("pod-set.pod-annotation", set.pod_annotation("old"));
        self.note("pod-set.node-selector", set.node_selector("pool"));
        self.note("pod-set.priority-class", set.priority_class());
        self.note("pod-set.scheduler-name", set.scheduler_name());
        self.note("pod-set.dns-searches", set.dns_searches());
        self.note("pod-set.fs-group", set.fs_group());
        self.note("pod-set.is-indexed", set.is_indexed());
        self.note("pod-set.backoff-limit", set.backoff_limit());
        if let Some(sysctls) = set.raw("securityContext/sysctls") {
            self.document("pod-set.raw", &sysctls, "");
        }
        for container in set.containers().iter().chain(&set.init_containers()) {
            self.note("container.name", container.name());
            self.note("container.is-init", container.is_init());
            self.note("container.created-by-me", container.created_by_me());
        }
        if let Some(setup) = set.container("setup") {
            self.note("container.is-sidecar", setup.is_sidecar());
        }
    }

    fn container(&mut self, node: &Container) {
        self.note("container.image", node.image());
        self.note(
            "container.command",
            (node.command(), node.runtime_command()),
        );
        self.note("container.args", (node.args(), node.runtime_args()));
        self.note("container.working-dir", node.working_dir());
        for name in node.env_names() {
            self.note(
                "container.env",
                (&name, node.env(&name), node.env_owner(&name)),
            );
            let source = node.env_source(&name).and_then(|source| source.json(""));
            self.note("container.env-source", source);
        }
        let probe = node.raw("readinessProbe");
        self.note("container.raw", probe.and_then(|probe| probe.json("")));
        self.note("container.ports", node.ports());
        self.note("container.port", node.port(8080, "TCP"));
        self.note("container.mounts", node.mounts());
        self.note("container.mount", node.mount("/old/"));
        self.note("container.capabilities", node.capabilities());
        self.note("container.request", (node.request("cpu"), node.requests()));
        self.note("container.limit", (node.limit("memory"), node.limits()));
    }
}

impl Transform for Survey {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<SurveyConfig>()?;
        let mut sheet = Sheet::default();
        sheet.job(ctx);
        sheet.lookups(ctx);
        for (name, info) in [("base", ctx.base()), ("info", ctx.info())] {
            sheet.note("context", name);
            sheet.note("info.subdomain", (info.subdomain(), info.cluster_domain()));
            sheet.note("info.has-host-names", info.has_host_names());
            sheet.note("info.label", (info.label("kept"), info.annotation("kept")));
            sheet.note("info.pod-sets", info.pod_sets().len());
            sheet.note("info.with-ancestor", info.with_ancestor("trainer").len());
            sheet.note("info.nodes", info.nodes().len());
            sheet.note("info.selector", info.selector());
            let gang = ["node".to_owned()];
            sheet.note("info.gang-members", info.gang_members(&gang));
            sheet.note("info.gang-requests", info.gang_requests(&gang));
        }
        let absent = ctx.info().pod_set("absent").is_none();
        let Some(set) = ctx.info().pod_set("node").filter(|_| absent) else {
            return Err(Failure::from("no pod set `node`").at("spec.runtimeRef"));
        };
        sheet.pod_set(&set);
        let Some(node) = set.container("node") else {
            return Err("no container `node`".into());
        };
        sheet.container(&node);
        ctx.because("the survey writes all that it may");
        ctx.info().set_label("survey", "done");
        ctx.info().set_annotation("survey", "done");
        change_pods(&set, &config);
        change_container(&node);
        // The plugin can read its own writes.
        sheet.container(&node);
        ctx.because("");
        ctx.keep("survey", "done");
        set.set_pod_annotation("survey-sheet", &sheet.0);
        ctx.log("info", "surveyed");
        Ok(())
    }
}

fn change_pods(set: &PodSet, config: &SurveyConfig) {
    set.remove_volume("old");
    set.put_empty_dir("survey-scratch", Some("Memory"), Some("1Gi"));
    let items = [KeyFile::new("sheet", "survey/sheet").mode(0o440)];
    set.put_own_config_map("survey-sheet", "-survey", Some(0o444), &items);
    set.put_own_secret("survey-keys", "-survey-keys", Some(0o400), &[]);
    set.put_raw_volume("survey-host", r#"{"hostPath": {"path": "/var/survey"}}"#);
    set.remove_pod_label("old");
    set.set_pod_label("survey", "done");
    set.remove_pod_annotation("old");
    set.put_node_selector("pool", "surveyed");
    set.set_priority_class("survey");
    set.set_scheduler_name("survey-scheduler");
    set.add_scheduling_gate("example.com/survey");
    set.add_toleration("survey", r#"{"key": "survey", "operator": "Exists"}"#);
    let term = r#"{"matchExpressions": [{"key": "survey", "operator": "Exists"}]}"#;
    set.add_affinity_term("survey", "nodeAffinity/required", term);
    set.add_dns_search("survey.svc.cluster.local");
    set.set_fs_group(1000);
    set.set_backoff_limit(0);
    set.set_raw("hostNetwork", "true");
    let helper = set.add_container(&config.helper, "registry.example.com/helper:1");
    helper.put_env("HELPS", "survey");
    helper.clear_args();
    let first = set.add_init_container("survey-init", "registry.example.com/init:1");
    first.place_first();
    first.place_before("setup");
    first.set_restart_policy("Always");
    first.put_mount(&Mount::new("survey-scratch", "/scratch"));
    let last = set.add_init_container("survey-last", "registry.example.com/init:1");
    last.place_after("setup");
}

fn change_container(node: &Container) {
    node.set_image("registry.example.com/surveyed:1");
    node.set_image_pull_policy("IfNotPresent");
    let mut command = node.command().unwrap_or_default();
    command.insert(0, "survey".to_owned());
    node.set_command(&command);
    node.set_args(&["--all".to_owned()]);
    node.set_working_dir("/survey");
    node.set_raw("securityContext/privileged", "false");
    node.put_env("SURVEY", "$(USER)");
    node.put_env("SURVEY_RESERVED", "survey's");
    node.default_env("USER", "nobody");
    node.default_env("SURVEY_DEFAULT", "set");
    node.put_env_field("SURVEY_IP", "status.podIP");
    node.put_env_resource("SURVEY_CPU", None, "limits.cpu", Some("1m"));
    node.put_env_own_config_map("SURVEY_SHEET", "-survey", "sheet");
    node.put_env_own_secret("SURVEY_TOKEN", "-survey-keys", "token");
    let source = r#"{"secretKeyRef": {"name": "keys", "key": "a"}}"#;
    node.put_env_raw("SURVEY_KEY", source);
    node.remove_env("SURVEY_DEFAULT");
    node.put_port(&Port::tcp(9090).named("survey").host_port(9090));
    node.put_mount(
        &Mount::new("survey-sheet", "/survey/sheet")
            .sub_path("survey/sheet")
            .read_only(),
    );
    let spread = Mount::new("survey-host", "/host").sub_path_expr("$(USER)");
    node.put_mount(&spread.mount_propagation("HostToContainer"));
    node.remove_mount("/old");
    node.default_mount(&Mount::new("survey-scratch", "/scratch"));
    node.default_mount(&Mount::new("survey-scratch", "/host"));
    node.add_capability("IPC_LOCK");
    node.set_request("cpu", "500m");
    node.set_limit("memory", "2Gi");
}

impl Build for Survey {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let mut sheet = Sheet::default();
        sheet.job(ctx);
        for set in ctx.info().pod_sets() {
            sheet.pod_set(&set);
        }
        let object = ctx.objects().emit("v1", "ConfigMap", "-survey", None);
        sheet.note("object.name", object.name());
        object.set_label("survey", "done");
        object.set_annotation("survey", "done");
        object.append("sheet", "# What every method gives\n");
        object.append("sheet", &sheet.0);
        object.set_binary("bytes", &[0, 159, 146, 150]);
        object.set_immutable();
        object.set_apply("once");
        let widget = ctx
            .objects()
            .emit("example.com/v1", "Widget", "-survey", None);
        widget.set_body(r#"{"spec": {"size": 1}}"#);
        widget.report_while("condition/Ready/False", "the widget is not ready");
        emit_keys(ctx.objects());
        Ok(())
    }
}

fn emit_keys(objects: &Objects) {
    let secret = objects.emit("v1", "Secret", "-survey-keys", None);
    secret.set_type("example.com/survey");
    let ssh = objects.key_pair("ssh", "ecdsa-p521");
    let curve = objects.key_pair("curve", "curve25519");
    for (key, text) in [
        ("sec1", ssh.private("sec1-pem")),
        ("pkcs8", ssh.private("pkcs8-pem")),
        ("openssh", ssh.public("openssh")),
        ("spki", ssh.public("spki-pem")),
        ("curve", curve.private("z85")),
        ("curve.pub", curve.public("z85")),
        ("token", objects.random("token", 32, "hex")),
    ] {
        secret.append_secret(key, &text);
    }
    secret.append("plain", "survey");
}

impl Check for Survey {
    fn check(ctx: &Context) {
        if let Some(node) = ctx
            .info()
            .nodes()
            .first()
            .and_then(|set| set.container("node"))
        {
            ctx.warn(
                &format!("the image is {:?}", node.image()),
                Some("spec.trainer.image"),
            );
        }
        if ctx.job().label("team").is_none() {
            ctx.error("the TrainJob has no team", Some("metadata.labels"));
        }
    }
}
