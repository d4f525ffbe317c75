//! The functions of a client: connect, control calls blocking or submitted, close and free.

use crate::buffer::DhBuffer;
use crate::completions::{Completions, Woken, deadline};
use crate::guard;
use crate::slab::{self, Entry};
use drayhorse_core::bridge::Client;
use drayhorse_core::error::{Error, Kind};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What a client's handle names.
pub(crate) struct ClientEntry {
    pub(crate) client: Client,
    completions: Arc<Completions>,
    closed: AtomicBool,
}

impl ClientEntry {
    /// Blocks until the running calls have ended; afterwards the waiter for completions may go.
    fn close(&self) {
        self.client.close();
        self.closed.store(true, Ordering::Release);
        self.completions.close();
    }
}

/// Opens a client: `url` is `postgresql://…` or `embedded:PATH`, `options` a JSON object or empty. Connections open
/// on first use, so a server that is away is not noticed here; a bad URL or option is. May block while a private
/// server starts. Writes the handle to `client`.
///
/// # Safety
/// The inputs point to as many readable bytes as their lengths say; `client` and a non-null `out` are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_client_connect(
    url: *const u8,
    url_len: usize,
    options: *const u8,
    options_len: usize,
    client: *mut u64,
    out: *mut DhBuffer,
) -> i32 {
    let connect = || {
        // SAFETY: pointers and lengths are as this function demands of its caller.
        let (url, options) = unsafe {
            guard::store("client", client, 0)?;
            (guard::text("url", url, url_len)?, guard::text("options", options, options_len)?)
        };
        let options = if options.is_empty() { "{}" } else { options };
        let entry = ClientEntry {
            client: Client::connect(url, options)?,
            completions: Completions::new("{"),
            closed: AtomicBool::new(false),
        };
        let handle = slab::insert(Entry::Client(Arc::new(entry)))?;
        // SAFETY: as above; the place was written to before.
        unsafe { guard::store("client", client, handle)? };
        Ok("{}".to_owned())
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, connect) }
}

/// Runs one control call and blocks until it has ended; the answer is the verb's JSON.
///
/// # Safety
/// The inputs point to as many readable bytes as their lengths say; a non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_client_call(
    client: u64,
    verb: *const u8,
    verb_len: usize,
    args: *const u8,
    args_len: usize,
    out: *mut DhBuffer,
) -> i32 {
    let call = || {
        // SAFETY: pointers and lengths are as this function demands of its caller.
        let (verb, args) = unsafe { (guard::text("verb", verb, verb_len)?, guard::text("args", args, args_len)?) };
        slab::client(client)?.client.call(verb, args)
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, call) }
}

/// Submits one control call and never blocks. `ticket` is a number of the caller's choice that no other call of this
/// client is using; `dh_client_next_completions` delivers it with the result. A status other than 0 means that the
/// call was not submitted and no completion follows.
///
/// # Safety
/// The inputs point to as many readable bytes as their lengths say; a non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_client_submit(
    client: u64,
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
        let entry = slab::client(client)?;
        let done = entry.completions.begin(ticket)?;
        let core_ticket = entry.client.submit(verb, args, done);
        entry.completions.submitted(ticket, core_ticket);
        Ok("{}".to_owned())
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, submit) }
}

/// Takes a submitted call out of the queue: the answer is `true` when it had not been sent to the database, `false`
/// when it runs or has ended. A completion follows in either case.
///
/// # Safety
/// A non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_client_cancel(client: u64, ticket: u64, out: *mut DhBuffer) -> i32 {
    let cancel = || {
        let entry = slab::client(client)?;
        let canceled = entry.completions.core_ticket(ticket).is_some_and(|core| entry.client.cancel(core));
        Ok(canceled.to_string())
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, cancel) }
}

/// Waits up to `wait_ms` for the first of up to `max` completions: a JSON array of `{"ticket","ok"}` and
/// `{"ticket","error"}`, empty when the time is over. After the client was closed and the last completion was
/// delivered, or once it is freed, the status is `closed`. 0 never blocks.
///
/// # Safety
/// A non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_client_next_completions(client: u64, max: u32, wait_ms: u64, out: *mut DhBuffer) -> i32 {
    let next = || {
        if max == 0 {
            return Err(Error::argument("max", "max: must be at least 1"));
        }
        let entry = slab::client(client)?;
        let until = deadline(wait_ms);
        loop {
            let (completions, count) = entry.completions.take(max as usize);
            if count > 0 {
                return Ok(format!("[{completions}]"));
            }
            match entry.completions.wait(until) {
                Woken::Changed => {}
                Woken::TimedOut => return Ok("[]".to_owned()),
                Woken::Closed => return Err(Error::new(Kind::Closed, "the client was closed")),
            }
        }
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, next) }
}

/// Closes the client: blocks until the running calls have ended. The handle stays valid for the completions that are
/// left; every other call is `closed`. Closing twice is fine.
///
/// # Safety
/// A non-null `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_client_close(client: u64, out: *mut DhBuffer) -> i32 {
    let close = || {
        slab::client(client)?.close();
        Ok("{}".to_owned())
    };
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, close) }
}

/// Forgets the handle and never blocks: a client that was not closed is closed in the background. Freeing a handle
/// that is not a client's does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn dh_client_free(client: u64) {
    let free = || {
        if let Some(entry) = slab::remove_client(client) {
            entry.completions.close();
            let closed = entry.closed.load(Ordering::Acquire);
            in_background(closed, entry, ClientEntry::close);
        }
        Ok(String::new())
    };
    // SAFETY: null discards the answer.
    unsafe { guard::answer(std::ptr::null_mut(), free) };
}

/// Runs `close` on a thread of its own unless that was done before. Dropping the last reference may join threads
/// too, so that happens there as well; where no thread can be had, leaking is better than blocking.
pub(crate) fn in_background<E: Send + Sync + 'static>(closed: bool, entry: Arc<E>, close: fn(&E)) {
    if closed {
        return;
    }
    let keep = entry.clone();
    let spawned = thread::Builder::new().name("dh-free".to_owned()).spawn(move || close(&entry));
    match spawned {
        Ok(_detached) => drop(keep),
        Err(_) => mem::forget(keep),
    }
}
