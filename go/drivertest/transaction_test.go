// Package drivertest enqueues in transactions of real drivers. It is a module of its own, so that the library's
// module requires none.
package drivertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drayhorse/drayhorse/go"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
)

var schemas atomic.Int64

// setUp is a migrated queue in a schema of the test's own.
func setUp(t *testing.T) (context.Context, *drayhorse.Queue, string) {
	t.Helper()
	url := os.Getenv("DRAYHORSE_TEST_URL")
	if url == "" {
		t.Fatal("set DRAYHORSE_TEST_URL to a PostgreSQL whose schemas a test may create")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	schema := fmt.Sprintf("go_driver_%d_%d", os.Getpid(), schemas.Add(1))
	queue, err := drayhorse.Connect(ctx, url, drayhorse.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := queue.Close(); err != nil {
			t.Error(err)
		}
		connection, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := connection.Exec(ctx, "drop schema "+schema+" cascade"); err != nil {
			t.Error(err)
		}
		connection.Close(ctx)
		cancel()
	})
	if err := queue.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx, queue, url
}

func state(t *testing.T, ctx context.Context, queue *drayhorse.Queue, id string) drayhorse.State {
	t.Helper()
	job, err := queue.Get(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if job == nil {
		return ""
	}
	return job.State
}

func keyed(key string) drayhorse.EnqueueOptions {
	return drayhorse.EnqueueOptions{IdempotencyKey: &drayhorse.IdempotencyKey{Key: key}}
}

// expectConflict checks that the driver's error became the typed one, with its details and the driver's own inside.
func expectConflict(t *testing.T, err error, existing string) {
	t.Helper()
	var typed *drayhorse.Error
	if !errors.Is(err, drayhorse.ErrIdempotencyConflict) || !errors.As(err, &typed) {
		t.Fatalf("%T: %v", err, err)
	}
	var driver interface{ SQLState() string }
	if typed.Details["existingId"] != existing || typed.Message == "" || !errors.As(err, &driver) {
		t.Errorf("%+v", typed)
	}
}

func TestDatabaseSQL(t *testing.T) {
	for _, driver := range []string{"postgres", "pgx"} {
		t.Run(driver, func(t *testing.T) {
			ctx, queue, url := setUp(t)
			db, err := sql.Open(driver, url+"?sslmode=disable")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			ids := map[bool]string{}
			for _, commit := range []bool{true, false} {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				enqueued, err := queue.EnqueueTx(ctx, tx, "charge", map[string]any{"o'brien": `a"b\`}, keyed("k"))
				if err != nil {
					t.Fatal(err)
				}
				if state(t, ctx, queue, enqueued.ID) != "" && commit {
					t.Error("the job exists before its transaction commits")
				}
				ids[commit] = enqueued.ID
				if commit {
					err = tx.Commit()
				} else {
					err = tx.Rollback()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if ids[true] != ids[false] || state(t, ctx, queue, ids[true]) != drayhorse.Ready {
				t.Errorf("%v: %s", ids, state(t, ctx, queue, ids[true]))
			}
			_, err = queue.EnqueueTx(ctx, db, "charge", 2, keyed("k"))
			expectConflict(t, err, ids[true])

			rolled, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			enqueued, err := queue.EnqueueTx(ctx, rolled, "charge", 3)
			if err != nil {
				t.Fatal(err)
			}
			if err := rolled.Rollback(); err != nil {
				t.Fatal(err)
			}
			if got := state(t, ctx, queue, enqueued.ID); got != "" {
				t.Errorf("a job of a transaction that rolled back is %s", got)
			}
			if _, err = queue.EnqueueTx(ctx, rolled, "charge", 4); !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("an ended transaction: %v", err)
			}
		})
	}
}

func TestPgx(t *testing.T) {
	ctx, queue, url := setUp(t)
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(ctx)
	tx, err := connection.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	enqueued, err := drayhorse.EnqueuePgx(ctx, queue, tx, "charge", map[string]any{"n": 1}, keyed("k"))
	if err != nil {
		t.Fatal(err)
	}
	if got := state(t, ctx, queue, enqueued.ID); got != "" {
		t.Errorf("before the commit it is %s", got)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if got := state(t, ctx, queue, enqueued.ID); got != drayhorse.Ready {
		t.Errorf("after the commit it is %q", got)
	}
	_, err = drayhorse.EnqueuePgx(ctx, queue, connection, "charge", 2, keyed("k"))
	expectConflict(t, err, enqueued.ID)

	statement, err := queue.EnqueueStatement(ctx, drayhorse.NewJob{Type: "a"}, drayhorse.NewJob{Type: "b"})
	if err != nil {
		t.Fatal(err)
	}
	var text string
	if err := connection.QueryRow(ctx, statement.SQL, statement.Args()...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	many, err := statement.Decode(text)
	if err != nil || len(many) != 2 || state(t, ctx, queue, many[1].ID) != drayhorse.Ready {
		t.Errorf("%+v, %v", many, err)
	}
}
