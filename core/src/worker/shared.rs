//! What the threads of one worker and its host share: the machine behind one lock, the statements it wants run, the
//! events for the host. Every event goes through [`Shared::step`]; nobody holds the lock while waiting for a network.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::contracts::Contracts;
use super::options::Options;
use super::outbox::Outbox;
use super::statements::Statements;
use crate::bridge::Doorbell;
use crate::error::{Error, Kind, Result};
use crate::machine::{Action, Care, Ending, Event, Machine, Millis, Query, Report, Settings, is_fatal};
use crate::store::{Backoff, Connection, Store};

/// The middle of a worker.
pub struct Shared {
    pub store: Arc<Store>,
    pub options: Options,
    pub statements: Statements,
    pub contracts: Contracts,
    /// Where notifications for this worker go.
    pub channel: String,
    pub worker: AtomicI32,
    started: Instant,
    inner: Mutex<Inner>,
    /// The pump waits here for a statement, the keeper for one of its own, the clock for its time, the host's
    /// blocking `take` for events; everybody for the end.
    pump: Condvar,
    keeper: Condvar,
    clock: Condvar,
    host: Condvar,
    ended: Condvar,
    doorbell: Doorbell,
}

struct Inner {
    machine: Machine,
    query: Option<Arc<Query>>,
    care: Option<Arc<Care>>,
    relisten: Option<Millis>,
    outbox: Outbox,
    done: bool,
    /// What the clock waits for; it is only woken for something earlier.
    clock_until: Option<Millis>,
}

impl Shared {
    /// Nothing runs yet.
    pub fn new(store: Arc<Store>, options: Options, doorbell: Doorbell) -> Shared {
        let settings = Settings {
            slots: options.concurrency,
            prefetch: options.prefetch,
            lease_ms: options.lease_ms,
            grace_ms: options.grace_ms,
            poll_ms: options.poll_ms,
            retry_delay_ms: options.retry_delay_ms,
            async_commit: !store.is_embedded(),
            new_claim_id: Uuid::new_v4,
        };
        Shared {
            statements: Statements::new(store.schema()),
            contracts: Contracts::default(),
            channel: format!("drayhorse_{}", Uuid::new_v4().simple()),
            worker: AtomicI32::new(0),
            started: Instant::now(),
            inner: Mutex::new(Inner {
                machine: Machine::new(settings),
                query: None,
                care: None,
                relisten: None,
                outbox: Outbox::default(),
                done: false,
                clock_until: None,
            }),
            pump: Condvar::new(),
            keeper: Condvar::new(),
            clock: Condvar::new(),
            host: Condvar::new(),
            ended: Condvar::new(),
            doorbell,
            store,
            options,
        }
    }

    /// The worker's id in the database.
    pub fn worker_id(&self) -> i32 {
        self.worker.load(Ordering::Relaxed)
    }

    /// Tells the machine what happened and hands out what it wants done.
    pub fn step(&self, event: Event) {
        let mut inner = self.lock();
        let ring = self.step_locked(&mut inner, event);
        drop(inner);
        if ring {
            (self.doorbell)();
        }
    }

    /// Starts the drain. Jobs that the host has not taken are given back: no handler starts after this.
    pub fn stop(&self) {
        let mut inner = self.lock();
        let withdrawn = inner.outbox.withdraw();
        let mut ring = self.step_locked(&mut inner, Event::Stop);
        if !withdrawn.is_empty() {
            let unstarted = |handle| Report { handle, ending: Ending::Release { started: false }, note: None };
            ring |= self.step_locked(&mut inner, Event::Reports(withdrawn.into_iter().map(unstarted).collect()));
        }
        drop(inner);
        if ring {
            (self.doorbell)();
        }
    }

    /// The machine, to look at.
    pub fn look<T>(&self, at: impl FnOnce(&Machine, Millis) -> T) -> T {
        let inner = self.lock();
        at(&inner.machine, self.now())
    }

