#!/usr/bin/env bash
# Checks the scripts that run in pods and those of this repository. Installs shellcheck on Debian if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 1; fi
}

if ! command -v shellcheck >/dev/null; then
    echo "installing shellcheck" >&2
    { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq shellcheck; } >&2 || {
        echo "shellcheck is missing: install it (https://www.shellcheck.net)" >&2
        exit 1
    }
fi
git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck -x
