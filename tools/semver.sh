#!/usr/bin/env bash
# Compares the SDK's public API with that of the last frozen contract, with cargo-semver-checks, which is installed once, outside target/.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
version=0.51.0
# The revision in which contract 1.0.0 is frozen. It moves until the release, with changes that the changelog names.
baseline=c8c22cf14019e06ad9b5527d7dd2acc5ae2fd189
tools=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/tools/cargo-semver-checks-$version
bin=$tools/bin/cargo-semver-checks
if [ ! -x "$bin" ]; then
    # Its own profile optimizes its dependencies, which takes most of the time.
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 cargo install --quiet --debug --locked --root "$tools" \
        --config 'profile.dev.package."*".opt-level=0' cargo-semver-checks --version "$version"
fi
"$bin" semver-checks check-release --manifest-path "$root/plugins/sdk/Cargo.toml" --baseline-rev "$baseline" --release-type minor
