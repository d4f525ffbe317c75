#!/bin/sh
# Makes the C library as it is shipped: one archive in which only dh_ symbols are global, its header and its
# pkg-config file. Go's archive is the same one (see go/link.sh).
#
#   bindings-c/package.sh ARCHIVE PREFIX
#
# ARCHIVE is what cargo built (target/release/libdrayhorse.a); PREFIX gets lib/, lib/pkgconfig/ and include/.
# A Rust archive holds the standard library and every crate with their symbols global, so two of them in one program
# clash, and most of it is never reached. A partial link keeps what the dh_ functions reach, objcopy hides the rest.
# Section groups must be dissolved: the linker would merge a hidden one with that of another Rust library.
# The sections .llvmbc and .llvmcmd would make ar abort.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 ARCHIVE PREFIX" >&2
    exit 2
fi
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
archive=$1
prefix=$2
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../Cargo.toml" | head -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n 's/^.*\(dh_[a-z_]*\)(.*$/\1/p' "$here/include/drayhorse.h" | sort -u >"$work/symbols"
undefined=$(sed 's/^/--undefined=/' "$work/symbols" | tr '\n' ' ')
# shellcheck disable=SC2086 # one word per symbol is meant
ld -r --gc-sections --force-group-allocation $undefined -o "$work/linked.o" "$archive"
objcopy --keep-global-symbols="$work/symbols" --remove-section=.llvmbc --remove-section=.llvmcmd \
    --strip-debug "$work/linked.o" "$work/drayhorse.o"

nm -g --defined-only "$work/drayhorse.o" | awk 'NF == 3 {print $3}' | sort -u >"$work/defined"
if ! cmp -s "$work/symbols" "$work/defined"; then
    echo "$0: the archive's global symbols are not those of the header:" >&2
    diff "$work/symbols" "$work/defined" >&2 || true
    exit 1
fi

mkdir -p "$prefix/lib/pkgconfig" "$prefix/include"
rm -f "$work/libdrayhorse.a"
ar rcsD "$work/libdrayhorse.a" "$work/drayhorse.o"
cp "$work/libdrayhorse.a" "$prefix/lib/libdrayhorse.a.new"
mv "$prefix/lib/libdrayhorse.a.new" "$prefix/lib/libdrayhorse.a"
cp "$here/include/drayhorse.h" "$prefix/include/drayhorse.h"
sed -e "s|@prefix@|$(CDPATH= cd -- "$prefix" && pwd)|" -e "s|@version@|$version|" -e 's|@private@|-lpthread -lm -ldl|' \
    "$here/drayhorse.pc.in" >"$prefix/lib/pkgconfig/drayhorse.pc"
