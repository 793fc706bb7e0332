#!/usr/bin/env bash
# Copies the chart to FOLDER/trainyard, as a release has it: with JobSet's own chart as a dependency, which is off by default. Nothing of JobSet
# is checked in. Its chart is in the Go module whose controller the tests run, so both have the same version. One thing is changed: its Secret
# has no data. With the empty certificate of JobSet's chart, Helm 3 would delete that of JobSet's controller in each upgrade, after which
# its webhooks refuse pods for a while, and Helm 4 would fail, because the controller has written it.
set -euo pipefail
folder=$(realpath "${1:?pass a folder}")
cd "$(dirname "$0")/.."
module() { (cd tests/cluster/tools && go list -m -f "{{.$1}}" sigs.k8s.io/jobset); }
(cd tests/cluster/tools && go mod download sigs.k8s.io/jobset)
source=$(module Dir)
version=$(module Version)

cp -r charts/trainyard "$folder/trainyard"
jobset=$folder/trainyard/charts/jobset
mkdir "$folder/trainyard/charts" "$jobset"
for part in .helmignore Chart.yaml README.md crds templates values.yaml; do
    cp -r --no-preserve=mode "$source/charts/jobset/$part" "$jobset"
done
cp --no-preserve=mode "$source/LICENSE" "$jobset"
secret=$jobset/templates/internalcert/secret.yaml
sed -i '/^data:$/,/^  tls.key: ""$/d' "$secret"
if grep -E '^data:|tls.key' "$secret"; then
    echo "$secret: its data was not removed; correct $0" >&2
    exit 1
fi
cat >>"$folder/trainyard/Chart.yaml" <<EOF
dependencies:
- name: jobset
  version: ${version#v}
  repository: oci://registry.k8s.io/jobset/charts
  condition: jobset.install
EOF
