//go:build cgo

// Package clib calls the C library. It is the only package with cgo and unsafe: bytes in, status and bytes out.
// Package drayhorse owns what the bytes mean.
package clib

/*
#cgo noescape dh_version
#cgo nocallback dh_version
#cgo noescape dh_error_table
#cgo nocallback dh_error_table
#cgo noescape dh_buffer_free
#cgo nocallback dh_buffer_free
#cgo noescape dh_client_connect
#cgo nocallback dh_client_connect
#cgo noescape dh_client_call
#cgo nocallback dh_client_call
#cgo noescape dh_client_submit
#cgo nocallback dh_client_submit
#cgo noescape dh_client_cancel
#cgo nocallback dh_client_cancel
#cgo noescape dh_client_next_completions
#cgo nocallback dh_client_next_completions
#cgo noescape dh_client_close
#cgo nocallback dh_client_close
#cgo noescape dh_worker_start
#cgo nocallback dh_worker_start
#cgo noescape dh_worker_take
#cgo nocallback dh_worker_take
#cgo noescape dh_worker_report
#cgo nocallback dh_worker_report
#cgo noescape dh_worker_call
#cgo nocallback dh_worker_call
#cgo noescape dh_worker_submit
#cgo nocallback dh_worker_submit
#cgo noescape dh_worker_stop
#cgo nocallback dh_worker_stop
#cgo noescape dh_worker_health
#cgo nocallback dh_worker_health
#cgo noescape dh_worker_close
#cgo nocallback dh_worker_close
#include "drayhorse.h"
*/
import "C"

import (
	"bytes"
	"unsafe"
)

// ABIVersion is the version of the header this package was compiled with.
const ABIVersion = C.DH_ABI_VERSION

// LinkedABIVersion is the version of the library the program is linked with.
func LinkedABIVersion() uint32 {
	return uint32(C.dh_abi_version())
}

// Version is the library's version as a JSON string.
func Version() (int32, []byte) {
	var out C.struct_DhBuffer
	status := C.dh_version(&out)
	return answer(status, &out)
}

// ErrorTable lists every error: number, code, retryable, cause.
func ErrorTable() (int32, []byte) {
	var out C.struct_DhBuffer
	status := C.dh_error_table(&out)
	return answer(status, &out)
}

// answer copies what the library wrote and frees it.
func answer(status C.int32_t, out *C.struct_DhBuffer) (int32, []byte) {
	text := bytes.Clone(unsafe.Slice((*byte)(out.ptr), int(out.len)))
	C.dh_buffer_free(out)
	return int32(status), text
}

func text(s string) (*C.uint8_t, C.size_t) {
	return (*C.uint8_t)(unsafe.StringData(s)), C.size_t(len(s))
}

func data(b []byte) (*C.uint8_t, C.size_t) {
	return (*C.uint8_t)(unsafe.SliceData(b)), C.size_t(len(b))
}

// Client is the handle of a client.
type Client uint64

// Connect opens a client.
func Connect(url string, options []byte) (Client, int32, []byte) {
	var out C.struct_DhBuffer
	var client C.uint64_t
	u, ulen := text(url)
	o, olen := data(options)
	status, said := answer(C.dh_client_connect(u, ulen, o, olen, &client, &out), &out)
	return Client(client), status, said
}

// Submit sends a control call; NextCompletions delivers its result under the ticket.
func (c Client) Submit(ticket uint64, verb string, args []byte) (int32, []byte) {
	var out C.struct_DhBuffer
	v, vlen := text(verb)
	a, alen := data(args)
	return answer(C.dh_client_submit(C.uint64_t(c), C.uint64_t(ticket), v, vlen, a, alen, &out), &out)
}

// Call runs a control call and blocks.
func (c Client) Call(verb string, args []byte) (int32, []byte) {
	var out C.struct_DhBuffer
	v, vlen := text(verb)
	a, alen := data(args)
	return answer(C.dh_client_call(C.uint64_t(c), v, vlen, a, alen, &out), &out)
}

// Cancel takes a submitted call out of the queue; the answer is true or false.
func (c Client) Cancel(ticket uint64) (int32, []byte) {
	var out C.struct_DhBuffer
	return answer(C.dh_client_cancel(C.uint64_t(c), C.uint64_t(ticket), &out), &out)
}

// NextCompletions blocks for up to waitMs until calls have ended.
func (c Client) NextCompletions(limit uint32, waitMs uint64) (int32, []byte) {
	var out C.struct_DhBuffer
	return answer(C.dh_client_next_completions(C.uint64_t(c), C.uint32_t(limit), C.uint64_t(waitMs), &out), &out)
}

// Close blocks until the running calls have ended.
func (c Client) Close() (int32, []byte) {
	var out C.struct_DhBuffer
	return answer(C.dh_client_close(C.uint64_t(c), &out), &out)
}

// Free forgets the handle and never blocks.
func (c Client) Free() {
	C.dh_client_free(C.uint64_t(c))
}

// Worker is the handle of a worker.
type Worker uint64

// StartWorker starts a worker of the client.
func (c Client) StartWorker(options []byte) (Worker, int32, []byte) {
	var out C.struct_DhBuffer
	var worker C.uint64_t
	o, olen := data(options)
	status, said := answer(C.dh_worker_start(C.uint64_t(c), o, olen, &worker, &out), &out)
	return Worker(worker), status, said
}

// Take blocks for up to waitMs until there are events or completions.
func (w Worker) Take(limit uint32, waitMs uint64) (int32, []byte) {
	var out C.struct_DhBuffer
	return answer(C.dh_worker_take(C.uint64_t(w), C.uint32_t(limit), C.uint64_t(waitMs), &out), &out)
}

// Report hands over a JSON array of reports.
func (w Worker) Report(reports []byte) (int32, []byte) {
	var out C.struct_DhBuffer
	r, rlen := data(reports)
	return answer(C.dh_worker_report(C.uint64_t(w), r, rlen, &out), &out)
}

// Call runs a handler's call and blocks.
func (w Worker) Call(verb string, args []byte) (int32, []byte) {
	var out C.struct_DhBuffer
	v, vlen := text(verb)
	a, alen := data(args)
	return answer(C.dh_worker_call(C.uint64_t(w), v, vlen, a, alen, &out), &out)
}

// Submit sends a handler's call; Take delivers its result under the ticket.
func (w Worker) Submit(ticket uint64, verb string, args []byte) (int32, []byte) {
	var out C.struct_DhBuffer
	v, vlen := text(verb)
	a, alen := data(args)
	return answer(C.dh_worker_submit(C.uint64_t(w), C.uint64_t(ticket), v, vlen, a, alen, &out), &out)
}

// Stop starts the drain.
func (w Worker) Stop() (int32, []byte) {
	var out C.struct_DhBuffer
	return answer(C.dh_worker_stop(C.uint64_t(w), &out), &out)
}

// Health tells how the worker is.
func (w Worker) Health() (int32, []byte) {
	var out C.struct_DhBuffer
	return answer(C.dh_worker_health(C.uint64_t(w), &out), &out)
}

// Close ends the worker without grace and blocks until its threads have ended.
func (w Worker) Close() (int32, []byte) {
	var out C.struct_DhBuffer
	return answer(C.dh_worker_close(C.uint64_t(w), &out), &out)
}

// Free forgets the handle and never blocks.
func (w Worker) Free() {
	C.dh_worker_free(C.uint64_t(w))
}
