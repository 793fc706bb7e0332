#!/usr/bin/env bash
# Checks licenses, sources and bans with cargo-deny, which is installed once, outside target/, so that `cargo clean` keeps it.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
version=0.20.2
tools=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/tools/cargo-deny-$version
bin=$tools/bin/cargo-deny
if [ ! -x "$bin" ]; then
    # Without optimization, it takes 66 s of CPU to build, and 3 s to run.
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 cargo install --quiet --debug --locked --root "$tools" cargo-deny --version "$version"
fi
# Advisories are not checked, because they come from a git repository, and this check must work offline.
# `cargo deny check advisories` checks them.
"$bin" --manifest-path "$root/Cargo.toml" check --hide-inclusion-graph bans licenses sources
