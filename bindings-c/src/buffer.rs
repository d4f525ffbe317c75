//! The one output of the ABI: bytes owned by the library until `dh_buffer_free` takes them back.

use std::mem::ManuallyDrop;
use std::ptr;

/// Text that the library made: `len` bytes of UTF-8 at `ptr`, not NUL-terminated.
///
/// Set to zero before its first use; free it with `dh_buffer_free` before it is used for another call.
#[repr(C)]
#[derive(Debug)]
pub struct DhBuffer {
    /// The first byte; null when empty.
    pub ptr: *mut u8,
    /// The number of bytes.
    pub len: usize,
    /// What was allocated: only for `dh_buffer_free`.
    pub cap: usize,
}

impl DhBuffer {
    const EMPTY: DhBuffer = DhBuffer { ptr: ptr::null_mut(), len: 0, cap: 0 };

    /// Gives `text` to the caller of the ABI.
    pub(crate) fn from_text(text: String) -> DhBuffer {
        let mut bytes = ManuallyDrop::new(text.into_bytes());
        if bytes.capacity() == 0 {
            return DhBuffer::EMPTY;
        }
        DhBuffer { ptr: bytes.as_mut_ptr(), len: bytes.len(), cap: bytes.capacity() }
    }
}

/// Frees what a call put into `buffer` and sets it to zero, so that freeing it twice does no harm.
///
/// # Safety
/// `buffer` is null or points to a `DhBuffer` that is zero or was filled by this library, and that no other
/// thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_buffer_free(buffer: *mut DhBuffer) {
    // SAFETY: the caller promises that a non-null `buffer` is valid and not shared.
    let Some(buffer) = (unsafe { buffer.as_mut() }) else {
        return;
    };
    let DhBuffer { ptr, len, cap } = std::mem::replace(buffer, DhBuffer::EMPTY);
    if !ptr.is_null() {
        // SAFETY: a non-null `ptr` with its `len` and `cap` came from the vector in `from_text`.
        drop(unsafe { Vec::from_raw_parts(ptr, len, cap) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_freed_once_and_becomes_zero() {
        let mut buffer = DhBuffer::from_text("[1]".to_owned());
        assert_eq!(buffer.len, 3);
        for _ in 0..2 {
            // SAFETY: the buffer is ours and valid, and zero the second time.
            unsafe { dh_buffer_free(&mut buffer) };
            assert!(buffer.ptr.is_null() && buffer.len == 0 && buffer.cap == 0);
        }
        // SAFETY: null is allowed.
        unsafe { dh_buffer_free(ptr::null_mut()) };
    }

    #[test]
    fn an_empty_text_allocates_nothing() {
        let buffer = DhBuffer::from_text(String::new());
        assert!(buffer.ptr.is_null() && buffer.cap == 0);
    }
}
