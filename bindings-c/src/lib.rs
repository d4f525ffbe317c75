//! The C ABI of Drayhorse: `drayhorse_core::bridge` behind twenty functions with the prefix `dh_`.
//!
//! Rules that hold for each of them:
//! - **Inputs** are `(pointer, length)` of UTF-8, never NUL-terminated, and only read during the call.
//! - **Outputs** are one [`DhBuffer`], freed with [`dh_buffer_free`]: the answer as JSON when the status is 0,
//!   else the error `{"code","number","message","retryable","details"}`. A null `out` discards it.
//! - **Status** is an `int32_t`: 0, or the error's number in the one table ([`dh_error_table`]).
//! - **Handles** are numbers with a generation: a call with a freed one is `closed`, never a crash.
//! - **Threads**: every function may be called from any thread, several at a time with one handle.
//! - **Nothing unwinds** into the caller: a panic is the status `internal`. No signal handler is installed.
//!
//! The Go SDK and C programs call it; `include/drayhorse.h` is generated from this crate and compared in a test.

mod buffer;
mod client;
mod completions;
mod guard;
mod slab;
mod worker;

pub use buffer::{DhBuffer, dh_buffer_free};
pub use client::{
    dh_client_call, dh_client_cancel, dh_client_close, dh_client_connect, dh_client_free, dh_client_next_completions,
    dh_client_submit,
};
pub use worker::{
    dh_worker_call, dh_worker_close, dh_worker_free, dh_worker_health, dh_worker_report, dh_worker_start,
    dh_worker_stop, dh_worker_submit, dh_worker_take,
};

use drayhorse_core::error::Error;

/// The version of this ABI: it changes when a function, a structure or a rule changes incompatibly.
pub const DH_ABI_VERSION: u32 = 1;

/// The ABI version of the linked library; a program compares it with `DH_ABI_VERSION` of its header.
#[unsafe(no_mangle)]
pub extern "C" fn dh_abi_version() -> u32 {
    DH_ABI_VERSION
}

/// The library's version, `"0.1.0"` with its quotes.
///
/// # Safety
/// `out` is null or points to a writable `DhBuffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_version(out: *mut DhBuffer) -> i32 {
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, || Ok(concat!("\"", env!("CARGO_PKG_VERSION"), "\"").to_owned())) }
}

/// Every status with its name: `[{"number","code","retryable","cause"}]`.
///
/// # Safety
/// `out` is null or points to a writable `DhBuffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_error_table(out: *mut DhBuffer) -> i32 {
    // SAFETY: `out` is as this function demands of its caller.
    unsafe { guard::answer(out, || Ok(Error::table_json())) }
}
