#!/usr/bin/env bash
# Makes the files of a release in dist/release from a clean checkout, and prints what each of them is.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
if [ -n "$(git status --porcelain)" ]; then
    git status --short >&2
    echo "the checkout has changes, so the release could not be made again: commit or remove the files above" >&2
    exit 1
fi
tools/image.sh
release=dist/release
mkdir $release
tool() { "$cargo" run --quiet --locked -p trainyard-release -- "$@"; }
version=$(tool --version | cut -d' ' -f2)

mv dist/trainyard-linux-amd64 dist/trainyard-linux-arm64 dist/*.cdx.json $release
tool archive --output "$release/trainyard-image-$version.tar" dist/image
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
tools/chart-with-jobset.sh "$packages"
tool chart --output "$release/trainyard-$version.tgz" "$packages/trainyard"
program=$release/trainyard-linux-amd64
if [ "$(uname -m)" = aarch64 ]; then program=$release/trainyard-linux-arm64; fi
"$program" crds >$release/crds.yaml
"$program" runtimes --all >$release/runtimes.yaml
jobset=$(sed -n '/^jobset:/,/^$/s/^    \(repository\|tag\): //p' charts/trainyard/values.yaml | paste -sd:)
{ echo "REGISTRY/trainyard:$version@$(cat dist/digest)" && echo "$jobset" && cat deploy/images.txt; } >$release/images.txt
cp LICENSE $release
tool notes CHANGELOG.md >$release/NOTES.md

published=()
for name in ${PUBLISHED:?is set by make release}; do published+=(--package "trainyard-$name"); done
# The tests build a plugin from these packages.
"$cargo" package --quiet --locked --no-verify --exclude-lockfile --target-dir "$packages" "${published[@]}"
mv "$packages"/package/*.crate $release

echo "release $version of commit $(git rev-parse HEAD), in $release:"
tool contents --commit "$(git rev-parse HEAD)" --image "$(cat dist/digest)" $release
