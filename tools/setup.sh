#!/usr/bin/env bash
# Installs a toolchain for WebAssembly guests if it is missing, and checks that Rust is installed.
set -euo pipefail

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 1; fi
}

has_rustup_target() {
    command -v rustc >/dev/null && [ -d "$(rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null)" ]
}

has_debian_guest() {
    [ -x /usr/bin/rustc ] && [ -x /usr/bin/cargo ] && dpkg -s rust-web-src lld >/dev/null 2>&1
}

if ! command -v cargo >/dev/null; then
    echo "Rust is missing: install version 1.95 or newer with rustup" >&2
    exit 1
fi

if has_rustup_target || has_debian_guest; then
    exit 0
fi

echo "installing a WebAssembly target for plugins" >&2
if command -v rustup >/dev/null && rustup target add wasm32-unknown-unknown >&2; then
    exit 0
fi
if command -v apt-get >/dev/null && as_root apt-get update -qq >&2 &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq rustc-web cargo-web rust-web-src lld >&2; then
    exit 0
fi
cat >&2 <<'MESSAGE'
Cannot install the target wasm32-unknown-unknown, which plugins are built for. Install it with one of:
  rustup target add wasm32-unknown-unknown
  apt-get install rustc-web cargo-web rust-web-src lld   (Debian)
MESSAGE
exit 1
