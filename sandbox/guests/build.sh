#!/bin/sh
# Builds the guests and keeps the components with their digests: the tools in ../components, and the guest that only the
# tests run in ../tests/fixtures.
#
#   build.sh [TOOLS FIXTURES]    two other folders to put them in, for a comparison with those that are kept.
#
# The bytes depend on the sources, the lock file and the toolchain, and on nothing else: the places of the checkout, of
# cargo's home and of the toolchain are written as fixed names, and settings of the caller that reach rustc are dropped.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd -P)
absolute() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$(pwd -P)/$1" ;;
    esac
}
tools=$(absolute "${1:-$here/../components}")
fixtures=$(absolute "${2:-$here/../tests/fixtures}")
cd "$here"

target=${CARGO_TARGET_DIR:-$here/target}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
unset RUSTFLAGS CARGO_BUILD_RUSTFLAGS RUSTC_WRAPPER CARGO_BUILD_TARGET CARGO_INCREMENTAL
for setting in $(env | sed -n 's/^\(CARGO_PROFILE_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$setting"
done

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

keep() {
    mkdir -p "$2"
    cp "$target/wasm32-wasip2/release/$1.wasm" "$2/$1.wasm"
    (cd "$2" && sha256sum "$1.wasm" >digests.txt && cat digests.txt)
}
keep files "$tools"
keep hostile "$fixtures"
