//! `tune run` is completed with the recipe and the configuration that fit the model, the nodes, the devices and the arguments.

use serde_json::json;
use trainyard_plugin_torch::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};

const COMMAND: &str = "pod-sets[node].containers[node].command";
const PATHS: [&str; 2] = [
    "output_dir=/workspace/output",
    "tokenizer.path=/workspace/model/tokenizer.model",
];
const LORA: &str = "model.lora_attn_modules=[q_proj]";
const QLORA: &str = "model.quantize_base=True";

/// A TrainJob that runs `tune run` with these arguments on a runtime for that configuration.
fn job(configuration: &str, nodes: u32, gpus: &str, args: &[&str]) -> MockJob {
    let [output, tokenizer] = PATHS;
    let line = [
        "tune",
        "run",
        "full_finetune_distributed",
        "--config",
        configuration,
        output,
        tokenizer,
    ];
    let node = |c: MockContainer| {
        let c = c.command(&line).train_job_command(&["tune", "run"]);
        let c = c.train_job_args(args).mount("initializer", "/workspace");
        let c = c.mount("shared-memory", "/dev/shm");
        match gpus {
            "0" => c,
            gpus => c.limit("nvidia.com/gpu", gpus),
        }
    };
    MockJob::new("tuner").all_granted().trainer(nodes, node)
}

/// Returns the recipe and the configuration.
fn recipe(outcome: &Outcome) -> (String, String) {
    let line = outcome.value(COMMAND).unwrap();
    let words: Vec<String> = serde_json::from_value(line).unwrap();
    let config = words.iter().position(|word| word == "--config").unwrap();
    (words[config - 1].clone(), words[config + 1].clone())
}

#[test]
fn method_and_scale_select_the_recipe_and_its_configuration() {
    let table = [
        (
            "llama3_2/1B_full",
            1,
            "1",
            vec![],
            "full_finetune_single_device",
            "llama3_2/1B_full_single_device",
        ),
        (
            "llama3_2/1B_full",
            1,
            "2",
            vec![],
            "full_finetune_distributed",
            "llama3_2/1B_full",
        ),
        (
            "llama3_3/70B_full",
            2,
            "8",
            vec![],
            "full_finetune_distributed",
            "llama3_3/70B_full_multinode",
        ),
        (
            "llama3_2/3B_full",
            1,
            "1",
            vec![LORA],
            "lora_finetune_single_device",
            "llama3_2/3B_lora_single_device",
        ),
        (
            "llama3_2/3B_full",
            1,
            "4",
            vec![LORA],
            "lora_finetune_distributed",
            "llama3_2/3B_lora",
        ),
        (
            "llama3_2/3B_full",
            1,
            "1",
            vec![LORA, QLORA],
            "lora_finetune_single_device",
            "llama3_2/3B_qlora_single_device",
        ),
        (
            "llama3_3/70B_full",
            1,
            "8",
            vec![LORA, QLORA],
            "lora_finetune_distributed",
            "llama3_3/70B_qlora",
        ),
        (
            "qwen2_5/1.5B_full",
            1,
            "2",
            vec![],
            "full_finetune_distributed",
            "qwen2_5/1.5B_full",
        ),
        // DoRA is not combined with quantized weights.
        (
            "llama3_2/1B_full",
            1,
            "2",
            vec![LORA, QLORA, "model.use_dora=true"],
            "lora_finetune_distributed",
            "llama3_2/1B_lora",
        ),
        (
            "llama3_2/1B_full",
            1,
            "2",
            vec![LORA, "model.quantize_base=False"],
            "lora_finetune_distributed",
            "llama3_2/1B_lora",
        ),
        // Without accelerators, torchrun starts a process for each CPU, here one.
        (
            "llama3_2/1B_full",
            1,
            "0",
            vec![],
            "full_finetune_single_device",
            "llama3_2/1B_full_single_device",
        ),
    ];
    for (runtime, nodes, gpus, args, wanted, configuration) in table {
        let outcome = job(runtime, nodes, gpus, &args).transform(&PLUGIN).unwrap();
        assert_eq!(outcome.errors(), Vec::<String>::new(), "{runtime} {args:?}");
        let found = recipe(&outcome);
        assert_eq!(
            (&*found.0, &*found.1),
            (wanted, configuration),
            "{runtime} {nodes} {gpus} {args:?}"
        );
    }
}

