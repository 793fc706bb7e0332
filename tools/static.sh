#!/usr/bin/env bash
# Builds a static program for an image that contains nothing else, and checks that it has no dynamic dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(rustc -vV | sed -n 's/^host: //p')
case $target in
*-linux-gnu) ;;
*)
    echo "the static program is built on Linux with glibc, not on $target" >&2
    exit 1
    ;;
esac

# With an explicit target, its flags do not apply to build scripts and macros. Plugins are built with their own flags.
flags=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_RUSTFLAGS
env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS "$flags=-C target-feature=+crt-static" \
    "${CARGO:-cargo}" build --locked --release --target "$target" -p trainyard

mkdir -p dist
install -m 755 "${CARGO_TARGET_DIR:-target}/$target/release/trainyard" dist/trainyard

if LC_ALL=C readelf --wide --program-headers --dynamic dist/trainyard | grep -E 'INTERP|\(NEEDED\)'; then
    echo "dist/trainyard is not static: see the lines above" >&2
    exit 1
fi
# Check that it can compile and call plugins with an empty environment.
env -i dist/trainyard plan >/dev/null
echo "dist/trainyard is static, $(stat -c %s dist/trainyard) bytes"
