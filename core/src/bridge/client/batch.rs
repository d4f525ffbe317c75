//! Lone enqueues that wait at the same moment share one statement: one commit instead of a hundred.
//!
//! A batch is all or nothing, so when it is refused every call is sent again alone, under the same id, and an error
//! reaches only the caller it belongs to.

use super::call::Ticket;
use super::contracts::{Answer, Contracts};
use super::pool::guarded;
use super::verbs::{Outcome, Verb, ask, enqueued};
use crate::enqueue::Statement;
use crate::error::{Error, Kind, Result};
use crate::store::Link;
use std::collections::VecDeque;

/// The most calls in one statement.
const MOST: usize = 100;
/// How often a batch is sent together when publications come in between.
const SENDS: usize = 3;
/// The most text in one statement: a batch of large payloads would only be slower.
const MOST_BYTES: usize = 4 << 20;

/// Adds the enqueues that wait behind the first one, wherever they stand.
pub fn gather(together: &mut Vec<Ticket>, queue: &mut VecDeque<Ticket>) {
    if together.iter().any(|ticket| ticket.call.verb != Verb::Enqueue) {
        return;
    }
    let mut bytes: usize = together.iter().map(|ticket| ticket.call.args.len()).sum();
    let mut at = 0;
    while at < queue.len() && together.len() < MOST {
        let fits = queue
            .get(at)
            .is_some_and(|ticket| ticket.call.verb == Verb::Enqueue && bytes + ticket.call.args.len() <= MOST_BYTES);
        match fits.then(|| queue.remove(at)).flatten() {
            Some(ticket) => {
                bytes += ticket.call.args.len();
                together.push(ticket);
            }
            None => at += 1,
        }
    }
}

/// Runs several enqueues as one statement, and each alone if that is refused.
pub fn run(link: &mut Link, tickets: Vec<Ticket>, contracts: &Contracts, wanted: &dyn Fn() -> bool) {
    let mut ready = Vec::with_capacity(tickets.len());
    let mut alone = Vec::new();
    for mut ticket in tickets {
        match guarded(link, |_| ticket.call.prepare().map(|_| ())) {
            Ok(()) => ready.push(ticket),
            Err(error) => ticket.finish(Err(error)),
        }
    }
    for _ in 0..SENDS {
        if ready.len() < 2 {
            break;
        }
        match guarded(link, |link| shared(link, &mut ready, &mut alone, contracts, wanted)) {
            Ok(Some(answers)) => {
                for (ticket, answer) in std::mem::take(&mut ready).into_iter().zip(answers) {
                    ticket.finish(Ok(answer));
                }
            }
            Ok(None) => {}
            // Sending each alone would only wait as long again, a hundred times.
            Err(error) if error.kind() == Kind::ConnectionLost => {
                for ticket in ready.into_iter().chain(alone) {
                    ticket.finish(Err(error.clone()));
                }
                return;
            }
            Err(_) => break,
        }
    }
    for mut ticket in ready.into_iter().chain(alone) {
        let result = guarded(link, |link| match Verb::Enqueue.run(link, &mut ticket.call, contracts, wanted)? {
            Outcome::Answer(answer) => Ok(answer),
            Outcome::AskAgain(_) => Err(Error::new(Kind::Internal, "an enqueue does not wait")),
        });
        ticket.finish(result);
    }
}

/// Sends the enqueues whose payloads fit their contracts; the others are put `alone`, where they are refused. None when
/// a publication came in between.
fn shared(
    link: &mut Link,
    tickets: &mut Vec<Ticket>,
    alone: &mut Vec<Ticket>,
    contracts: &Contracts,
    wanted: &dyn Fn() -> bool,
) -> Result<Option<Vec<String>>> {
    let statements: Vec<&Statement> = tickets.iter_mut().map(|ticket| ticket.call.prepare()).collect::<Result<_>>()?;
    let covering = contracts.covering(link, &statements, wanted)?;
    let sound: Vec<bool> =
        statements.iter().enumerate().map(|(n, statement)| covering.check(n, statement).is_ok()).collect();
    let mut text = String::from(r#"{"jobs":["#);
    for (statement, _) in statements.iter().zip(&sound).filter(|(_, sound)| **sound) {
        if !text.ends_with('[') {
            text.push(',');
        }
        text.push_str(&statement.text);
    }
    text.push_str(&format!(r#"],"contracts":{}}}"#, covering.version()));
    for (ticket, sound) in std::mem::take(tickets).into_iter().zip(sound) {
        if sound { tickets.push(ticket) } else { alone.push(ticket) }
    }
    if tickets.is_empty() {
        return Ok(Some(Vec::new()));
    }
    match Answer::read(ask(link, "enqueue", &text, wanted)?)? {
        Answer::Enqueued(answers) => {
            let answers = enqueued(&answers)?;
            if answers.len() != tickets.len() {
                return Err(Error::new(Kind::Internal, "enqueue answered another number of jobs than it was given"));
            }
            Ok(Some(answers.iter().map(|answer| answer.get().to_owned()).collect()))
        }
        Answer::Stale(version) => {
            contracts.stale(covering.version(), version);
            Ok(None)
        }
    }
}
