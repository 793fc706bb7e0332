#!/usr/bin/env bash
# Builds NAME.wasm.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v go >/dev/null; then
    echo "error: the command \`go\` was not found; install Go 1.24 or newer (https://go.dev/dl)" >&2
    exit 1
fi

GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w -buildid=' -o core.wasm .
"${TRAINYARD:-trainyard}" plugin wrap core.wasm manifest.json
