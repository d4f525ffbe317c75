//! Lone enqueues that wait at the same moment share one statement: one commit instead of a hundred.
//!
//! A batch is all or nothing, so when it is refused every call is sent again alone, under the same id, and an error
//! reaches only the caller it belongs to.

use super::call::Ticket;
use super::pool::guarded;
use super::verbs::{Outcome, Verb, ask, enqueued};
use crate::error::{Error, Kind, Result};
use crate::store::Link;
use std::collections::VecDeque;

/// The most calls in one statement.
const MOST: usize = 100;
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
pub fn run(link: &mut Link, tickets: Vec<Ticket>, wanted: impl Fn() -> bool) {
    let mut ready = Vec::with_capacity(tickets.len());
    for mut ticket in tickets {
        match guarded(link, |_| ticket.call.prepare().map(|_| ())) {
            Ok(()) => ready.push(ticket),
            Err(error) => ticket.finish(Err(error)),
        }
    }
    if ready.len() > 1 {
        match guarded(link, |link| shared(link, &mut ready, &wanted)) {
            Ok(answers) => {
                for (ticket, answer) in ready.into_iter().zip(answers) {
                    ticket.finish(Ok(answer));
                }
                return;
            }
            // Sending each alone would only wait as long again, a hundred times.
            Err(error) if error.kind() == Kind::ConnectionLost => {
                for ticket in ready {
                    ticket.finish(Err(error.clone()));
                }
                return;
            }
            Err(_) => {}
        }
    }
    for mut ticket in ready {
        let result = guarded(link, |link| match Verb::Enqueue.run(link, &mut ticket.call, &|| wanted())? {
            Outcome::Answer(answer) => Ok(answer),
            Outcome::AskAgain(_) => Err(Error::new(Kind::Internal, "an enqueue does not wait")),
        });
        ticket.finish(result);
    }
}

fn shared(link: &mut Link, tickets: &mut [Ticket], wanted: impl Fn() -> bool) -> Result<Vec<String>> {
    let mut text = String::from("[");
    for (i, ticket) in tickets.iter_mut().enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(ticket.call.prepare()?);
    }
    text.push(']');
    let answers = enqueued(&ask(link, "enqueue", &text, wanted)?)?;
    if answers.len() != tickets.len() {
        return Err(Error::new(Kind::Internal, "enqueue answered another number of jobs than it was given"));
    }
    Ok(answers.iter().map(|answer| answer.get().to_owned()).collect())
}
