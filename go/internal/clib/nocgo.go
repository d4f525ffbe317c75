//go:build !cgo

package clib

var _ int = "drayhorse links a native library: build with CGO_ENABLED=1 and a C compiler"
