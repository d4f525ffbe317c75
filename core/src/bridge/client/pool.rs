//! The executor threads of a client and the calls that wait for one.
//!
//! Threads start when there is work for them, up to `poolSize`, each with one connection; one that had nothing to do
//! for 60 s closes its connection and ends. A call that only waits (`wait`) lies in the delayed queue between two looks
//! and holds no thread. No lock is held while a statement runs or a callback is called.

use super::super::Done;
use super::batch;
use super::call::{Call, Delayed, Ticket};
use super::contracts::Contracts;
use super::verbs::Outcome;
use crate::error::{Error, Kind, Result};
use crate::store::{Link, Store};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a thread and its connection are kept without work.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct State {
    queue: VecDeque<Ticket>,
    delayed: BinaryHeap<Delayed>,
    /// Threads that will look at the queue again.
    staff: usize,
    /// Of those, the ones that wait for work.
    idle: usize,
    /// Threads whose connection may still be open.
    alive: usize,
    last_ticket: u64,
    phase: Phase,
    /// None once the pool was closed, so that an embedded server ends with the last worker.
    store: Option<Arc<Store>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// Nobody holds the client any more: what was submitted is still run.
    Abandoned,
    Closed,
}

/// Shared by the handle and the executor threads.
pub struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    size: usize,
    contracts: Contracts,
}

thread_local! {
    /// The pool this thread works for, as the address of its shared part.
    static WORKS_FOR: Cell<usize> = const { Cell::new(0) };
}

impl Pool {
    pub fn new(store: Arc<Store>) -> Arc<Pool> {
        let size = store.options().pool_size;
        let state = State { store: Some(store), ..State::default() };
        Arc::new(Pool { state: Mutex::new(state), changed: Condvar::new(), size, contracts: Contracts::default() })
    }

