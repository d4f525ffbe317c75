package drayhorse_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drayhorse/drayhorse/go"
)

// goBuild compiles the module with an environment and arguments of the test's own.
func goBuild(t *testing.T, environment []string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.Command("go", append([]string{"build"}, arguments...)...)
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	return string(output), err
}

func TestWithoutCgoOneLineSaysSo(t *testing.T) {
	output, err := goBuild(t, []string{"CGO_ENABLED=0"}, ".")
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if err == nil || len(lines) != 2 || !strings.Contains(lines[1], "build with CGO_ENABLED=1 and a C compiler") {
		t.Errorf("%v: %s", err, output)
	}
}

// The header beside cgo is a copy: a module has no files outside of its folder.
func TestTheHeaderIsTheLibrarys(t *testing.T) {
	original, err := os.ReadFile("../bindings-c/include/drayhorse.h")
	if os.IsNotExist(err) {
		t.Skip("the module is used outside of its repository")
	}
	copied := must[[]byte](t)(os.ReadFile("internal/clib/drayhorse.h"))
	if err != nil || !bytes.Equal(original, copied) {
		t.Errorf("internal/clib/drayhorse.h is not bindings-c/include/drayhorse.h: %v", err)
	}
}

// copyModule copies what a release has, tests apart.
func copyModule(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, pattern := range []string{"go.mod", "*.go", "internal/clib/*", "internal/clib/*/*"} {
		for _, name := range must[[]string](t)(filepath.Glob(pattern)) {
			info := must[os.FileInfo](t)(os.Stat(name))
			if info.IsDir() || strings.HasSuffix(name, "_test.go") {
				continue
			}
			if err := os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), must[[]byte](t)(os.ReadFile(name)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

func TestAMissingArchiveIsSaid(t *testing.T) {
	folder := copyModule(t)
	headers := must[[]string](t)(filepath.Glob(filepath.Join(folder, "internal/clib/archive_*.h")))
	for _, header := range headers {
		os.Remove(header)
	}
	output, err := goBuild(t, nil, "-C", folder, ".")
	if err == nil || !strings.Contains(output, "the native library of drayhorse is missing") {
		t.Errorf("%v: %s", err, output)
	}
}

// Go's build cache does not look at archives; the header with the archive's sum makes it link again.
func TestANewArchiveIsLinkedAgain(t *testing.T) {
	folder := copyModule(t)
	writeProgram(t, folder)
	headers := must[[]string](t)(filepath.Glob(filepath.Join(folder, "internal/clib/archive_*.h")))
	if len(headers) != 1 {
		t.Fatalf("%v", headers)
	}
	linked := func() bool {
		t.Helper()
		output, err := goBuild(t, nil, "-C", folder, "-v", "-x", "-o", "program/program", "./program")
		if err != nil {
			t.Fatal(output)
		}
		return regexp.MustCompile(`(?m)/link .*-o`).MatchString(output)
	}
	if !linked() {
		t.Fatal("the first build did not link")
	}
	if linked() {
		t.Error("a second build links although nothing changed")
	}
	sum := strings.Repeat("0", 64)
	if err := os.WriteFile(headers[0], []byte("#define DH_ARCHIVE_SHA256 \""+sum+"\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !linked() {
		t.Error("a new archive was not linked")
	}
}

// With the tag the program links an installed library instead.
func TestPkgConfig(t *testing.T) {
	script := "../bindings-c/package.sh"
	if _, err := os.Stat(script); err != nil {
		t.Skip("the module is used outside of its repository")
	}
	archives := must[[]string](t)(filepath.Glob("internal/clib/*/libdrayhorse.a"))
	prefix := t.TempDir()
	if output, err := exec.Command(script, archives[0], prefix).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	environment := []string{"PKG_CONFIG_PATH=" + filepath.Join(prefix, "lib/pkgconfig")}
	folder := copyModule(t)
	for _, archive := range must[[]string](t)(filepath.Glob(filepath.Join(folder, "internal/clib/*/libdrayhorse.a"))) {
		os.Remove(archive)
	}
	writeProgram(t, folder)
	if output, err := goBuild(t, environment, "-C", folder, "-tags", "drayhorse_pkgconfig", "-o", "program/program", "./program"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	output, err := exec.Command(filepath.Join(folder, "program/program")).CombinedOutput()
	if want := must[string](t)(drayhorse.Version()); err != nil || strings.TrimSpace(string(output)) != want {
		t.Errorf("%v: %s, want %s", err, output, want)
	}
}

// writeProgram puts a program into a copy of the module.
func writeProgram(t *testing.T, folder string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(folder, "program"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := `package main

import (
	"fmt"

	"github.com/drayhorse/drayhorse/go"
)

func main() {
	version, err := drayhorse.Version()
	if err != nil {
		panic(err)
	}
	fmt.Println(version)
}
`
	if err := os.WriteFile(filepath.Join(folder, "program/main.go"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
