#!/usr/bin/env bash
# Builds greeter-c.wasm. Needs clang with the target wasm32, such as Zig's: `pip install ziglang`, then WASM_CC="python3 -m ziglang cc".
set -euo pipefail
cd "$(dirname "$0")"
${WASM_CC:-clang} --target=wasm32-freestanding -Os -nostdlib -Wl,--no-entry -o core.wasm plugin.c
"${TRAINYARD:-trainyard}" plugin wrap core.wasm manifest.json