    /// The pump's next statement; none at the end.
    pub fn next_query(&self) -> Option<Arc<Query>> {
        let mut inner = self.lock();
        loop {
            if inner.done {
                return None;
            }
            if let Some(query) = inner.query.take() {
                return Some(query);
            }
            inner = self.pump.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The keeper's next statement; none at the end.
    pub fn next_care(&self) -> Option<Arc<Care>> {
        let mut inner = self.lock();
        loop {
            if inner.done {
                return None;
            }
            if let Some(care) = inner.care.take() {
                return Some(care);
            }
            inner = self.keeper.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the listening connection is to be replaced, and after which pause.
    pub fn take_relisten(&self) -> Option<Duration> {
        self.lock().relisten.take().map(Duration::from_millis)
    }

    /// Lets time pass until the end: the fourth thread, without a connection, so that a timeout fires even while
    /// the other three wait for a dead network.
    pub fn run_clock(&self) {
        let mut inner = self.lock();
        while !inner.done {
            let now = self.now();
            let due = inner.machine.due();
            if due.is_some_and(|due| due <= now) {
                let ring = self.step_locked(&mut inner, Event::Clock);
                if ring {
                    drop(inner);
                    (self.doorbell)();
                    inner = self.lock();
                }
                if inner.machine.due().is_none_or(|due| due > now) {
                    continue;
                }
            }
            // Whatever the machine may think: never a busy loop.
            let wait = due.map_or(60_000, |due| due.saturating_sub(now).clamp(1, 60_000));
            inner.clock_until = Some(now + wait);
            inner =
                self.clock.wait_timeout(inner, Duration::from_millis(wait)).unwrap_or_else(PoisonError::into_inner).0;
            inner.clock_until = None;
        }
    }

    /// Up to `max` events as a JSON array, waiting at most `wait` for the first.
    pub fn take(&self, max: usize, wait: Duration) -> String {
        let mut inner = self.lock();
        let until = Instant::now() + wait;
        while inner.outbox.is_empty() && !inner.done {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            inner = self.host.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        inner.outbox.take(max)
    }

    /// Waits, at most so long, for the end; true when it has come.
    pub fn wait_for_end(&self, at_most: Duration) -> bool {
        let inner = self.lock();
        self.ended
            .wait_timeout_while(inner, at_most, |inner| !inner.done)
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .done
    }

    /// A new connection, tried until it works; none at the end, or when the reason is not one that passes.
    pub fn connect(&self, prepare: impl Fn(&mut Connection) -> Result<()>) -> Option<Connection> {
        let mut pauses = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
        loop {
            if self.wait_for_end(Duration::ZERO) {
                return None;
            }
            let opened = self.store.connect().and_then(|mut connection| prepare(&mut connection).map(|()| connection));
            match opened {
                Ok(connection) => return Some(connection),
                Err(error) if is_fatal(&error) || error.kind() == Kind::InvalidArgument => {
                    self.step(Event::Fatal(error));
                    while !self.wait_for_end(Duration::from_secs(3_600)) {}
                    return None;
                }
                Err(error) => self.step(Event::Unreachable(error)),
            }
            if self.wait_for_end(pauses.pause()) {
                return None;
            }
        }
    }

    /// Ends everything without the machine's say: a thread has failed.
    pub fn abandon(&self, error: Error) {
        let mut inner = self.lock();
        if !inner.done {
            inner.outbox.stopped(Some(&error));
            self.end(&mut inner);
            drop(inner);
            (self.doorbell)();
        }
    }

    fn now(&self) -> Millis {
        self.started.elapsed().as_millis() as Millis
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the host is to be told.
    fn step_locked(&self, inner: &mut Inner, event: Event) -> bool {
        if inner.done {
            return false;
        }
        let mut ring = false;
        for action in inner.machine.step(self.now(), event) {
            match action {
                Action::Pump(query) => {
                    inner.query = Some(query);
                    self.pump.notify_one();
                }
                Action::Keep(care) => {
                    inner.care = Some(care);
                    self.keeper.notify_one();
                }
                Action::Relisten { after_ms } => inner.relisten = Some(after_ms),
                Action::Start { handle, row, lane } => {
                    inner.outbox.job(handle, &row, &lane);
                    ring = true;
                }
                Action::Abort { handle, reason } => {
                    inner.outbox.abort(handle, reason);
                    ring = true;
                }
                Action::Complain { error, handle, job } => {
                    inner.outbox.error(&error, handle, job);
                    ring = true;
                }
                Action::Stopped(error) => {
                    inner.outbox.stopped(error.as_ref());
                    self.end(inner);
                    ring = true;
                }
            }
        }
        if ring {
            self.host.notify_all();
        }
        if let (Some(waiting), Some(due)) = (inner.clock_until, inner.machine.due())
            && due < waiting
        {
            self.clock.notify_one();
        }
        ring
    }

    fn end(&self, inner: &mut Inner) {
        inner.done = true;
        for condition in [&self.pump, &self.keeper, &self.clock, &self.host, &self.ended] {
            condition.notify_all();
        }
    }
}
