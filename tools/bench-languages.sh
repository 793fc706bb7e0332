#!/usr/bin/env bash
# Creates a plugin for a fabric in each language, and measures their calls. tools/languages.sh installs the tools.
set -euo pipefail

release=$(cd "$(dirname "$0")/.." && pwd)/target/release
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
files=()
for language in rust c go javascript python; do
    sdk=()
    if [ "$language" = rust ]; then
        sdk=(--sdk "$release/../../plugins/sdk")
    fi
    "$release/trainyard" plugin new "in-$language" --kind fabric --language "$language" "${sdk[@]}" >/dev/null
    if [ "$language" = javascript ]; then
        ln -s "$TRAINYARD_NODE_MODULES" "in-$language/node_modules"
    fi
    echo "building the plugin in $language" >&2
    "$release/trainyard" plugin build "in-$language" --output "$language.wasm" >/dev/null
    files+=("$language.wasm")
done
"$release/examples/languages" "$release/trainyard" "${files[@]}"
