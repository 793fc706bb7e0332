# Two commands do all set-up on a fresh machine: `make demo` and `make test`.
.DEFAULT_GOAL := help
CARGO ?= cargo
TRAINYARD := target/debug/trainyard
EXAMPLE := -f examples/torch-llama
# Selected beside some packages, it has their dependencies built as for all of them: nothing is built twice.
FEATURES := -p trainyard-features
# Their tests need no plugin, child process or cluster. That of 5,000 queued TrainJobs alone takes most of a minute.
FAST := model api render schema controller sdk plugin-dra plugin-flux plugin-mpi plugin-torch bindings

.PHONY: help
help: ## Show what there is.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

.PHONY: setup
setup: ## Install what building needs, where it is missing.
	@tools/setup.sh

.PHONY: build
build: setup ## Build the command with its built-in plugins.
	$(CARGO) build --locked --workspace --bin trainyard

.PHONY: demo
demo: build ## Render a TrainJob of 4 nodes with 8 GPUs each; show its plan and who set what.
	@printf '\n# %s\n' 'trainyard plan $(EXAMPLE)'
	@$(TRAINYARD) plan $(EXAMPLE)
	@printf '\n# %s\n' 'trainyard explain $(EXAMPLE)'
	@$(TRAINYARD) explain $(EXAMPLE)
	@printf '\n# %s\n' 'trainyard render $(EXAMPLE)'
	@$(TRAINYARD) render $(EXAMPLE)

.PHONY: demo-cluster
demo-cluster: build ## Run that TrainJob on Kubernetes without containers, until it is complete; the first time builds Kubernetes with Go, which takes minutes.
	$(CARGO) build --locked --quiet --workspace --example demo
	target/debug/examples/demo examples/torch-llama

.PHONY: test
test: setup ## Run all tests that need no cluster.
	$(CARGO) test --locked --workspace

.PHONY: test-fast
test-fast: setup ## Run the tests that need no plugin, child process or cluster: under a minute, once they are built.
	$(CARGO) test --locked --tests $(FEATURES) $(FAST:%=-p trainyard-%) -- --skip lists_are_requested_once

.PHONY: test-cluster
test-cluster: build ## Run the tests that need Kubernetes; builds it with Go, once, which takes minutes.
	$(CARGO) test --locked --workspace --test api_server --test calm --test disturbed

.PHONY: plane
plane: build ## Keep a cluster running that tests use, until Ctrl-C; they then start at once.
	$(CARGO) build --locked --quiet --workspace --example plane
	target/debug/examples/plane

.PHONY: test-harness
test-harness: ## Run the tests of the cluster that test-cluster runs on.
	$(CARGO) test --locked --workspace --test harness

.PHONY: test-reference
test-reference: ## Compare with the reference itself: the merge of patches on 100,000 inputs, what TrainJobs become on 3,000; needs Go.
	@if command -v go >/dev/null; then \
	  $(CARGO) test --locked $(FEATURES) -p trainyard-api --test all -- --include-ignored strategic_merge_agrees_with_the_reference:: && \
	  $(CARGO) test --locked $(FEATURES) -p trainyard --test all -- --include-ignored differences_from_the_reference_are_listed::; \
	else \
	  echo "skipped: test-reference needs Go (https://go.dev/dl); make test compares with answers that are checked in"; \
	fi

.PHONY: test-mpi
test-mpi: setup ## Run programs of Open MPI, Intel MPI and MPICH by what is rendered for them; needs root and sshd, skips what is not installed.
	$(CARGO) test --locked $(FEATURES) -p trainyard --test mpi -- --nocapture

.PHONY: bench
bench: setup ## Measure plugin calls, renderings and starts (docs/benchmarks.md); takes minutes, on an idle machine.
	$(CARGO) build --locked --release -p trainyard
	$(CARGO) bench --locked -p trainyard-bench

.PHONY: growth
growth: setup ## Count how the cost of a rendering grows with what a TrainJob has much of; needs valgrind, takes minutes.
	@if command -v valgrind >/dev/null; then \
	  $(CARGO) build --locked $(FEATURES) -p trainyard-render --example growth && tools/growth.sh; \
	else \
	  echo "skipped: growth needs valgrind"; \
	fi

.PHONY: image-binary
image-binary: setup ## Build the static program of the image into dist/, with all optimizations; takes minutes.
	@tools/static.sh

.PHONY: lint
lint: setup ## Check format, clippy, scripts, and what the dependencies may be.
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --workspace --test '*' -- -D warnings
	@tools/deny.sh
	@tools/shellcheck.sh

.PHONY: bindings
bindings: setup ## Write anew what repeats wit/: handles, records, the linker's rows, the SDK, the manual; read the diff.
	@# By itself, since nothing else may build until this is written.
	UPDATE=1 $(CARGO) test --locked -p trainyard-bindings --test all every_file_is_as_it_is_printed
	UPDATE=1 $(CARGO) test --locked $(FEATURES) -p trainyard-model --test all contract_is_documented::

.PHONY: expected
expected: setup ## Write the expected files of tests/cases anew; read the diff.
	UPDATE_EXPECTED=1 $(CARGO) test --locked $(FEATURES) -p trainyard --test all cases_render_as_expected::every_case

.PHONY: expected-reference
expected-reference: setup ## Write anew what the reference answers to tests/cases, read the diff; needs Go.
	UPDATE_EXPECTED=1 $(CARGO) test --locked $(FEATURES) -p trainyard --test all -- --ignored differences_from_the_reference_are_listed::the_checked_in_answers
