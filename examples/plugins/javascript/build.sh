#!/usr/bin/env bash
# Builds greeter-javascript.wasm. Needs Node.js 20 or newer, and `npm install` in this directory.
set -euo pipefail
cd "$(dirname "$0")"
"${TRAINYARD:-trainyard}" plugin wit wit
node build.mjs
"${TRAINYARD:-trainyard}" plugin wrap component.wasm manifest.json
