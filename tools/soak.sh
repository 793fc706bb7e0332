#!/usr/bin/env bash
# Lets a crowd of TrainJobs come and go for SOAK_MINUTES, with faults, and draws docs/soak.png. Installs matplotlib in the user's cache.
set -euo pipefail
cd "$(dirname "$0")/.."

matplotlib=3.11.2
python=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/tools/matplotlib-$matplotlib
if [ ! -e "$python/installed" ]; then
    echo "installing matplotlib into $python" >&2
    python3 -m venv "$python"
    "$python/bin/pip" install --quiet "matplotlib==$matplotlib"
    touch "$python/installed"
fi
export SOAK_MINUTES=${SOAK_MINUTES:-120}
passed=0
"${CARGO:-cargo}" test --locked --workspace --test cluster -- outages controllers_do_not_grow:: --nocapture || passed=$?
# A run that failed is worth looking at, too.
"$python/bin/python" tools/plot-soak.py
exit "$passed"
