#!/usr/bin/env bash
# Runs the tests of the harness of tests/cluster if anything that they prove has changed since they last passed on this machine. What
# they passed for is kept beside the binaries of the control plane: without that cache, as in a fresh clone on a new machine, they run.
set -euo pipefail
cd "$(dirname "$0")/.."
digest=$({
    go env GOVERSION
    echo "${KUBEBUILDER_ASSETS:-}"
    git ls-files -s Cargo.lock tests/cluster/Cargo.toml tests/cluster/src tests/cluster/tools tests/cluster/tests/harness.rs
    sed -n 's/^mod \(.*\);$/tests\/cluster\/tests\/\1.rs/p' tests/cluster/tests/harness.rs | xargs git ls-files -s
    git diff HEAD -- Cargo.lock tests/cluster
} | sha256sum | cut -c1-16)
passed=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/harness-passed/$digest
if [ -e "$passed" ]; then
    echo "the harness is as it was when its tests passed: not run again (make test-harness does)"
    exit 0
fi
make test-harness
mkdir -p "$(dirname "$passed")"
touch "$passed"
