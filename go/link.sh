#!/bin/sh
# Puts a built archive where cgo links it, with the header that tells Go's build cache that it changed.
#
#   go/link.sh [ARCHIVE]      (default: target/debug/libdrayhorse.a)
#
# A release links what bindings-c/package.sh makes; development links what cargo built, unchanged.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
archive=${1:-$here/../target/debug/libdrayhorse.a}
platform=$(go env GOOS)_$(go env GOARCH)
clib=$here/internal/clib
if [ ! -d "$clib/$platform" ]; then
    echo "$0: no folder for $platform in $clib" >&2
    exit 1
fi
sum=$(sha256sum "$archive" | cut -d ' ' -f 1)
header="#define DH_ARCHIVE_SHA256 \"$sum\""
if [ "$(cat "$clib/archive_$platform.h" 2>/dev/null || true)" = "$header" ] && [ -f "$clib/$platform/libdrayhorse.a" ]; then
    exit 0
fi
# The archive first: a build that sees the new sum must not link the old archive.
cp "$archive" "$clib/$platform/libdrayhorse.a.new"
mv "$clib/$platform/libdrayhorse.a.new" "$clib/$platform/libdrayhorse.a"
printf '%s\n' "$header" >"$clib/archive_$platform.h"
