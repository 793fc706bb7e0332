#!/usr/bin/env bash
# Runs the tests of clusters with each version of Kubernetes in tests/cluster/kubernetes: the oldest and the newest that the pages name.
# VERSION=1.33 selects one of them, and GROUP=calm one group of tests.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/kubernetes
# A cluster that is kept has another version.
unset TRAINYARD_PLANE
result=0
for module in "$root"/tests/cluster/kubernetes/${VERSION:-*}/; do
    version=$(cd "$module" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
    # Each program has its usual name there, which controller-runtime's envtest and the harness expect.
    assets=$cache/$version
    if [ ! -e "$assets/kube-apiserver" ]; then
        echo "building Kubernetes $version into $assets (takes 10 minutes)"
        scratch=$(mktemp -d)
        trap 'rm -rf "$scratch"' EXIT
        (cd "$root/tests/cluster/tools" && CGO_ENABLED=0 go build -trimpath -gcflags=all=-dwarf=false -ldflags '-s -w' -o "$scratch/etcd" go.etcd.io/etcd/server/v3)
        (cd "$module" && CGO_ENABLED=0 go build -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$scratch/" tool)
        mkdir -p "$cache"
        mv "$scratch" "$assets"
    fi
    echo "Kubernetes $version"
    # Features that a test uses, and that this version has switched off.
    TRAINYARD_FEATURE_GATES=$(cat "$module/feature-gates" 2>/dev/null || true)
    export TRAINYARD_FEATURE_GATES
    # The tests of the other versions are run even if these fail.
    KUBEBUILDER_ASSETS=$assets make --no-print-directory -C "$root" "test-cluster${GROUP:+-$GROUP}" || result=1
done
exit "$result"