#[test]
fn explicit_number_of_processes_outweighs_the_accelerators() {
    let of = |job: MockJob| recipe(&job.transform(&PLUGIN).unwrap()).0;
    let one = job("llama3_2/1B_full", 1, "8", &[]).processes_per_node(1);
    assert_eq!(of(one), "full_finetune_single_device");
    let several = job("llama3_2/1B_full", 1, "1", &[]).processes_per_node(2);
    assert_eq!(of(several), "full_finetune_distributed");
}

#[test]
fn unknown_number_of_devices_runs_a_distributed_recipe() {
    let node = |c: MockContainer| c.train_job_command(&["tune", "run"]);
    let job = MockJob::new("dra").all_granted();
    let job = job
        .runtime("ClusterTrainingRuntime", "torchtune-llama3.2-1b")
        .pod_set("node", |set| {
            set.ancestor("trainer")
                .container("node", node)
                .claimed_devices("gpu", None)
        });
    assert_eq!(
        recipe(&job.transform(&PLUGIN).unwrap()).0,
        "full_finetune_distributed"
    );
}

#[test]
fn line_has_the_rendezvous_the_paths_and_no_master_in_the_environment() {
    let outcome = job("llama3_2/1B_full", 1, "2", &["epochs=1"])
        .transform(&PLUGIN)
        .unwrap();
    let [output, tokenizer] = PATHS;
    let wanted = json!([
        "tune",
        "run",
        "--rdzv_endpoint=tuner-node-0-0.tuner:29500",
        "full_finetune_distributed",
        "--config",
        "llama3_2/1B_full",
        output,
        tokenizer
    ]);
    assert_eq!(outcome.value(COMMAND), Some(wanted));
    let env = |name: &str| outcome.value(&format!("pod-sets[node].containers[node].env[{name}]"));
    assert_eq!(env("PET_NPROC_PER_NODE"), Some(json!("auto")));
    assert_eq!(env("PET_MASTER_ADDR"), None);
    let single = job("llama3_2/1B_full", 1, "1", &[])
        .transform(&PLUGIN)
        .unwrap();
    let line = single.value(COMMAND).unwrap().to_string();
    assert!(!line.contains("rdzv"), "{line}");
}

#[test]
fn model_comes_from_the_command_or_the_runtimes_name() {
    let node = |c: MockContainer| {
        c.limit("nvidia.com/gpu", "2")
            .train_job_command(&["tune", "run"])
    };
    let named = |name: &str| {
        MockJob::new("tuner")
            .all_granted()
            .runtime("ClusterTrainingRuntime", name)
            .trainer(1, node)
    };
    let outcome = named("torchtune-llama3.2-3b").transform(&PLUGIN).unwrap();
    assert_eq!(recipe(&outcome).1, "llama3_2/3B_full");
    let renamed = job("llama3_2/1B_full", 1, "2", &[])
        .runtime("ClusterTrainingRuntime", "torchtune-llama3.2-3b");
    assert_eq!(
        recipe(&renamed.transform(&PLUGIN).unwrap()).1,
        "llama3_2/1B_full"
    );
    for name in [
        "torch",
        "torchtune-llama3.2",
        "torchtune-llama9-1b",
        "my-torchtune-llama3.2-1b",
    ] {
        let errors = named(name).transform(&PLUGIN).unwrap().errors();
        assert_eq!(errors.len(), 1, "{name}");
        assert!(
            errors[0].contains("spec.runtimeRef.name") && errors[0].contains("`qwen2_5/1.5B`"),
            "{errors:?}"
        );
    }
}

