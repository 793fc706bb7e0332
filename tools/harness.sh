#!/usr/bin/env bash
# Runs the tests of the harness of tests/cluster if the code that they test has changed since they last passed on this machine. The
# result is stored in the cache, next to the binaries of the control plane; on a new machine without that cache, the tests run.
set -euo pipefail
cd "$(dirname "$0")/.."
digest=$({
    go env GOVERSION
    echo "${KUBEBUILDER_ASSETS:-}"
    git ls-files -s Cargo.lock tests/cluster/Cargo.toml tests/cluster/src tests/cluster/examples tests/cluster/tools tests/cluster/tests/harness.rs
    sed -n 's/^mod \(.*\);$/tests\/cluster\/tests\/\1.rs/p' tests/cluster/tests/harness.rs | xargs git ls-files -s
    git diff HEAD -- Cargo.lock tests/cluster
} | sha256sum | cut -c1-16)
passed=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/harness-passed/$digest
if [ -e "$passed" ]; then
    echo "skipped: the harness has not changed since its tests passed (make test-harness runs them)"
    exit 0
fi
make test-harness
mkdir -p "$(dirname "$passed")"
touch "$passed"
