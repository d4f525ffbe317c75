//! Ended calls that wait for JavaScript, and the doorbell that tells it so. Each handle owns one mailbox: core
//! threads put results in and ring, the event loop takes them out in one batch.

use drayhorse_core::error::Result;
use napi::Status;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode, UnknownReturnValue};
use napi_derive::napi;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A JavaScript function to call on its own thread. Weak: it never keeps the process alive, so a script that
/// forgets `close()` still ends; the facade holds a timer while there is something to wait for.
pub type Bell = ThreadsafeFunction<(), UnknownReturnValue, (), Status, false, true>;

/// The end of one submitted call.
#[napi(object)]
pub struct Completion {
    /// The number the facade gave the call.
    pub ticket: u32,
    /// Whether `text` is an error.
    pub failed: bool,
    /// The result as JSON, or `{"code","number","message","retryable","details"}`.
    pub text: String,
}

/// What has ended and was not taken yet.
pub struct Mailbox {
    bell: Bell,
    /// Set from the first ring until JavaScript looks: a thousand results in one moment are one wake-up.
    rung: AtomicBool,
    ended: Mutex<Vec<Completion>>,
}

impl Mailbox {
    pub fn new(bell: Bell) -> Mailbox {
        Mailbox { bell, rung: AtomicBool::new(false), ended: Mutex::new(Vec::new()) }
    }

    /// Puts the end of call `ticket` in and rings.
    pub fn put(&self, ticket: u32, result: Result<String>) {
        let completion = match result {
            Ok(text) => Completion { ticket, failed: false, text },
            Err(error) => Completion { ticket, failed: true, text: error.to_json() },
        };
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(completion);
        self.ring();
    }

    /// Wakes JavaScript. Any status but `Ok` means that its environment ends: nobody is left to wake.
    pub fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// JavaScript looks: whatever is put in from now on rings again.
    pub fn answer(&self) {
        self.rung.store(false, Ordering::Release);
    }

    /// Everything that has ended so far.
    pub fn take(&self) -> Vec<Completion> {
        std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
