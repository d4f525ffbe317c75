package drayhorse

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
)

// Tx is a transaction or connection of database/sql, or of what embeds one: *sql.Tx, *sql.Conn, *sql.DB.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Row is what a query for one row returns in every driver.
type Row interface {
	Scan(dest ...any) error
}

// Statement is an enqueue for the caller's own connection: run it with one text parameter, read one text column back
// and give that to Decode. The jobs exist when the caller's transaction commits.
type Statement struct {
	SQL    string   `json:"sql"`
	Params []string `json:"params"`
	// IDs are the jobs' ids, unless an idempotency key names an earlier job: Decode tells.
	IDs []string `json:"ids"`
}

// Decode reads the text that the statement returned.
func (s Statement) Decode(text string) ([]Enqueued, error) {
	var enqueued []Enqueued
	if err := decode([]byte(text), &enqueued); err != nil {
		return nil, newError(ErrInvalidArgument, "this is not what the enqueue statement returned").because(err)
	}
	return enqueued, nil
}

// Args are the parameters as a driver wants them.
func (s Statement) Args() []any {
	args := make([]any, len(s.Params))
	for i, param := range s.Params {
		args[i] = param
	}
	return args
}

// EnqueueStatement makes the statement that enqueues jobs on a connection of the caller's. It asks no database.
func (q *Queue) EnqueueStatement(ctx context.Context, jobs ...NewJob) (Statement, error) {
	var statement Statement
	wires, err := wireJobs(jobs)
	if err != nil {
		return statement, err
	}
	return statement, q.call(ctx, "enqueueStatement", wires, &statement)
}

// EnqueueTx enqueues one job in a transaction of database/sql: the job exists if the transaction commits.
func (q *Queue) EnqueueTx(ctx context.Context, tx Tx, jobType string, payload any, options ...EnqueueOptions) (Enqueued, error) {
	return enqueueRow(ctx, q, tx.QueryRowContext, jobType, payload, options)
}

// EnqueuePgx does the same in a transaction of pgx, or of any driver with its QueryRow: pgx.Tx, *pgx.Conn, *pgxpool.Pool.
func EnqueuePgx[R Row](ctx context.Context, queue *Queue, tx interface {
	QueryRow(ctx context.Context, query string, args ...any) R
}, jobType string, payload any, options ...EnqueueOptions) (Enqueued, error) {
	return enqueueRow(ctx, queue, tx.QueryRow, jobType, payload, options)
}

func enqueueRow[R Row](ctx context.Context, q *Queue, query func(context.Context, string, ...any) R,
	jobType string, payload any, options []EnqueueOptions) (Enqueued, error) {
	job, err := newJob(jobType, payload, options)
	if err != nil {
		return Enqueued{}, err
	}
	statement, err := q.EnqueueStatement(ctx, job)
	if err != nil {
		return Enqueued{}, err
	}
	var text string
	if err := query(ctx, statement.SQL, statement.Args()...).Scan(&text); err != nil {
		return Enqueued{}, fromDriver(err)
	}
	enqueued, err := statement.Decode(text)
	if err != nil {
		return Enqueued{}, err
	}
	if len(enqueued) != 1 {
		return Enqueued{}, newError(ErrInternal, "the enqueue statement answered %d jobs for one", len(enqueued))
	}
	return enqueued[0], nil
}

// sqlState is the state of a driver's error; lib/pq and pgx both show it by this method.
func sqlState(err error) (string, bool) {
	var stated interface{ SQLState() string }
	if !errors.As(err, &stated) {
		return "", false
	}
	return stated.SQLState(), true
}

// driverText is a string field of a driver's error. The drivers' types differ and cannot be imported here, but both
// call the fields of PostgreSQL's message Message and Detail.
func driverText(err error, field string) string {
	var stated interface{ SQLState() string }
	if !errors.As(err, &stated) {
		return ""
	}
	v := reflect.Indirect(reflect.ValueOf(stated))
	if v.Kind() != reflect.Struct {
		return ""
	}
	if f := v.FieldByName(field); f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}

// driverDetail is the JSON that the queue's functions put into DETAIL.
func driverDetail(err error) (map[string]any, bool) {
	var details map[string]any
	text := driverText(err, "Detail")
	if text == "" || decode([]byte(text), &details) != nil {
		return nil, false
	}
	delete(details, "code")
	return details, true
}
