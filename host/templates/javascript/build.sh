#!/usr/bin/env bash
# Builds NAME.wasm.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v node >/dev/null; then
    echo "error: the command \`node\` was not found; install Node.js 20 or newer (https://nodejs.org)" >&2
    exit 1
fi
if [ ! -d node_modules/@bytecodealliance/componentize-js ]; then
    echo "error: componentize-js was not found; run \`npm install\` in $PWD" >&2
    exit 1
fi

"${TRAINYARD:-trainyard}" plugin wit wit --phase PHASES
node build.mjs
"${TRAINYARD:-trainyard}" plugin wrap component.wasm manifest.json
