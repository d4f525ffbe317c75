//! The functions of a worker: start, events out, reports in, calls of handlers, stop, close and free.

use crate::buffer::DhBuffer;
use crate::client::in_background;
use crate::completions::{Completions, Woken, deadline};
use crate::guard;
use crate::slab::{self, Entry};
use drayhorse_core::bridge::WorkerHandle;
use drayhorse_core::error::{Error, Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a worker's handle names.
pub(crate) struct WorkerEntry {
    worker: WorkerHandle,
    completions: Arc<Completions>,
    closed: AtomicBool,
}

impl WorkerEntry {
    /// Blocks until the worker's threads have ended; afterwards the waiter for events may go.
    fn close(&self) {
        self.worker.close();
        self.closed.store(true, Ordering::Release);
        self.completions.close();
    }
}

/// Starts a worker of `client`; `options` is a JSON object. Claiming begins at once. Writes the handle to `worker`.
///
/// # Safety
/// The inputs point to as many readable bytes as their lengths say; `worker` and a non-null `out` are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_worker_start(
    client: u64,
    options: *const u8,
    options_len: usize,
    worker: *mut u64,
    out: *mut DhBuffer,
) -> i32 {
    let start = || {
        // SAFETY: pointers and lengths are as this function demands of its caller.
        let options = unsafe {
            guard::store("worker", worker, 0)?;
            guard::text("options", options, options_len)?
        };
        let completions = Completions::new(r#"{"event":"completion","#);
        let bell = completions.clone();
        let handle = WorkerHandle::start(&slab::client(client)?.client, options, Box::new(move || bell.ring()))?;
        let entry = WorkerEntry { worker: handle, completions, closed: AtomicBool::new(false) };
        let handle = slab::insert(Entry::Worker(Arc::new(entry)))?;
        // SAFETY: as above; the place was written to before.
        unsafe { guard::store("worker", worker, handle)? };
        Ok("{}".to_owned())
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, start) }
}

/// Waits up to `wait_ms` for the first of up to `max` events: a JSON array, empty when the time is over. Results of
/// `dh_worker_submit` come as `{"event":"completion","ticket","ok"}` or with `"error"`. After the worker was closed
/// and the last event was delivered, or once it is freed, the status is `closed`. 0 never blocks.
///
/// # Safety
/// A non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_worker_take(worker: u64, max: u32, wait_ms: u64, out: *mut DhBuffer) -> i32 {
    let take = || {
        if max == 0 {
            return Err(Error::argument("max", "max: must be at least 1"));
        }
        let entry = slab::worker(worker)?;
        let until = deadline(wait_ms);
        loop {
            let (completions, count) = entry.completions.take(max as usize);
            let events = match max as usize - count {
                0 => "[]".to_owned(),
                room => entry.worker.take(room, 0),
            };
            match (count, events.as_str()) {
                (0, "[]") => {}
                (_, "[]") => return Ok(format!("[{completions}]")),
                (0, _) => return Ok(events),
                (_, events) => return Ok(format!("[{completions},{}", &events[1..])),
            }
            match entry.completions.wait(until) {
                Woken::Changed => {}
                Woken::TimedOut => return Ok("[]".to_owned()),
                Woken::Closed => return Err(Error::new(Kind::Closed, "the worker was closed")),
            }
        }
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, take) }
}

/// Hands over a JSON array of reports; never waits for the database.
///
/// # Safety
/// The input points to as many readable bytes as its length says; a non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_worker_report(
    worker: u64,
    reports: *const u8,
    reports_len: usize,
    out: *mut DhBuffer,
) -> i32 {
    let report = || {
        // SAFETY: pointers and lengths are as this function demands of its caller.
        let reports = unsafe { guard::text("reports", reports, reports_len)? };
        slab::worker(worker)?.worker.report(reports)?;
        Ok("{}".to_owned())
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, report) }
}

/// A call of a running handler (`checkpointGet`, `checkpointPut`, `progress`, `leaseRemaining`); blocks.
///
/// # Safety
/// The inputs point to as many readable bytes as their lengths say; a non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_worker_call(
    worker: u64,
    verb: *const u8,
    verb_len: usize,
    args: *const u8,
    args_len: usize,
    out: *mut DhBuffer,
) -> i32 {
    let call = || {
        // SAFETY: pointers and lengths are as this function demands of its caller.
        let (verb, args) = unsafe { (guard::text("verb", verb, verb_len)?, guard::text("args", args, args_len)?) };
        slab::worker(worker)?.worker.call(verb, args)
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, call) }
}

/// The same without blocking; `dh_worker_take` delivers the result under `ticket`, a number of the caller's choice
/// that no other call of this worker is using. A status other than 0 means that no completion follows.
///
/// # Safety
/// The inputs point to as many readable bytes as their lengths say; a non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_worker_submit(
    worker: u64,
    ticket: u64,
    verb: *const u8,
    verb_len: usize,
    args: *const u8,
    args_len: usize,
    out: *mut DhBuffer,
) -> i32 {
    let submit = || {
        // SAFETY: pointers and lengths are as this function demands of its caller.
        let (verb, args) = unsafe { (guard::text("verb", verb, verb_len)?, guard::text("args", args, args_len)?) };
        let entry = slab::worker(worker)?;
        let done = entry.completions.begin(ticket)?;
        entry.worker.submit(verb, args, done);
        Ok("{}".to_owned())
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, submit) }
}

/// Starts the drain and returns; its end is the event `stopped`.
///
/// # Safety
/// A non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_worker_stop(worker: u64, out: *mut DhBuffer) -> i32 {
    let stop = || {
        slab::worker(worker)?.worker.stop();
        Ok("{}".to_owned())
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, stop) }
}

/// `{"phase","connected","listening","slots","running","stuck"}`.
///
/// # Safety
/// A non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_worker_health(worker: u64, out: *mut DhBuffer) -> i32 {
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, || Ok(slab::worker(worker)?.worker.health())) }
}

/// Ends the worker without grace: releases what still runs and blocks until its threads have ended. Closing twice is
/// fine.
///
/// # Safety
/// A non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_worker_close(worker: u64, out: *mut DhBuffer) -> i32 {
    let close = || {
        slab::worker(worker)?.close();
        Ok("{}".to_owned())
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, close) }
}

/// Forgets the handle and never blocks: a worker that was not closed is closed in the background. Freeing a handle
/// that is not a worker's does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn dh_worker_free(worker: u64) {
    let free = || {
        if let Some(entry) = slab::remove_worker(worker) {
            entry.completions.close();
            let closed = entry.closed.load(Ordering::Acquire);
            in_background(closed, entry, WorkerEntry::close);
        }
        Ok(String::new())
    };
    // SAFETY: null discards the answer.
    unsafe { guard::answer(std::ptr::null_mut(), free) };
}
