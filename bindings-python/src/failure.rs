//! Failures on their way to Python: one exception that carries the error's JSON, from which the package makes the
//! class its users catch. A panic takes the same way, as an error of the kind `internal`.

use drayhorse_core::error::{Error, Kind, Result};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

pyo3::create_exception!(
    drayhorse._native,
    Failure,
    pyo3::exceptions::PyException,
    "A failure of the core; its only argument is the error as JSON."
);

/// Runs `work`; a panic in it becomes an `internal` error instead of PyO3's `PanicException`, which derives from
/// `BaseException` and would end a program that handles every `Exception`.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(from_panic(panic.as_ref())))
}

/// [`guarded`] for a function that Python calls.
pub fn raising<T>(work: impl FnOnce() -> Result<T>) -> PyResult<T> {
    guarded(work).map_err(|error| Failure::new_err(error.to_json()))
}

fn from_panic(panic: &(dyn Any + Send)) -> Error {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message");
    Error::new(Kind::Internal, format!("the core panicked: {said}"))
}
