#!/usr/bin/env bash
# Sets Trainyard's version, such as `tools/version.sh 0.2.0`, in Cargo.toml and in the files that have to repeat it. Then run `make expected`
# and `make chart`, and give CHANGELOG.md a section for the version.
set -euo pipefail
cd "$(dirname "$0")/.."
new=${1:?usage: tools/version.sh VERSION}
old=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
quoted=${old//./\\.}
sed -i "/^\[workspace.package\]/,/^$/s/^version = \"$quoted\"/version = \"$new\"/; s/version = \"=$quoted\"/version = \"=$new\"/" Cargo.toml
sed -i "s/^\(version\|appVersion\): $quoted$/\1: $new/" charts/trainyard/Chart.yaml
sed -i "s/newTag: $quoted$/newTag: $new/" deploy/kustomization.yaml
sed -i "s/\(trainyard:\|trainyard-image-\|image:\|targetRevision: v\|--version \|trainyard-\)$quoted/\1$new/g" deploy/README.md charts/trainyard/README.md docs/add-a-plugin.md docs/gitops.md
cargo update --quiet --offline --workspace
git diff --stat
