#!/usr/bin/env bash
# Runs a command whose tests may be skipped because a tool is missing, and counts these tests at the end. If the environment variable
# TRAINYARD_SKIPPED is set, another command counts them, in the file that it names.
set -euo pipefail

if [ -n "${TRAINYARD_SKIPPED:-}" ]; then
    exec "$@"
fi
TRAINYARD_SKIPPED=$(mktemp)
export TRAINYARD_SKIPPED
trap 'rm -f "$TRAINYARD_SKIPPED"' EXIT
result=0
"$@" || result=$?
sort -u "$TRAINYARD_SKIPPED" | sed 's/^/skipped: /'
echo "$(sort -u "$TRAINYARD_SKIPPED" | wc -l) skipped because a tool is missing"
exit "$result"
