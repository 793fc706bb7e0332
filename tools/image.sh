#!/usr/bin/env bash
# Builds the image for amd64 and arm64 in dist/image, without a container engine: an OCI layout with static programs and their compiled
# plugins. Beside it, dist has the programs with their software bills of materials. The same sources give the same bytes in each directory.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
cyclonedx=0.5.9

# Zig's C compiler, linker and musl are the same on each machine, unlike what is installed there.
tools=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/tools
requirements=$PWD/tools/image-requirements.txt
compilers=$tools/zigbuild-$(sha256sum "$requirements" | cut -c1-16)
if [ ! -x "$compilers/bin/cargo-zigbuild" ]; then
    echo "installing Zig and cargo-zigbuild into $compilers" >&2
    python3 -m venv "$compilers"
    "$compilers/bin/pip" install --quiet --require-hashes --only-binary=:all: --requirement "$requirements"
fi
bills=$tools/cargo-cyclonedx-$cyclonedx
if [ ! -x "$bills/bin/cargo-cyclonedx" ]; then
    echo "installing cargo-cyclonedx into $bills" >&2
    CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 "$cargo" install --quiet --debug --locked --root "$bills" \
        --config 'profile.dev.package."*".opt-level=0' cargo-cyclonedx --version $cyclonedx
fi
export PATH=$compilers/bin:$bills/bin:$PATH

declare -A machines=([amd64]=x86_64 [arm64]=aarch64)
for machine in "${machines[@]}"; do
    if [ "$machine" != "$(uname -m)" ] && ! command -v "qemu-$machine" >/dev/null; then
        echo "qemu-$machine is missing, which compiles the plugins for that machine: install qemu-user" >&2
        exit 1
    fi
done
scratch=$(mktemp -d)
bill=trainyard-bill-of-materials
# cargo-cyclonedx writes a file beside each Cargo.toml.
remove_bills() { git ls-files -z '*Cargo.toml' | xargs -0 dirname -z | xargs -0 -I{} rm -f "{}/$bill.json"; }
trap 'rm -rf "$scratch"; remove_bills' EXIT

# Runs a program of a machine without any variables but those given, emulated if it is another machine.
run_on() {
    local machine=$1 variables=()
    shift
    while [[ $1 == *=* ]]; do variables+=("$1") && shift; done
    if [ "$machine" = "$(uname -m)" ]; then
        env -i "${variables[@]}" "$@"
    else
        env -i "${variables[@]}" "$(command -v "qemu-$machine")" "$@"
    fi
}

build_program() {
    local target=${machines[$1]}-unknown-linux-musl
    if [ ! -d "$(rustc --print target-libdir --target "$target")" ]; then
        rustup target add "$target"
    fi
    # Messages of panics contain paths. With an explicit target, these flags do not apply to build scripts and macros. Plugins are built with
    # their own flags. Without `-pie`, the program would be at a fixed address.
    local home=${CARGO_HOME:-$HOME/.cargo} flags
    flags=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_RUSTFLAGS
    env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS \
        "$flags=--remap-path-prefix=$home=/cargo --remap-path-prefix=$PWD=/trainyard -C link-arg=-pie" \
        CFLAGS="-ffile-prefix-map=$home=/cargo" CARGO_PROFILE_RELEASE_STRIP=symbols \
        "$cargo" zigbuild --locked --release --target "$target" -p trainyard
    install -m 755 "${CARGO_TARGET_DIR:-target}/$target/release/trainyard" "dist/trainyard-linux-$1"
    local headers
    headers=$(LC_ALL=C readelf --wide --file-header --program-headers --dynamic "dist/trainyard-linux-$1")
    if ! grep -q 'Type: *DYN' <<<"$headers" || grep -E 'INTERP|\(NEEDED\)' <<<"$headers"; then
        echo "dist/trainyard-linux-$1 is not static and position-independent" >&2
        exit 1
    fi
}

# Writes the crates of which a package's program consists on a target.
write_bill() {
    SOURCE_DATE_EPOCH=0 "$cargo" cyclonedx --quiet --manifest-path "$1/Cargo.toml" --format json --spec-version 1.5 --target "$2" \
        --override-filename $bill
    sed "s|$PWD|.|g" "$1/$bill.json" >"dist/$3.cdx.json"
}

write_root() {
    local root=$scratch/$1
    mkdir "$root"
    install -m 755 "dist/trainyard-linux-$1" "$root/trainyard"
    run_on "${machines[$1]}" TRAINYARD_CACHE_DIR="$scratch/cache" "$root/trainyard" plugin compile --output "$root/compiled"
}

# Renders a TrainJob with the files of the image, and checks that nothing was compiled for it.
render() {
    local root=$scratch/$1 cache=$scratch/unused-$1
    run_on "${machines[$1]}" TRAINYARD_COMPILED_DIR="$root/compiled" TRAINYARD_CACHE_DIR="$cache" \
        "$root/trainyard" render -f examples/torch-llama >"$scratch/$1.yaml"
    if [ -n "$(find "$cache" -name '*.cwasm')" ]; then
        echo "the program for $1 compiled plugins although they are in the image" >&2
        exit 1
    fi
}

rm -rf dist
mkdir dist
for architecture in amd64 arm64; do
    build_program $architecture
    write_bill host "${machines[$architecture]}-unknown-linux-musl" trainyard-linux-$architecture
    write_root $architecture
    render $architecture
done
# The program contains the built-in plugins, which are built apart.
write_bill tests/policies wasm32-unknown-unknown trainyard-plugins
cmp "$scratch/amd64.yaml" "$scratch/arm64.yaml"
"$cargo" run --quiet --locked -p trainyard-release -- image --output dist/image amd64="$scratch/amd64" arm64="$scratch/arm64" >dist/digest
echo "dist/image is the image $(cat dist/digest); deploy/README.md says how to push it"
