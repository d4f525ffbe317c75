//! The native half of the npm package `drayhorse`: `drayhorse_core::bridge` as N-API classes, and nothing more.
//!
//! The TypeScript facade beside it owns everything a user sees. Text crosses as JSON. No export waits for the
//! database: a call gets a ticket, its end lands in a [`mailbox`], and a doorbell tells JavaScript to look there.
//! Every export runs inside [`boundary::guard`], because a panic that reaches Node ends the process.

mod boundary;
mod client;
mod mailbox;
mod worker;

use drayhorse_core::error::Error;
use drayhorse_core::http;
use napi_derive::napi;

/// The version of this binary; the loader compares it with the package's own.
#[napi]
pub fn version() -> napi::Result<String> {
    boundary::guard(|| Ok(env!("CARGO_PKG_VERSION").to_owned()))
}

/// `[{"number","code","retryable","cause"}]`, without a connection.
#[napi]
pub fn error_table() -> napi::Result<String> {
    boundary::guard(|| Ok(Error::table_json()))
}

/// `{"response","options"}` to `{"retryable","uncertain","retryAfterMs"?,"reason"}`, without a connection.
#[napi]
pub fn http_decision(args_json: String) -> napi::Result<String> {
    boundary::guard(|| http::decide(&args_json))
}
