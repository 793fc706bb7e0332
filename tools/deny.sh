#!/usr/bin/env bash
# Checks licenses, sources and bans with cargo-deny, which is installed once, outside target/, so that `cargo clean` keeps it. With the argument
# `advisories`, checks the dependencies against RustSec's database instead, which needs a network; without one, it says so.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
version=0.20.2
tools=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/tools/cargo-deny-$version
bin=$tools/bin/cargo-deny
if [ ! -x "$bin" ]; then
    # Without optimization, it takes 66 s of CPU to build, and 3 s to run.
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 cargo install --quiet --debug --locked --root "$tools" cargo-deny --version "$version"
fi
deny() { "$bin" --manifest-path "$root/Cargo.toml" "$@"; }
if [ "${1:-}" != advisories ]; then
    deny check --hide-inclusion-graph bans licenses sources
elif deny fetch db; then
    deny check --hide-inclusion-graph advisories
else
    echo "skipped: the database of advisories cannot be fetched, so no dependency was checked; run \`make audit\` where it can be" >&2
fi
