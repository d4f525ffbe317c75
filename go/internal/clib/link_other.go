//go:build cgo && !drayhorse_pkgconfig && !(linux && amd64)

package clib

// #error "drayhorse has no static library for this platform: install the C library and build with -tags drayhorse_pkgconfig"
import "C"

// ArchiveSHA256 is never reached: the line above ends the build.
const ArchiveSHA256 = ""
