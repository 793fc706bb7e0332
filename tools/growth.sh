#!/usr/bin/env bash
# Counts the instructions of rendering and explaining large TrainJobs. Fails if twice the size takes more than 2.5 times as
# many instructions: n log n takes 2.1 to 2.3 times as many, and n squared takes 4 times.
set -euo pipefail
cd "$(dirname "$0")/.."
# A list in an object is limited to 1,024 entries, a plugin can reserve 256 env vars, and some dimensions create two of each.
size=${1:-128}
program=${CARGO_TARGET_DIR:-target}/debug/examples/growth
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT

count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*growth::counted*' "$program" "$1" "$2" 2>"$counts" ||
    { cat "$counts" >&2; exit 1; }
  sed -nE 's/.*Collected : ([0-9]+).*/\1/p' "$counts"
}

failed=0
printf '| %s | %s | %s | ratio |\n|---|---|---|---|\n' "millions of instructions" "$size" "$((2 * size))"
for dimension in $("$program"); do
  one=$(count "$dimension" "$size")
  two=$(count "$dimension" "$((2 * size))")
  printf '| %s | %d | %d | %s |\n' "$dimension" "$((one / 1000000))" "$((two / 1000000))" "$(awk "BEGIN { printf \"%.2f\", $two / $one }")"
  if [ "$((two * 10))" -gt "$((one * 25))" ]; then failed=1; fi
done
exit "$failed"
