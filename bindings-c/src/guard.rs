//! What every function of the ABI goes through: inputs checked, panics stopped, the answer handed over.

use crate::buffer::DhBuffer;
use drayhorse_core::error::{Error, Kind, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`, writes its answer or its error to `out` and returns the status.
///
/// # Safety
/// `out` is null or points to a writable `DhBuffer`.
pub(crate) unsafe fn answer(out: *mut DhBuffer, body: impl FnOnce() -> Result<String>) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
    let (status, text) = match result {
        Ok(text) => (0, text),
        Err(error) => (error.kind() as i32, error.to_json()),
    };
    if !out.is_null() {
        // SAFETY: the caller promises that a non-null `out` is writable; `write` drops nothing.
        unsafe { out.write(DhBuffer::from_text(text)) };
    }
    status
}

/// The panic as an error.
fn panicked(panic: &(dyn Any + Send)) -> Error {
    let known = panic.downcast_ref::<&str>().copied();
    let what = known.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    Error::new(Kind::Internal, format!("a fault of the library was stopped at its boundary: {what}"))
}

/// The text of an input.
///
/// # Safety
/// A non-null `ptr` points to `len` readable bytes that nobody changes while the result is in use.
pub(crate) unsafe fn text<'a>(field: &str, ptr: *const u8, len: usize) -> Result<&'a str> {
    if len == 0 {
        return Ok("");
    }
    if ptr.is_null() || len > isize::MAX as usize {
        return Err(Error::argument(field, format!("{field}: a null pointer, or a length beyond the address space")));
    }
    // SAFETY: `ptr` is not null, `len` fits, and the caller promises that many readable bytes.
    let bytes = unsafe { std::slice::from_raw_parts(ptr, len) };
    std::str::from_utf8(bytes).map_err(|bad| {
        let offset = bad.valid_up_to();
        Error::argument(field, format!("{field}: byte {offset} is not UTF-8")).with("offset", offset)
    })
}

/// Writes an output value other than the buffer.
///
/// # Safety
/// `place` is null or writable.
pub(crate) unsafe fn store<T>(field: &str, place: *mut T, value: T) -> Result<()> {
    if place.is_null() {
        return Err(Error::argument(field, format!("{field}: a null pointer, but the result goes there")));
    }
    // SAFETY: `place` is not null and the caller promises that it is writable.
    unsafe { place.write(value) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::dh_buffer_free;

    fn status_and_text(body: impl FnOnce() -> Result<String>) -> (i32, String) {
        let mut out = DhBuffer::from_text(String::new());
        // SAFETY: `out` is a valid local, read while its bytes are still owned by it, and freed once.
        unsafe {
            let status = answer(&mut out, body);
            let copy = text("out", out.ptr, out.len).map(str::to_owned);
            dh_buffer_free(&mut out);
            (status, copy.expect("answers are UTF-8"))
        }
    }

    #[test]
    fn a_panic_becomes_internal() {
        let (status, json) = status_and_text(|| panic!("broken {}", 7));
        assert_eq!(status, Kind::Internal as i32);
        assert!(json.contains("broken 7") && json.contains("\"number\":23"), "{json}");
        let (status, _) = status_and_text(|| std::panic::panic_any(5));
        assert_eq!(status, Kind::Internal as i32);
    }

    #[test]
    fn answers_and_errors_carry_their_status() {
        assert_eq!(status_and_text(|| Ok("{}".to_owned())), (0, "{}".to_owned()));
        let (status, json) = status_and_text(|| Err(Error::argument("id", "id: missing")));
        assert_eq!(status, 1);
        assert!(json.contains("\"field\":\"id\""), "{json}");
        // SAFETY: null discards the answer.
        assert_eq!(unsafe { answer(std::ptr::null_mut(), || Ok("{}".to_owned())) }, 0);
    }

    #[test]
    fn inputs_are_checked() {
        // SAFETY: the pointers are null with any length, or slices with their own length.
        unsafe {
            assert_eq!(text("url", std::ptr::null(), 0), Ok(""));
            assert!(text("url", std::ptr::null(), 3).is_err());
            assert!(text("url", b"x".as_ptr(), usize::MAX).is_err());
            let bad = text("url", b"ab\xff".as_ptr(), 3).unwrap_err();
            assert_eq!(bad.details()["offset"], 2);
            assert!(store::<u64>("client", std::ptr::null_mut(), 1).is_err());
        }
    }
}
