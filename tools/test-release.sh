#!/usr/bin/env bash
# Makes the release of the current commit in two clones in different directories, and compares every file.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# Somebody may commit while this runs.
commit=$(git -C "$root" rev-parse HEAD)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for clone in one another/directory; do
    git clone --quiet "$root" "$scratch/$clone"
    git -C "$scratch/$clone" checkout --quiet "$commit"
    env -u CARGO_TARGET_DIR make --no-print-directory -C "$scratch/$clone" release
    # Only what is compared is kept, because each build takes gigabytes.
    rm -rf "$scratch/$clone/target"
done
diff --recursive --brief "$scratch/one/dist" "$scratch/another/directory/dist"
echo "both releases are the same"
