#!/usr/bin/env bash
# Builds NAME.wasm. WASM_CC is the compiler, such as `zig cc`.
set -euo pipefail
cd "$(dirname "$0")"

links() {
    echo 'int main(void) { return 0; }' | "$@" --target=wasm32-wasi -x c -o /dev/null - 2>/dev/null
}

if [ -z "${WASM_CC:-}" ]; then
    if command -v zig >/dev/null; then
        WASM_CC='zig cc'
    elif python3 -c 'import ziglang' 2>/dev/null; then
        WASM_CC='python3 -m ziglang cc'
    elif links clang; then
        WASM_CC=clang
    else
        echo "error: a compiler for WebAssembly was not found; install Zig with \`pip install ziglang\`, or clang with lld and a libc for WASI (on Debian: clang lld wasi-libc libclang-rt-dev-wasm32), or set WASM_CC" >&2
        exit 1
    fi
fi

"${TRAINYARD:-trainyard}" plugin wit bindings --phase PHASES --bindings c
# WASM_CC can have several words.
$WASM_CC --target=wasm32-wasi -mexec-model=reactor -Os -Wall -Ibindings -o core.wasm \
    plugin.c bindings/guest.c bindings/guest_component_type.o
"${TRAINYARD:-trainyard}" plugin wrap core.wasm manifest.json
