#!/usr/bin/env bash
# Builds the program with the C library inside, for an image that holds nothing else, and checks that it needs nothing else.
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

# A target that is named keeps its flags from build scripts and macros. Plugins never see them: they are built with flags of
# their own.
flags=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_RUSTFLAGS
env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS "$flags=-C target-feature=+crt-static" \
    "${CARGO:-cargo}" build --locked --release --target "$target" -p trainyard

mkdir -p dist
install -m 755 "${CARGO_TARGET_DIR:-target}/$target/release/trainyard" dist/trainyard

if LC_ALL=C readelf --wide --program-headers --dynamic dist/trainyard | grep -E 'INTERP|\(NEEDED\)'; then
    echo "dist/trainyard is not static: it needs what the lines above name" >&2
    exit 1
fi
# It loads and calls what it compiled itself, with nothing in its environment.
env -i dist/trainyard plan >/dev/null
echo "dist/trainyard is static, $(stat -c %s dist/trainyard) bytes"
