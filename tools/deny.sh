#!/usr/bin/env bash
# Checks licences, sources and bans by cargo-deny; installs it once where it is missing.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
version=0.20.2
bin=$root/target/tools/bin/cargo-deny
if [ ! -x "$bin" ]; then
    cargo install --quiet --locked --root "$root/target/tools" cargo-deny --version "$version"
fi
# Advisories are not asked for: they come from a git repository, and what lands has to be checked without it.
# `cargo deny check advisories` asks for them.
"$bin" --manifest-path "$root/Cargo.toml" check --hide-inclusion-graph bans licenses sources
