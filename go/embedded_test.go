package drayhorse_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayhorse/drayhorse/go"
)

// The private server starts with the first queue, is shared by the second and ends with the last.
func TestEmbedded(t *testing.T) {
	binaries := os.Getenv("DRAYHORSE_TEST_PG18_BIN")
	if binaries == "" {
		t.Skip("DRAYHORSE_TEST_PG18_BIN is not set")
	}
	ctx := testContext(t)
	folder := filepath.Join(t.TempDir(), "drayhorse")
	url := "embedded:" + folder
	first := must[*drayhorse.Queue](t)(drayhorse.Connect(ctx, url, drayhorse.WithPostgresBin(binaries)))
	if err := first.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	id := enqueue(t, first, "a", map[string]int{"n": 1})
	second := must[*drayhorse.Queue](t)(drayhorse.Connect(ctx, url, drayhorse.WithPostgresBin(binaries)))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if job := get(t, second, id); job.State != drayhorse.Ready {
		t.Errorf("%+v", job)
	}
	data := must[string](t)(filepath.EvalSymlinks(filepath.Join(folder, "data")))
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server ends", func() bool {
		_, err := os.Stat(filepath.Join(data, "postmaster.pid"))
		return os.IsNotExist(err)
	})
	third := must[*drayhorse.Queue](t)(drayhorse.Connect(ctx, url, drayhorse.WithPostgresBin(binaries)))
	if job := get(t, third, id); string(job.Payload) != `{"n": 1}` {
		t.Errorf("%+v", job)
	}
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server ends", func() bool {
		_, err := os.Stat(filepath.Join(data, "postmaster.pid"))
		return os.IsNotExist(err)
	})
	// As root the cluster lies elsewhere; what the library put there is removed with the test.
	if real := filepath.Dir(data); !strings.HasPrefix(data, folder) {
		os.RemoveAll(real)
	}
}

func TestEmbeddedFailureIsSaid(t *testing.T) {
	t.Setenv("DRAYHORSE_POSTGRES_BIN", t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := drayhorse.Connect(testContext(t), "embedded:"+file)
	expectCode(t, err, drayhorse.ErrEmbeddedFailed)
}
