#!/usr/bin/env bash
# Builds NAME.wasm, and writes the types of the contract to `bindings`, for tests and editors.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v componentize-py >/dev/null; then
    echo "error: the command \`componentize-py\` was not found; run \`pip install -r requirements.txt\` in $PWD" >&2
    exit 1
fi

"${TRAINYARD:-trainyard}" plugin wit wit --phase PHASES
rm -rf bindings
componentize-py -d wit -w guest bindings bindings
componentize-py -d wit -w guest componentize --stub-wasi plugin -o component.wasm
"${TRAINYARD:-trainyard}" plugin wrap component.wasm manifest.json
