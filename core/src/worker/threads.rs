//! The three threads with a connection each. The *pump* runs what the machine wants of the queue: claims, reports,
//! the look-out for work. The *keeper* renews leases and offers ticks, never held up by the pump. The *listener*
//! hears notifications; without it, polling covers the gap.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::shared::Shared;
use crate::error::{Error, Kind, Result};
use crate::machine::{Answer, Care, Cared, Event, Query};
use crate::store::{Backoff, Connection};

/// A statement that gave way to another is sent again at once, so often.
const GIVE_WAY: u32 = 8;
/// The listener looks up this often, so that an end is not held up.
const SLICE: Duration = Duration::from_millis(100);

/// Claims and reports, until the end.
pub fn pump(shared: &Shared) {
    while let Some(mut connection) =
        shared.connect(|connection| shared.store.schema().compatibility(connection)?.check(shared.store.schema()))
    {
        shared.step(Event::PumpUp);
        loop {
            let Some(query) = shared.next_query() else { return };
            let result = patiently(shared, &mut connection, |connection| answer(shared, connection, &query));
            let up = !connection.is_broken();
            shared.step(Event::PumpAnswered { result, up });
            if !up {
                break;
            }
        }
    }
}

/// Heartbeats and ticks, until the end.
pub fn keeper(shared: &Shared) {
    // A statement may take a sixth of the lease, so that the next heartbeat is not late even when it takes all of it.
    let limit = Duration::from_millis((shared.options.lease_ms / 6).clamp(200, 5_000));
    while let Some(mut connection) = shared.connect(|_| Ok(())) {
        connection.set_limit(Some(limit));
        shared.step(Event::KeeperUp);
        loop {
            let Some(care) = shared.next_care() else { return };
            let result = patiently(shared, &mut connection, |connection| attend(shared, connection, &care));
            let up = !connection.is_broken();
            shared.step(Event::KeeperAnswered { result, up });
            if !up {
                break;
            }
        }
    }
}

/// Notifications, until the end.
pub fn listener(shared: &Shared) {
    let listen = format!("listen {}", quoted(&shared.channel));
    let mut pauses = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
    while let Some(mut connection) = shared.connect(|connection| connection.batch(&listen)) {
        shared.step(Event::ListenerUp);
        let mut pause = loop {
            if shared.wait_for_end(Duration::ZERO) {
                return;
            }
            if let Some(pause) = shared.take_relisten() {
                break pause;
            }
            match connection.notifications(SLICE) {
                Ok(heard) if heard.is_empty() => {}
                Ok(heard) => {
                    pauses.reset();
                    hear(shared, heard.iter().map(|notification| notification.payload.as_str()));
                }
                Err(error) => {
                    tracing::debug!(code = error.code(), "the listening connection broke");
                    shared.step(Event::ListenerDown);
                    break pauses.pause();
                }
            }
        };
        drop(connection);
        // A connection that opens and breaks at once must not spin.
        pause = pause.max(Duration::from_millis(20));
        if shared.wait_for_end(pause) {
            return;
        }
    }
}

/// Once for many notifications of one kind.
fn hear<'a>(shared: &Shared, payloads: impl Iterator<Item = &'a str>) {
    let (mut woken, mut canceled) = (false, false);
    for payload in payloads {
        match payload {
            "w" => woken = true,
            "c" => canceled = true,
            other => {
                if let Some(number) = other.strip_prefix('p').and_then(|digits| digits.parse().ok()) {
                    shared.step(Event::PingHeard(number));
                }
            }
        }
    }
    if woken {
        shared.step(Event::Woken);
    }
    if canceled {
        shared.step(Event::CancelHinted);
    }
}

