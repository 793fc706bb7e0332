#!/usr/bin/env bash
# Compiles the plugin for this machine with test.c, which stands for the host, and runs the tests. CC is the compiler, such as `zig cc`.
set -euo pipefail
cd "$(dirname "$0")"

if [ -z "${CC:-}" ]; then
    if command -v cc >/dev/null; then
        CC=cc
    elif command -v zig >/dev/null; then
        CC='zig cc'
    elif python3 -c 'import ziglang' 2>/dev/null; then
        CC='python3 -m ziglang cc'
    elif command -v clang >/dev/null; then
        CC=clang
    else
        echo "error: a C compiler was not found; install Zig with \`pip install ziglang\`, or set CC" >&2
        exit 1
    fi
fi

"${TRAINYARD:-trainyard}" plugin wit bindings --phase PHASES --bindings c
# CC can have several words.
$CC -g -Wall -Ibindings -o bindings/test plugin.c test.c
bindings/test