#[test]
fn configurations_that_torchtune_lacks_are_refused_at_their_cause() {
    let table = [
        (
            job("llama3_2/1B_full", 2, "8", &[]),
            "spec.mlPolicy.numNodes",
            "must be 1 for full fine-tuning",
        ),
        (
            job("llama3_2/1B_full", 2, "8", &[]).spec(json!({"trainer": {"numNodes": 2}})),
            "spec.trainer.numNodes",
            "found 2",
        ),
        (
            job("llama3_3/70B_full", 2, "8", &[LORA]),
            "spec.mlPolicy.numNodes",
            "must be 1 for LoRA",
        ),
        (
            job("llama3_2/1B_full", 1, "2", &[LORA, QLORA]),
            "spec.trainer.numProcPerNode",
            "a single device; set it to 1",
        ),
        (
            job("llama3_2/1B_full", 1, "8", &[LORA, QLORA]).processes_per_node(4),
            "spec.trainer.numProcPerNode",
            "a single device; found 4; set it to 1",
        ),
        (
            job("llama3_3/70B_full", 1, "1", &[]),
            "spec.trainer.numProcPerNode",
            "several devices; request more accelerators",
        ),
        (
            job("llama3_3/70B_full", 1, "8", &[]).processes_per_node(1),
            "spec.trainer.numProcPerNode",
            "several devices; found 1; a node has 8 accelerators, so set it to 8",
        ),
        (
            job("llama3_3/70B_full", 1, "1", &[]).processes_per_node(1),
            "spec.trainer.numProcPerNode",
            "several devices; found 1; raise it, and request as many accelerators",
        ),
        (
            job("qwen2_5/1.5B_full", 1, "1", &[LORA, QLORA]),
            "spec.trainer.args[1]",
            "must not set `model.quantize_base`",
        ),
        (
            job("qwen2_5/1.5B_full", 1, "8", &[LORA, QLORA]),
            "spec.trainer.args[1]",
            "must not set `model.quantize_base`",
        ),
        (
            job("qwen2_5/1.5B_full", 2, "8", &[QLORA]),
            "spec.trainer.args[0]",
            "must not set `model.quantize_base`",
        ),
    ];
    for (job, field, message) in table {
        let outcome = job.transform(&PLUGIN).unwrap();
        let errors = outcome.errors();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors[0].contains(field) && errors[0].contains(message),
            "{errors:?}"
        );
        assert_eq!(outcome.value(COMMAND), None);
    }
}

/// Of the runtime's line that a TrainJob replaces, what is fixed stays.
#[test]
fn other_settings_of_the_runtime_are_replaced() {
    let [output, tokenizer] = PATHS;
    let line = [
        "tune",
        "run",
        "x",
        "--config",
        "llama3_2/1B_full",
        output,
        tokenizer,
        "epochs=3",
    ];
    let node = |c: MockContainer| {
        let c = c.command(&line).train_job_command(&["tune", "run"]);
        c.train_job_args(&["batch_size=2"])
            .limit("nvidia.com/gpu", "2")
    };
    let job = MockJob::new("tuner").all_granted().trainer(1, node);
    let outcome = job.transform(&PLUGIN).unwrap();
    let words: Vec<String> = serde_json::from_value(outcome.value(COMMAND).unwrap()).unwrap();
    assert!(words.contains(&output.to_owned()), "{words:?}");
    assert!(!words.contains(&"epochs=3".to_owned()), "{words:?}");
    assert!(!words.contains(&"x".to_owned()), "{words:?}");
}

#[test]
fn settings_of_the_runtimes_volume_are_fixed() {
    let args = [
        "epochs=1",
        "output_dir=/tmp",
        "~checkpointer.checkpoint_dir",
    ];
    let errors = job("llama3_2/1B_full", 1, "2", &args)
        .transform(&PLUGIN)
        .unwrap()
        .errors();
    assert_eq!(errors.len(), 2);
    assert!(
        errors[0].contains("spec.trainer.args[1]") && errors[1].contains("spec.trainer.args[2]"),
        "{errors:?}"
    );
}

#[test]
fn settings_and_the_configuration_are_not_a_recipe() {
    for args in [
        vec!["~optimizer.fused", "epochs=1"],
        vec!["--config", "/workspace/own.yaml"],
        vec!["--config=/workspace/own.yaml", "epochs=1"],
    ] {
        let outcome = job("llama3_2/1B_full", 1, "2", &args)
            .transform(&PLUGIN)
            .unwrap();
        assert_eq!(outcome.errors(), Vec::<String>::new(), "{args:?}");
        assert_eq!(recipe(&outcome).0, "full_finetune_distributed", "{args:?}");
    }
    let args = ["--nproc_per_node=2", "epochs=1"];
    let errors = job("llama3_2/1B_full", 1, "2", &args)
        .transform(&PLUGIN)
        .unwrap()
        .errors();
    assert!(errors[0].contains("spec.trainer.args[0]"), "{errors:?}");
    assert_eq!(errors.len(), 1);
}