/// Runs one statement, again while it gives way to others; a missing object is explained by the schema's version.
fn patiently<T>(
    shared: &Shared,
    connection: &mut Connection,
    work: impl Fn(&mut Connection) -> Result<T>,
) -> Result<T> {
    let mut pauses = Backoff::new(Duration::from_millis(2), Duration::from_millis(100));
    for _ in 0..GIVE_WAY {
        match work(connection) {
            Err(error) if matches!(sqlstate(&error), Some("40001" | "40P01")) => {
                if shared.wait_for_end(pauses.pause()) {
                    return Err(error);
                }
            }
            Err(error) if matches!(sqlstate(&error), Some("42P01" | "42883" | "42703" | "3F000")) => {
                let schema = shared.store.schema();
                schema.compatibility(connection)?.check(schema)?;
                let message =
                    format!("the schema {} lacks something its version promises: {}", schema.name(), error.message());
                return Err(Error::new(Kind::SchemaMissing, message));
            }
            outcome => return outcome,
        }
    }
    work(connection)
}

fn answer(shared: &Shared, connection: &mut Connection, query: &Query) -> Result<Answer> {
    let (statements, options, worker) = (&shared.statements, &shared.options, shared.worker_id());
    Ok(match query {
        Query::Register => {
            shared.worker.store(statements.register(connection, options)?, Ordering::Relaxed);
            Answer::Registered
        }
        Query::Lanes => Answer::Lanes(statements.lanes(connection, options)?),
        Query::Survey { lanes, hints } => Answer::Ready(statements.survey(connection, lanes, hints)?),
        Query::Claim { claim, lanes, hints, quotas, max_jobs, async_commit } => Answer::Rows(statements.claim(
            connection,
            worker,
            *claim,
            lanes,
            hints,
            quotas,
            *max_jobs,
            options.lease_ms as i64,
            *async_commit,
        )?),
        Query::Claimed { claim } => Answer::Rows(statements.claimed(connection, *claim)?),
        Query::Check(batch) => Answer::Checked(shared.contracts.check(connection, statements, batch)?),
        Query::Settle(batch) => Answer::Settled(statements.settle(connection, batch)?),
        Query::Progress(values) => {
            let all = values.iter().map(|(claim, value)| (*claim, &**value));
            match statements.progress(connection, all.clone()) {
                // One value of an attempt that is over spoils the statement: each alone then.
                Err(error) if refused(&error) && values.len() > 1 => {
                    for one in all {
                        match statements.progress(connection, std::iter::once(one)) {
                            Err(error) if !refused(&error) => return Err(error),
                            _ => {}
                        }
                    }
                }
                Err(error) if error.kind() == Kind::LeaseLost => {}
                outcome => outcome?,
            }
            Answer::Done
        }
        Query::Sleep { for_ms } => {
            statements.sleep(connection, worker, &shared.channel, options, *for_ms)?;
            Answer::Done
        }
        Query::Wake => {
            statements.wake(connection, worker)?;
            Answer::Done
        }
        Query::Unregister => {
            statements.unregister(connection, worker)?;
            Answer::Done
        }
    })
}

fn attend(shared: &Shared, connection: &mut Connection, care: &Care) -> Result<Cared> {
    let statements = &shared.statements;
    Ok(match care {
        Care::Heartbeat(claims) => {
            let claims = claims.iter().map(|(_, claim)| *claim);
            let lease_ms = shared.options.lease_ms as i64;
            Cared::Beaten(statements.heartbeat(connection, claims, lease_ms, !shared.store.is_embedded())?)
        }
        Care::Tick { max_rows, full } => {
            let (moved, more, next_ms) = statements.tick(connection, *max_rows, *full)?;
            Cared::Ticked { moved, more, next_ms }
        }
        Care::Prune { max_rows } => Cared::Pruned { jobs: statements.prune(connection, *max_rows)? },
        Care::Seen { running } => {
            statements.seen(connection, shared.worker_id(), *running)?;
            Cared::Done
        }
        Care::Ping(number) => {
            statements.ping(connection, &shared.channel, *number)?;
            Cared::Done
        }
    })
}

/// The value or its attempt was refused, not the connection.
fn refused(error: &Error) -> bool {
    matches!(error.kind(), Kind::LeaseLost | Kind::PayloadInvalid | Kind::PayloadTooLarge)
}

fn sqlstate(error: &Error) -> Option<&str> {
    error.details().get("sqlstate").and_then(|state| state.as_str())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
