//go:build cgo && drayhorse_pkgconfig

package clib

// #cgo pkg-config: drayhorse
import "C"

// ArchiveSHA256 is unknown for an installed library.
const ArchiveSHA256 = ""