    /// Puts the call in the queue and starts a thread if none is free.
    pub fn submit(self: &Arc<Pool>, call: Call, done: Done) -> u64 {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            drop(state);
            done(Err(closed()));
            return 0;
        }
        state.last_ticket += 1;
        let number = state.last_ticket;
        state.queue.push_back(Ticket { number, call, done });
        let refused = self.staff(&mut state);
        drop(state);
        self.changed.notify_one();
        for ticket in refused {
            ticket.finish(Err(Error::new(Kind::Internal, "no thread could be started for control calls")));
        }
        number
    }

    /// Starts a thread if the waiting calls outnumber the free threads. Returns the calls if there is no thread at all.
    fn staff(self: &Arc<Pool>, state: &mut State) -> Vec<Ticket> {
        if state.queue.len() <= state.idle || state.staff >= self.size {
            return Vec::new();
        }
        let Some(store) = state.store.clone() else {
            return Vec::new();
        };
        let pool = self.clone();
        let started = thread::Builder::new().name("drayhorse-call".to_owned()).spawn(move || pool.work(store));
        match started {
            Ok(_) => {
                state.staff += 1;
                state.alive += 1;
                Vec::new()
            }
            Err(_) if state.staff > 0 => Vec::new(),
            Err(_) => state.queue.drain(..).collect(),
        }
    }

    /// Takes a call that waits out of its queue.
    pub fn cancel(&self, number: u64) -> bool {
        let mut state = self.lock();
        let found = match state.queue.iter().position(|ticket| ticket.number == number) {
            Some(at) => state.queue.remove(at),
            None => {
                let (mut hit, kept): (Vec<_>, Vec<_>) =
                    state.delayed.drain().partition(|delayed| delayed.ticket.number == number);
                state.delayed = kept.into();
                hit.pop().map(|delayed| delayed.ticket)
            }
        };
        drop(state);
        match found {
            Some(ticket) => {
                let gone =
                    Error::new(Kind::WaitTimeout, "the caller gave up before the call was sent; nothing was done");
                ticket.finish(Err(gone.with("canceled", true)));
                true
            }
            None => false,
        }
    }

    /// Refuses what waits, lets what runs end, and returns when the last thread has closed its connection.
    pub fn close(&self) {
        let (waiting, store) = {
            let mut state = self.lock();
            state.phase = Phase::Closed;
            let store = state.store.take();
            let delayed = std::mem::take(&mut state.delayed).into_iter().map(|delayed| delayed.ticket);
            let mut waiting: Vec<Ticket> = delayed.collect();
            waiting.extend(state.queue.drain(..));
            (waiting, store)
        };
        drop(store);
        self.changed.notify_all();
        for ticket in waiting {
            ticket.finish(Err(closed()));
        }
        let own = usize::from(self.is_this_thread());
        let mut state = self.lock();
        while state.alive > own {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The last handle is gone: waits (nobody can hear their end) are dropped, everything else is still run.
    pub fn abandon(&self) {
        let (waits, store) = {
            let mut state = self.lock();
            if state.phase == Phase::Open {
                state.phase = Phase::Abandoned;
            }
            (std::mem::take(&mut state.delayed), state.store.take())
        };
        drop(store);
        self.changed.notify_all();
        for delayed in waits {
            delayed.ticket.finish(Err(closed()));
        }
    }

    /// The store, until the pool is closed.
    pub fn store(&self) -> Result<Arc<Store>> {
        self.lock().store.clone().ok_or_else(closed)
    }

    /// Whether the calling thread is one of this pool's.
    pub fn is_this_thread(&self) -> bool {
        WORKS_FOR.get() == std::ptr::from_ref(self).addr()
    }

    /// Whether a call that is being repeated should go on.
    fn wanted(&self) -> bool {
        self.lock().phase != Phase::Closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is complete at each step; a panic elsewhere leaves it usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of an executor thread.
    fn work(&self, store: Arc<Store>) {
        WORKS_FOR.set(std::ptr::from_ref(self).addr());
        let mut link = Link::new(store);
        let mut delayed_next = false;
        while let Some(tickets) = self.next(&mut delayed_next) {
            self.run(&mut link, tickets);
        }
        // The connection is closed, and the server of `embedded:` let go, before `close` returns.
        drop(link);
        self.lock().alive -= 1;
        self.changed.notify_all();
    }

    /// The next calls to run together: one, or several lone enqueues. None when the thread should end.
    fn next(&self, delayed_next: &mut bool) -> Option<Vec<Ticket>> {
        let rested_since = Instant::now();
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let due = state.delayed.peek().is_some_and(|delayed| delayed.due.0 <= now);
            // In turns, so that neither many waits nor many calls starve the others.
            *delayed_next = due && (*delayed_next || state.queue.is_empty());
            if *delayed_next {
                *delayed_next = false;
                return state.delayed.pop().map(|delayed| vec![delayed.ticket]);
            }
            if let Some(first) = state.queue.pop_front() {
                *delayed_next = true;
                let mut together = vec![first];
                batch::gather(&mut together, &mut state.queue);
                return Some(together);
            }
            if state.phase != Phase::Open {
                state.staff -= 1;
                return None;
            }
            let idle_until = rested_since + IDLE;
            let until = match state.delayed.peek() {
                Some(delayed) => delayed.due.0,
                None if now >= idle_until => {
                    state.staff -= 1;
                    return None;
                }
                None => idle_until,
            };
            state.idle += 1;
            state = self
                .changed
                .wait_timeout(state, until.saturating_duration_since(now))
                .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
            state.idle -= 1;
        }
    }

    fn run(&self, link: &mut Link, mut tickets: Vec<Ticket>) {
        if tickets.len() > 1 {
            return batch::run(link, tickets, &self.contracts, &|| self.wanted());
        }
        let Some(mut ticket) = tickets.pop() else {
            return;
        };
        match guarded(link, |link| {
            let call = &mut ticket.call;
            call.verb.run(link, call, &self.contracts, &|| self.wanted())
        }) {
            Ok(Outcome::Answer(text)) => ticket.finish(Ok(text)),
            Ok(Outcome::AskAgain(after)) => self.delay(ticket, after),
            Err(error) => ticket.finish(Err(error)),
        }
    }

    fn delay(&self, ticket: Ticket, after: Duration) {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            drop(state);
            return ticket.finish(Err(closed()));
        }
        state.delayed.push(Delayed { due: Reverse(Instant::now() + after), ticket });
        drop(state);
        self.changed.notify_one();
    }
}

/// Turns a panic into an error; the connection's state is unknown then, so it goes.
pub fn guarded<T>(link: &mut Link, work: impl FnOnce(&mut Link) -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(|| work(link))).unwrap_or_else(|_| {
        link.hang_up();
        Err(Error::new(Kind::Internal, "a control call panicked"))
    })
}

fn closed() -> Error {
    Error::new(Kind::Closed, "the client is closed")
}
