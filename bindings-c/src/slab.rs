//! Handles: numbers that name what the library keeps, with a generation so that a freed one stays dead.
//!
//! A handle is `generation << 32 | index`. Freeing a slot raises its generation, so an old handle finds nothing
//! even after its slot has been given away again; 0 is never a handle. Every function of the ABI starts here.

use crate::client::ClientEntry;
use crate::worker::WorkerEntry;
use drayhorse_core::error::{Error, Kind, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a handle can name.
pub(crate) enum Entry {
    /// Made by `dh_client_connect`.
    Client(Arc<ClientEntry>),
    /// Made by `dh_worker_start`.
    Worker(Arc<WorkerEntry>),
}

struct Slot<E> {
    generation: u32,
    entry: Option<E>,
}

struct Slab<E> {
    slots: Vec<Slot<E>>,
    free: Vec<u32>,
}

static SLAB: Mutex<Slab<Entry>> = Mutex::new(Slab::new());

/// Each critical section here leaves the slab whole, so a poisoned lock is still good.
fn slab() -> MutexGuard<'static, Slab<Entry>> {
    SLAB.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<E> Slab<E> {
    const fn new() -> Slab<E> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }

    fn insert(&mut self, entry: E) -> Result<u64> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.slots.len())
                    .map_err(|_| Error::new(Kind::Internal, "more than 4 billion handles are open"))?;
                self.slots.push(Slot { generation: 1, entry: None });
                index
            }
        };
        let slot = &mut self.slots[index as usize];
        slot.entry = Some(entry);
        Ok(u64::from(slot.generation) << 32 | u64::from(index))
    }

    fn get(&self, handle: u64) -> Option<&E> {
        let slot = self.slots.get(handle as u32 as usize)?;
        if u64::from(slot.generation) == handle >> 32 { slot.entry.as_ref() } else { None }
    }

    fn remove(&mut self, handle: u64) -> Option<E> {
        self.get(handle)?;
        let index = handle as u32;
        let slot = &mut self.slots[index as usize];
        let entry = slot.entry.take();
        // A slot whose generations are used up is never given away again.
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            self.free.push(index);
        }
        entry
    }
}

fn unknown(what: &str) -> Error {
    Error::new(Kind::Closed, format!("this {what} handle was freed, or never existed"))
}

/// Keeps `entry` under a new handle.
pub(crate) fn insert(entry: Entry) -> Result<u64> {
    slab().insert(entry)
}

/// The client a handle names.
pub(crate) fn client(handle: u64) -> Result<Arc<ClientEntry>> {
    match slab().get(handle) {
        Some(Entry::Client(client)) => Ok(client.clone()),
        Some(Entry::Worker(_)) => Err(Error::argument("client", "client: this handle names a worker")),
        None => Err(unknown("client")),
    }
}

/// The worker a handle names.
pub(crate) fn worker(handle: u64) -> Result<Arc<WorkerEntry>> {
    match slab().get(handle) {
        Some(Entry::Worker(worker)) => Ok(worker.clone()),
        Some(Entry::Client(_)) => Err(Error::argument("worker", "worker: this handle names a client")),
        None => Err(unknown("worker")),
    }
}

/// Forgets a client's handle; a handle that names no client is left alone.
pub(crate) fn remove_client(handle: u64) -> Option<Arc<ClientEntry>> {
    let mut slab = slab();
    let Some(Entry::Client(_)) = slab.get(handle) else {
        return None;
    };
    match slab.remove(handle) {
        Some(Entry::Client(client)) => Some(client),
        _ => None,
    }
}

/// Forgets a worker's handle; a handle that names no worker is left alone.
pub(crate) fn remove_worker(handle: u64) -> Option<Arc<WorkerEntry>> {
    let mut slab = slab();
    let Some(Entry::Worker(_)) = slab.get(handle) else {
        return None;
    };
    match slab.remove(handle) {
        Some(Entry::Worker(worker)) => Some(worker),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_handle_stays_dead_when_its_slot_is_used_again() {
        let mut slab = Slab::new();
        let first = slab.insert("a").unwrap();
        assert_eq!(slab.get(first), Some(&"a"));
        assert_eq!(slab.remove(first), Some("a"));
        assert_eq!(slab.remove(first), None);
        let second = slab.insert("b").unwrap();
        assert_eq!(second as u32, first as u32, "the slot is used again");
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.get(second), Some(&"b"));
        assert_eq!(slab.get(0), None);
        assert_eq!(slab.get(u64::MAX), None);
    }

    #[test]
    fn a_slot_out_of_generations_retires() {
        let mut slab = Slab::new();
        slab.insert("a").unwrap();
        slab.slots[0].generation = u32::MAX;
        assert_eq!(slab.remove(u64::from(u32::MAX) << 32), Some("a"));
        assert_eq!(slab.insert("b").unwrap() as u32, 1);
    }
}
