#!/usr/bin/env bash
# Runs the fuzzers of tests/fuzz: all of them, or TARGET, for SECONDS_PER_TARGET each. New inputs are kept in target/fuzz, and with
# MERGE=1, those that reach more code than the checked-in ones are added to tests/fuzz/corpus. With FUZZ_REFERENCE=1, merge and schemas also
# compare with the code of Kubernetes, which needs Go.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${SECONDS_PER_TARGET:-60}
if ! command -v "${CXX:-c++}" >/dev/null; then
    echo "fuzz needs a C++ compiler for the runtime of libFuzzer: install one, such as g++" >&2
    exit 1
fi
targets=${TARGET:-$(cd tests/fuzz/targets && printf '%s\n' *.rs | sed 's/\.rs$//')}
bins=()
for target in $targets; do bins+=(--bin "fuzz-$target"); done
RUSTC_WORKSPACE_WRAPPER=$PWD/tools/fuzz/rustc.sh ${CARGO:-cargo} build --locked -p trainyard-features -p trainyard-fuzz \
    --features trainyard-fuzz/libfuzzer "${bins[@]}"
if [[ -n ${FUZZ_REFERENCE:-} ]]; then
    export FUZZ_REFERENCE=$PWD/target/fuzz/reference
    go build -C tests/reference/merge -mod=readonly -o "$FUZZ_REFERENCE/merge" .
    go build -C host/structural/tests/oracle -mod=readonly -o "$FUZZ_REFERENCE/structural" .
fi
failed=0
crashes=$PWD/target/fuzz/crashes
mkdir -p "$crashes"
for target in $targets; do
    # The longest input. For those that are checked in: the most files, and the most bytes of each.
    longest=4096 most_files=80 most_bytes=1024
    [[ $target != components ]] || longest=16384 most_files=12 most_bytes=8192
    program=target/debug/fuzz-$target
    found=target/fuzz/corpus/$target
    kept=tests/fuzz/corpus/$target
    log=target/fuzz/$target.log
    mkdir -p "$found" "$kept"
    if [[ -n ${MERGE:-} ]]; then
        merged=$(mktemp -d)
        # A fuzzer that still runs replaces files.
        cp -r "$found" "$merged/found"
        mkdir "$merged/best"
        "$program" -set_cover_merge=1 -max_len="$most_bytes" "$merged/best" "$kept" "$merged/found" >"$log" 2>&1
        # Those that were kept stay. The others are added as long as there are few.
        for input in "$merged"/best/*; do
            count=$(find "$kept" -type f | wc -l)
            [[ $count -lt $most_files ]] || break
            [[ $(stat -c %s "$input") -gt $most_bytes ]] || cp -n "$input" "$kept"
        done
        rm -rf "$merged"
        echo "$target: $(find "$kept" -type f | wc -l) inputs, $(du -sb "$kept" | cut -f1) bytes"
        continue
    fi
    outcome=ok
    # A panic prints its message and ends the fuzzer, which writes the input.
    "$program" -max_total_time="$seconds" -max_len="$longest" -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 \
        -artifact_prefix="$crashes/$target-" "$found" "$kept" >"$log" 2>&1 || outcome=failed
    runs=$(awk '/stat::number_of_executed_units/ { print $2 }' "$log")
    rate=$(awk '/stat::average_exec_per_sec/ { print $2 }' "$log")
    # There is none if an input of the corpus fails.
    covered=$(grep -o 'cov: [0-9]*' "$log" | tail -1 || true)
    printf '%-12s %12s executions, %6s a second, %s, %s inputs: %s\n' "$target" "${runs:-?}" "${rate:-?}" "${covered:-cov: ?}" \
        "$(find "$found" -type f | wc -l)" "$outcome"
    if [[ $outcome == failed ]]; then
        failed=1
        grep -m1 -A4 "panicked at\|ERROR: libFuzzer" "$log" | sed 's/^/    /' || tail -5 "$log" | sed 's/^/    /'
        input=$(grep -o "Test unit written to .*" "$log" | tail -1 | sed 's/Test unit written to //' || true)
        echo "    again: $program $input"
        echo "    keep it: cp $input $kept/"
    fi
done
exit $failed
