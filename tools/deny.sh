#!/usr/bin/env bash
# Checks licenses, sources and bans by cargo-deny, which is installed once, outside of target/: `cargo clean` leaves it.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
version=0.20.2
tools=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/tools/cargo-deny-$version
bin=$tools/bin/cargo-deny
if [ ! -x "$bin" ]; then
    cargo install --quiet --locked --root "$tools" cargo-deny --version "$version"
fi
# Advisories are not asked for: they come from a git repository, and what lands has to be checked without it.
# `cargo deny check advisories` asks for them.
"$bin" --manifest-path "$root/Cargo.toml" check --hide-inclusion-graph bans licenses sources