#[test]
fn nodes_that_wait_at_their_own_address_are_warned_of() {
    let warnings = |nodes: u32, command: &[&str]| {
        let node = |c: MockContainer| c.command(command).mount("shared-memory", "/dev/shm");
        let job = MockJob::new("tuner").all_granted().trainer(nodes, node);
        job.transform(&PLUGIN).unwrap().warnings().join("\n")
    };
    let warning = "the 2 nodes cannot connect to each other at `localhost`";
    let line = |endpoint| ["tune", "run", endpoint, "full_finetune_distributed"];
    for option in ["--rdzv_endpoint=localhost:0", "--rdzv-endpoint=localhost"] {
        assert!(warnings(2, &line(option)).contains(warning), "{option}");
        assert!(!warnings(1, &line(option)).contains("`localhost`"));
    }
    for command in [
        line("--rdzv_endpoint=tuner-node-0-0.tuner:29500"),
        line("--rdzv_backend=localhost"),
        [
            "torchrun",
            "--rdzv_endpoint=localhost:0",
            "--standalone",
            "a.py",
        ],
    ] {
        assert!(
            !warnings(2, &command).contains("`localhost`"),
            "{command:?}"
        );
    }
}

#[test]
fn other_accelerators_select_the_recipe_too() {
    for (amount, expected) in [
        ("1", "full_finetune_single_device"),
        ("8", "full_finetune_distributed"),
    ] {
        let other = |c: MockContainer| {
            let c = c.command(&["tune", "run", "x", "--config", "llama3_2/1B_full"]);
            let c = c.train_job_command(&["tune", "run"]).train_job_args(&[]);
            c.limit("habana.ai/gaudi", amount)
        };
        let job = MockJob::new("tuner").all_granted().trainer(1, other);
        let outcome = job.transform(&PLUGIN).unwrap();
        assert_eq!(recipe(&outcome).0, expected);
    }
}

#[test]
fn complete_lines_are_left_as_written() {
    for (command, args) in [
        (
            vec![
                "tune",
                "run",
                "full_finetune_single_device",
                "--config",
                "x.yaml",
            ],
            vec![],
        ),
        (
            vec!["tune", "run"],
            vec!["lora_finetune_single_device", "--config", "x.yaml"],
        ),
        (
            vec!["tune", "run"],
            vec![
                "--nproc_per_node=2",
                "full_finetune_distributed",
                "--config",
                "x.yaml",
            ],
        ),
        (vec!["tune"], vec!["ls"]),
    ] {
        let node = |c: MockContainer| c.train_job_command(&command).train_job_args(&args);
        let outcome = MockJob::new("tuner")
            .all_granted()
            .trainer(2, node)
            .transform(&PLUGIN)
            .unwrap();
        assert_eq!(outcome.value(COMMAND), None);
        let master = outcome.value("pod-sets[node].containers[node].env[PET_MASTER_ADDR]");
        assert_eq!(master, Some(json!("tuner-node-0-0.tuner")));
    }
}

#[test]
fn unused_datasets_and_missing_mounts_are_reported() {
    let fetched = json!({"initializer": {"dataset": {"storageUri": "hf://a/b"}}});
    let warnings = |args: &[&str]| {
        job("llama3_2/1B_full", 1, "2", args)
            .spec(fetched.clone())
            .transform(&PLUGIN)
            .unwrap()
            .warnings()
    };
    assert!(warnings(&["epochs=1"])[0].contains("spec.initializer.dataset"));
    assert_eq!(warnings(&["dataset.source=parquet"]), Vec::<String>::new());
    let node = |c: MockContainer| {
        c.command(&[
            "tune",
            "run",
            "--config",
            "llama3_2/1B_full",
            "output_dir=/output/a",
        ])
        .mount("data", "/out")
        .train_job_command(&["tune", "run"])
    };
    let outcome = MockJob::new("tuner")
        .all_granted()
        .trainer(1, node)
        .transform(&PLUGIN)
        .unwrap();
    assert!(
        outcome.warnings()[0].contains("no volume is mounted at `/output/a`"),
        "{:?}",
        outcome.warnings()
    );
}

#[test]
fn arguments_of_the_runtime_count_if_the_train_job_sets_none() {
    let node = |c: MockContainer| {
        let line = ["tune", "run", "--config", "llama3_2/1B_full"];
        c.command(&line)
            .args(&[LORA, "output_dir=/a"])
            .limit("nvidia.com/gpu", "2")
            .mount("data", "/a")
            .train_job_command(&["tune", "run"])
    };
    let outcome = MockJob::new("tuner")
        .all_granted()
        .trainer(1, node)
        .transform(&PLUGIN)
        .unwrap();
    assert_eq!(recipe(&outcome).1, "llama3_2/1B_lora");
    // It is still in the arguments.
    assert!(
        !outcome
            .value(COMMAND)
            .unwrap()
            .to_string()
            .contains("output_dir")
    );
}
