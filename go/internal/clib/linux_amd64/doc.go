// Package linux_amd64 is the folder of the static library for this platform. It is a package, imported for nothing
// else, so that `go mod vendor` copies the folder.
package linux_amd64
