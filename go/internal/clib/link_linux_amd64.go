//go:build cgo && !drayhorse_pkgconfig

package clib

/*
#cgo LDFLAGS: ${SRCDIR}/linux_amd64/libdrayhorse.a -lpthread -lm -ldl
#if __has_include("archive_linux_amd64.h")
#include "archive_linux_amd64.h"
#else
#error "the native library of drayhorse is missing: run make, or use a released version of the module"
#endif
*/
import "C"

import _ "github.com/drayhorse/drayhorse/go/internal/clib/linux_amd64"

// ArchiveSHA256 names the static library this program is linked with. Go's build cache does not look at archives:
// that this constant changes with it is what makes Go link again.
const ArchiveSHA256 = C.DH_ARCHIVE_SHA256
