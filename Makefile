# `make demo` and `make test` install what they need on a fresh machine.
.DEFAULT_GOAL := help
CARGO ?= cargo
TRAINYARD := target/debug/trainyard
EXAMPLE := -f examples/torch-llama
# Selected beside a package, it gives its dependencies the features that the whole workspace uses, so that none is built twice.
FEATURES := -p trainyard-features
# Counts the tests that are skipped because a tool is missing.
SKIPPED := tools/skipped.sh
# Crates whose tests need no plugin, child process or cluster.
FAST := text release api structural schema config model oci render controller sdk policies bindings $(patsubst plugins/%/manifest.json,plugin-%,$(wildcard plugins/*/manifest.json))

# The crates that can be published.
PUBLISHED := api model render schema sdk sdk-derive structural text

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20

.PHONY: setup
setup: ## Install the WebAssembly target that plugins are built for, if it is missing.
	@tools/setup.sh

.PHONY: build
build: setup ## Build target/debug/trainyard with its built-in plugins.
	$(CARGO) build --locked --workspace --bin trainyard

.PHONY: demo
demo: build ## Show the plan, the explanation and the JobSet of a TrainJob with 4 nodes of 8 GPUs.
	@printf '\n# %s\n' 'trainyard plan $(EXAMPLE)'
	@$(TRAINYARD) plan $(EXAMPLE)
	@printf '\n# %s\n' 'trainyard explain $(EXAMPLE)'
	@$(TRAINYARD) explain $(EXAMPLE)
	@printf '\n# %s\n' 'trainyard render $(EXAMPLE)'
	@$(TRAINYARD) render $(EXAMPLE)

.PHONY: cluster
cluster: needs-go build ## Run Kubernetes with Trainyard on this machine, without containers, until Ctrl-C; needs Go.
	$(CARGO) build --locked --workspace --example cluster
	@target/debug/examples/cluster

.PHONY: demo-cluster
demo-cluster: needs-go build ## Start the same cluster, run that TrainJob on it until it is complete, and stop; needs Go.
	$(CARGO) build --locked --workspace --example cluster
	@target/debug/examples/cluster --demo examples/torch-llama

.PHONY: demo-train
demo-train: needs-go build ## Train with PyTorch on the same cluster: two nodes with two processes each; needs Go, Python 3.11 and 5.4 GB.
	$(CARGO) build --locked --workspace --example cluster
	@target/debug/examples/cluster --train examples/torch-spirals

.PHONY: test test-program test-crates
# With --jobs, the tests of the program run beside those of the other crates, which take as long.
test: test-program test-crates ## Run all tests that need no cluster.

test-program: setup
	@$(SKIPPED) $(CARGO) test --locked -p trainyard-features -p trainyard

test-crates: setup
	@$(SKIPPED) $(CARGO) test --locked --workspace --exclude trainyard

.PHONY: test-fast
test-fast: setup ## Run the tests that need no plugin, child process or cluster; under a minute once built.
	$(CARGO) test --locked --tests $(FEATURES) $(FAST:%=-p trainyard-%)

.PHONY: build-tests
build-tests: build ## Build all tests, so that several targets that run them can run beside each other.
	$(CARGO) test --locked --workspace --no-run

CLUSTER := outages disturbed calm api_server
.PHONY: test-cluster $(CLUSTER:%=test-cluster-%)
test-cluster: build-tests ## Run the tests that need Kubernetes; needs Go.
	@$(MAKE) --no-print-directory --jobs --keep-going --output-sync=target $(CLUSTER:%=test-cluster-%)

$(CLUSTER:%=test-cluster-%): test-cluster-%: needs-go
	$(CARGO) test --locked --workspace --test cluster -- $*

.PHONY: needs-go
needs-go:
	@command -v go >/dev/null || { echo "Go is missing: install version 1.26 or newer (https://go.dev/dl)" >&2; exit 1; }

.PHONY: plane
plane: needs-go build ## Keep a cluster running for the tests, until Ctrl-C, so that they start at once; needs Go.
	$(CARGO) build --locked --workspace --example plane
	target/debug/examples/plane

.PHONY: test-harness
test-harness: needs-go build ## Test the cluster that test-cluster uses; needs Go; FILTER=NAME selects tests.
	$(CARGO) build --locked --workspace --example cluster
	$(CARGO) test --locked --workspace --test cluster -- harness $(FILTER)

.PHONY: test-interactive
test-interactive: ## Test `make cluster`, which runs the program and deploy/ in that cluster.
	@$(MAKE) --no-print-directory test-harness FILTER=interactive_cluster

.PHONY: test-reference
test-reference: needs-go ## Compare with the Kubeflow Trainer's own code, 100,000 merged patches and 9,000 TrainJobs, with Kueue's, and by two fuzzers with Kubernetes'; needs Go and a C++ compiler.
	@export PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED:-$$(date +%s)}; \
	echo "PROPTEST_RNG_SEED=$$PROPTEST_RNG_SEED repeats the generated inputs of this run"; \
	$(CARGO) test --locked $(FEATURES) -p trainyard-api --test all -- --include-ignored strategic_merge_agrees_with_the_reference:: && \
	$(CARGO) test --locked $(FEATURES) -p trainyard --test all -- --include-ignored differences_from_the_reference_are_listed:: kueue_counts_what_is_rendered::
	@CARGO='$(CARGO)' FUZZ_REFERENCE=1 TARGET="merge schemas" tools/fuzz/run.sh

.PHONY: test-mpi
test-mpi: setup ## Run real MPI programs with the rendered files; needs root and sshd, skips and counts MPIs that are not installed.
	@$(SKIPPED) $(CARGO) test --locked $(FEATURES) -p trainyard --test mpi -- --nocapture

.PHONY: test-again
test-again: needs-go build ## Prove on real Kubernetes what tests of the controller prove without it: queued and frozen JobSets, placements, replicas; needs Go.
	$(CARGO) test --locked --workspace --test cluster -- again

.PHONY: test-handover
test-handover: needs-go build ## Move TrainJobs of each policy in each state from the Kubeflow Trainer's controller to this one, and back; needs Go.
	$(CARGO) test --locked --workspace --test cluster -- handover

.PHONY: test-load
test-load: needs-go build ## Restart a controller with 2,000 TrainJobs, and try expensive ones; needs Go, takes minutes of CPU.
	$(CARGO) test --locked --workspace --test cluster -- load

.PHONY: test-gangs
test-gangs: needs-go build ## Test gangs with the scheduler of scheduler-plugins, which takes minutes to build; needs Go.
	$(CARGO) test --locked --workspace --test cluster -- gangs

# KUEUE=0.15 selects another release, which reserves quota for one node of each TrainJob (docs/compatibility.md).
.PHONY: test-kueue
test-kueue: needs-go build ## Queue, preempt and resume TrainJobs with the newest Kueue in tests/cluster/kueue, or KUEUE=0.15; needs Go, builds it first for 11 minutes of CPU.
	$(if $(KUEUE),TRAINYARD_KUEUE=$(KUEUE)) $(CARGO) test --locked --workspace --test cluster -- kueue

.PHONY: test-plugins
test-plugins: needs-go build ## Declare, upgrade and roll back plugins, and try hostile ones, on a real control plane with a real registry and cosign; needs Go, builds both first for 10 minutes.
	@files=$$(mktemp -d) && trap 'rm -rf "$$files"' EXIT && export TRAINYARD_HOSTILE_FILES=$$files && \
	$(CARGO) test --locked $(FEATURES) -p trainyard-sandbox --test all && \
	$(CARGO) test --locked --workspace --test cluster -- plugins

.PHONY: test-chart
test-chart: needs-go build ## Test the Helm chart with helm 3 and 4, promtool and a real API server; needs Go, builds these first for 20 minutes.
	$(CARGO) test --locked $(FEATURES) -p trainyard --test all -- --include-ignored chart_ health_checks_
	$(CARGO) test --locked --workspace --test cluster -- chart

.PHONY: test-registry
test-registry: needs-go setup ## Push, pull, copy and sign plugins with a real registry and cosign; needs Go, builds both first for 10 minutes.
	$(CARGO) test --locked $(FEATURES) -p trainyard --test all -- --include-ignored plugins_travel_through_registries:: commands_accept_only_signed_plugins::

.PHONY: setup-frameworks
setup-frameworks: ## Install PyTorch, Transformers, JAX, XGBoost, Open MPI and MPICH for test-frameworks, if they are missing; needs 6.7 GB.
	$(CARGO) build --locked --workspace --example cluster
	@target/debug/examples/cluster --install-frameworks

.PHONY: test-frameworks
test-frameworks: needs-go build ## Sum the ranks of each of these frameworks on a real control plane (docs/frameworks.md); needs Go; FILTER=NAME selects tests.
	$(CARGO) build --locked --workspace --example cluster
	$(CARGO) test --locked --workspace --test cluster -- frameworks $(FILTER)

.PHONY: test-languages
test-languages: needs-go build ## Build and test new plugins of each kind in C, Go, JavaScript and Python; needs Go, Node.js, Python and 1 GB; takes minutes.
	@tools/languages.sh $(CARGO) test --locked --workspace --test all -- plugins_in_other_languages_work --nocapture

.PHONY: test-conform
test-conform: build ## Check that the built-in plugins and the examples pass `trainyard plugin conform`, that it finds mistakes, that the guide works, and that the SDK can be packaged; minutes.
	$(CARGO) test --locked $(FEATURES) -p trainyard --test all -- --include-ignored plugin_conform_finds_mistakes:: plugin_guide_works:: sdk_is_a_crate::
	@# train-job-status has no cases, because it adds nothing without the facts of a controller.
	@set -e; for cases in $(wildcard plugins/*/cases examples/plugins/*/cases); do \
	  $(TRAINYARD) plugin conform $$(dirname $$cases); \
	done

.PHONY: test-model
test-model: setup ## Explore every order of events one event deeper than `make test`, and walk at random for 12 million steps; 20 minutes of CPU.
	MODEL_DEEPER=1 MODEL_STEPS=1000000 $(CARGO) test --locked $(FEATURES) -p trainyard-controller --lib every_order_of_events -- --nocapture

.PHONY: test-faults
test-faults: setup ## Let every call of the controller fail in every way, for every kind of TrainJob, where `make test` tries a sample; 8 minutes of CPU.
	FAULTS_ALL=1 $(CARGO) test --locked $(FEATURES) -p trainyard-controller --test all every_api_call_can_fail -- --nocapture

# Also used by tools/fuzz/run.sh: SECONDS_PER_TARGET (60), TARGET (all), FUZZ_REFERENCE=1 (compares with Kubernetes' code; needs Go).
.PHONY: fuzz fuzz-corpus
fuzz: setup ## Fuzz the readers, the sandbox and the contract's methods; SECONDS_PER_TARGET=60, TARGET=NAME for one; needs a C++ compiler.
	@CARGO='$(CARGO)' tools/fuzz/run.sh

fuzz-corpus: setup ## Add the inputs that `make fuzz` found and that reach more code to the corpus that is checked in; review the diff.
	@CARGO='$(CARGO)' MERGE=1 tools/fuzz/run.sh

.PHONY: test-fuzz
test-fuzz: setup ## Fuzz each target for ten minutes.
	@CARGO='$(CARGO)' SECONDS_PER_TARGET=600 tools/fuzz/run.sh

.PHONY: test-versions
test-versions: needs-go build-tests ## Run the tests of clusters with the oldest and the newest Kubernetes that the pages name, or VERSION=1.33 and GROUP=calm; needs Go, builds each first for 15 minutes.
	@tools/test-versions.sh

.PHONY: test-upgrade
test-upgrade: needs-go build ## Replace an earlier release by this one and back, under TrainJobs of each policy in each state; BEFORE=TAG; needs Go, builds the earlier one for 10 minutes.
	@tools/test-upgrade.sh

.PHONY: test-semver
test-semver: ## Check that the SDK's public API only grows; builds cargo-semver-checks first, which takes minutes.
	@tools/semver.sh

.PHONY: mutants
mutants: setup ## Change the code that decides, one place at a time, and run its tests, which should fail; FILE=host/model/src/plan for a part, SHARD=0/30 for a sample; days without either.
	@tools/mutants.sh $(FILE:%=--re %) $(SHARD:%=--sharding round-robin --shard %)

.PHONY: test-nightly
test-nightly: build-tests ## Run what takes too long for each change: other generated TrainJobs, conformance, the chart, a registry, real MPI and frameworks, languages, the controller on real Kubernetes again, handover, load, gangs, Kueue, the SDK's API, every order of events, every fault of every call, the fuzzers, other versions of Kubernetes, an upgrade, the site, the harness, two releases; hours.
	@$(MAKE) --no-print-directory --keep-going test-reference test-chart test-registry test-conform test-harness test-again test-handover test-load test-gangs test-kueue test-plugins test-mpi test-languages test-semver test-model test-faults test-fuzz test-versions test-upgrade test-frameworks growth docs audit test-release

# Also used by tools/soak.sh: SOAK_MINUTES (120), SOAK_SEED (the time).
.PHONY: soak
soak: needs-go build ## Let a crowd of TrainJobs come and go on a real control plane, with faults, and draw docs/soak.png; needs Go, Python; SOAK_MINUTES=120.
	@CARGO='$(CARGO)' tools/soak.sh

.PHONY: bench
bench: setup ## Measure plugin calls, renderings and starts (docs/benchmarks.md); takes minutes on an idle machine.
	$(CARGO) build --locked --release -p trainyard
	$(CARGO) bench --locked -p trainyard-bench

.PHONY: bench-languages
bench-languages: needs-go setup ## Measure new plugins in each language beside Torch; needs Go, Node.js, Python and 1 GB; takes minutes.
	$(CARGO) build --locked --release -p trainyard -p trainyard-bench --bins --example languages
	@tools/languages.sh tools/bench-languages.sh

.PHONY: growth
growth: setup ## Check that the cost of a rendering grows linearly; needs valgrind, takes minutes.
	@command -v valgrind >/dev/null || { echo "valgrind is missing: install it, such as with \`apt-get install valgrind\`" >&2; exit 1; }
	$(CARGO) build --locked $(FEATURES) -p trainyard-render --example growth
	tools/growth.sh

.PHONY: image
image: setup ## Build the image for amd64 and arm64 in dist/image, without Docker; needs qemu-user, takes half an hour.
	@tools/image.sh

.PHONY: release
release: setup ## Make the files of a release in dist/release from a clean checkout: image, programs, chart, CRDs, crates; takes as long.
	@tools/deny.sh advisories
	@PUBLISHED='$(PUBLISHED)' tools/release.sh

.PHONY: test-release
test-release: setup ## Check that two clones give the same release, byte for byte; takes hours.
	@tools/test-release.sh

.PHONY: audit
audit: ## Check the licenses and sources of the dependencies, and RustSec's database of vulnerabilities; needs a network.
	@tools/deny.sh
	@tools/deny.sh advisories

.PHONY: lint clippy style
lint: style clippy ## Check the format, clippy, the SDK's documentation, the scripts and the dependencies.
	@tools/deny.sh

clippy: setup
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --workspace --test '*' -- -D warnings

style: setup
	$(CARGO) fmt --all --check
	@# Modules that a build script lists, which cargo fmt does not find.
	rustfmt --edition 2024 --check plugins/*/reference/mod.rs plugins/*/reference/inputs/mod.rs
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps $(FEATURES) $(PUBLISHED:%=-p trainyard-%)
	@tools/shellcheck.sh

.PHONY: docs
docs: ## Build the documentation as a site in target/site, and check its links; needs Python, builds mdBook first, which takes 2 minutes.
	@tools/docs/build.py

.PHONY: bindings
bindings: setup ## Regenerate the code and the manual from wit/; review the diff.
	@# A command of its own, because other crates may not compile until these files are written.
	UPDATE=1 $(CARGO) test --locked -p trainyard-bindings --test all generated_files_are_up_to_date
	UPDATE=1 $(CARGO) test --locked $(FEATURES) -p trainyard-model --test all contract_is_documented::

.PHONY: expected
expected: setup ## Regenerate the CRDs, and the expected files of cases, plans, roles and the list of runtimes; review the diff.
	@# A command of its own, because the other files are generated by the crate that contains this one.
	UPDATE=1 $(CARGO) test --locked $(FEATURES) -p trainyard-schema --test all definitions_are_generated::members_of_unions
	UPDATE=1 $(CARGO) test --locked $(FEATURES) -p trainyard-schema --test all definitions_are_generated::
	UPDATE=1 $(CARGO) test --locked $(FEATURES) -p trainyard-config --test all crds_are_generated_from_the_types::each_crd
	UPDATE_EXPECTED=1 $(CARGO) test --locked $(FEATURES) -p trainyard --test all -- cases_render_as_expected::every_case_renders_as_expected \
	  deployment_is_complete::every_file_is_listed deployment_is_complete::roles_match plan_shows_order_and_conflicts::

.PHONY: chart
chart: needs-go setup ## Render deploy/ from charts/trainyard again, after `make expected` if the CRDs or roles changed; review the diff; needs Go.
	UPDATE_EXPECTED=1 $(CARGO) test --locked $(FEATURES) -p trainyard --test all -- --ignored chart_renders_deploy::both_versions

.PHONY: expected-reference
expected-reference: needs-go setup ## Regenerate the answers of the Kubeflow Trainer and Kueue to the cases; review the diff; needs Go.
	UPDATE_EXPECTED=1 $(CARGO) test --locked $(FEATURES) -p trainyard --test all -- --ignored checked_in_answers
