#!/bin/sh
# Builds the guests and keeps the components, with their digests, in ../components.
#
#   build.sh [OUTPUT]    OUTPUT: another folder for the components, for a comparison with those that are kept.
#
# The bytes depend on the sources, the lock file and the toolchain, and on nothing else: the places of the checkout, of
# cargo's home and of the toolchain are written as fixed names, and settings of the caller that reach rustc are dropped.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd -P)
output=${1:-$here/../components}
case $output in
/*) ;;
*) output=$(pwd -P)/$output ;;
esac
cd "$here"

target=${CARGO_TARGET_DIR:-$here/target}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
unset RUSTFLAGS CARGO_BUILD_RUSTFLAGS RUSTC_WRAPPER CARGO_BUILD_TARGET CARGO_INCREMENTAL

# Flags are separated by the unit separator, so that a place may hold spaces.
sep=$(printf '\037')
flags="-Ctarget-feature=+simd128"
flags="$flags$sep--remap-path-prefix=$here=/guests"
flags="$flags$sep--remap-path-prefix=$sysroot=/rust"
flags="$flags$sep--remap-path-prefix=$cargo_home=/cargo"
for registry in "$cargo_home"/registry/src/*; do
    flags="$flags$sep--remap-path-prefix=$registry=/crates"
done

CARGO_ENCODED_RUSTFLAGS=$flags CARGO_TARGET_DIR=$target \
    cargo build --release --locked --quiet --target wasm32-wasip2

mkdir -p "$output"
cp "$target/wasm32-wasip2/release/files.wasm" "$output/files.wasm"
(cd "$output" && sha256sum files.wasm >digests.txt && cat digests.txt)
