#!/usr/bin/env bash
# Installs the tools that build plugins in C, JavaScript and Python, in the user's cache, and runs the command with them.
set -euo pipefail

tools=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/languages
templates=$(cd "$(dirname "$0")/../host/templates" && pwd)
mkdir -p "$tools/javascript"
if [ ! -x "$tools/python/bin/componentize-py" ]; then
    echo "installing Zig and componentize-py into $tools" >&2
    python3 -m venv "$tools/python"
    "$tools/python/bin/pip" install --quiet ziglang==0.17.1 -r "$templates/python/requirements.txt"
fi
cp "$templates/javascript/package.json" "$tools/javascript"
if [ ! -d "$tools/javascript/node_modules" ]; then
    echo "installing componentize-js into $tools" >&2
    npm install --silent --prefix "$tools/javascript"
fi
export PATH="$tools/python/bin:$PATH"
export TRAINYARD_NODE_MODULES="$tools/javascript/node_modules"
export TRAINYARD_ALL_LANGUAGES=1
exec "$@"
