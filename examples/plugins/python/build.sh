#!/usr/bin/env bash
# Builds greeter-python.wasm. Needs `pip install componentize-py==0.25.1`.
set -euo pipefail
cd "$(dirname "$0")"
"${TRAINYARD:-trainyard}" plugin wit wit
componentize-py -d wit -w transformer componentize --stub-wasi plugin -o component.wasm
"${TRAINYARD:-trainyard}" plugin wrap component.wasm manifest.json
