#!/usr/bin/env bash
# Stands in for rustc when cargo builds the crates of the workspace for `make fuzz`, and instruments those that are fuzzed. What they depend
# on is built as for tests and with the same files, so that wasmtime is neither built again nor searched by the fuzzers.
set -euo pipefail
rustc=$1
shift
fuzzed=" text api bundle structural schema config model oci sandbox controller fuzz "
name=""
for argument in "$@"; do
    if [[ $name == next ]]; then
        name=$argument
        break
    fi
    [[ $argument != --crate-name ]] || name=next
done
# Programs that run while cargo builds have no fuzzer to link with, and are none of these.
if [[ $fuzzed != *" ${name#trainyard_} "* && $name != fuzz_* ]]; then
    exec "$rustc" "$@"
fi
exec "$rustc" "$@" --cfg fuzzing -C opt-level=2 -C debug-assertions=on -C overflow-checks=on \
    -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table -C llvm-args=-sanitizer-coverage-trace-compares
