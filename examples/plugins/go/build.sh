#!/usr/bin/env bash
# Builds greeter-go.wasm. Needs Go 1.24 or newer (https://go.dev/dl).
set -euo pipefail
cd "$(dirname "$0")"
GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags="-s -w -buildid=" -o core.wasm .
"${TRAINYARD:-trainyard}" plugin wrap core.wasm manifest.json
