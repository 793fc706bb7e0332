#!/usr/bin/env bash
# Changes the code that .cargo/mutants.toml names, one place at a time, and runs the tests of its package, with cargo-mutants, which is
# installed once, outside target/. The arguments are its own, such as `--re host/model/src/plan` for a part of the code, or
# `--sharding round-robin --shard 0/30` for a sample.
set -euo pipefail
cd "$(dirname "$0")/.."
version=27.1.0
tools=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/tools/cargo-mutants-$version
bin=$tools/bin/cargo-mutants
if [ ! -x "$bin" ]; then
    # Optimized, because it parses all code before it begins: without, 23 s of CPU.
    cargo install --quiet --locked --root "$tools" cargo-mutants --version "$version"
fi
# Builds of an earlier run are reused, and cargo's own are not replaced by those of mutants.
export CARGO_TARGET_DIR=$PWD/target/mutants
# Every mutant meets the same generated inputs, and few of them.
export PROPTEST_CASES=${PROPTEST_CASES:-32} PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}
# Nobody debugs a mutant.
export CARGO_PROFILE_DEV_DEBUG=0
# The controller's other tests take longer to build than its own code. Selected with --lib, trainyard-features would be built, too.
result=0
# By file, because cargo-mutants applies no expression to mutants that delete a field of a struct. The tests of their packages would run, too.
"$bin" mutants --output target/mutants/controller --exclude 'host/{api,model,render}/**' --exclude 'plugins/**' --cargo-arg=--lib "$@" || result=$?
"$bin" mutants --output target/mutants/others --exclude 'host/controller/**' \
    --cargo-arg=--tests --cargo-arg=--package=trainyard-features "$@" || result=$?
exit "$result"
