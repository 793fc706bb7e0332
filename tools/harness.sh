#!/usr/bin/env bash
# Runs the tests of the harness of tests/cluster if the code that they test has changed since they last passed on this machine. If only
# the product has changed, this is the test of `make cluster`, which runs the product and deploy/. The results are stored in the cache,
# next to the binaries of the control plane; on a new machine without that cache, all tests run.
set -euo pipefail
cd "$(dirname "$0")/.."
digest() {
    {
        go env GOVERSION
        echo "${KUBEBUILDER_ASSETS:-}"
        git ls-files -s "$@"
        git diff HEAD -- "$@"
    } | sha256sum | cut -c1-16
}
mapfile -t tests < <(sed -n 's/^mod \(.*\);$/tests\/cluster\/tests\/\1*/p' tests/cluster/tests/harness.rs)
harness=(Cargo.lock tests/cluster/Cargo.toml tests/cluster/src tests/cluster/examples tests/cluster/tools tests/pods tests/cluster/tests/harness.rs "${tests[@]}")
product=(Cargo.toml deploy host plugins tests/cluster/kustomize wit)
passed=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/harness-passed
of_harness=$passed/$(digest "${harness[@]}")
of_all=$passed/$(digest "${harness[@]}" "${product[@]}")
if [ -e "$of_all" ]; then
    echo "skipped: the harness and the product have not changed since its tests passed (make test-harness runs them)"
    exit 0
fi
if [ -e "$of_harness" ]; then
    make test-harness FILTER=interactive_cluster
else
    make test-harness
fi
mkdir -p "$passed"
touch "$of_harness" "$of_all"
