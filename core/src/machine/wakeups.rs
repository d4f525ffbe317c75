//! Whether wake-ups arrive at all. A listening connection can be silently dead, and behind a transaction pooler
//! LISTEN succeeds and nothing ever comes; only a notification to ourselves, sent on another connection, tells.
//! Owned by the machine; pure.

use super::event::Millis;

/// Between two notifications to ourselves.
const PING_EVERY_MS: Millis = 15_000;
/// So long one may take.
const PING_TAKES_MS: Millis = 5_000;
/// After so many listening connections on which nothing arrived, wake-ups are called unusable.
const SILENT: u32 = 2;
/// So long until the next try then.
const TRY_AGAIN_MS: Millis = 60_000;

/// What a clock step asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    Nothing,
    /// The listening connection is silent: a new one, after the pause; `say` once that wake-ups are unusable.
    Relisten {
        after_ms: Millis,
        say: bool,
    },
}

/// The state of the listening connection.
#[derive(Default)]
pub struct Wakeups {
    up: bool,
    arrived: bool,
    ping: u64,
    ping_at_ms: Millis,
    answer_until_ms: Option<Millis>,
    silent: u32,
    said: bool,
}

impl Wakeups {
    /// LISTEN has succeeded: to be tested at once.
    pub fn up(&mut self, now: Millis) {
        self.up = true;
        self.arrived = false;
        self.ping_at_ms = now;
        self.answer_until_ms = None;
    }

    /// The connection is gone.
    pub fn down(&mut self) {
        self.up = false;
        self.arrived = false;
        self.answer_until_ms = None;
    }

    /// Whether wake-ups have been seen to arrive on this connection.
    pub fn arriving(&self) -> bool {
        self.arrived
    }

    /// The number of the ping to send, if one is due.
    pub fn ping_due(&mut self, now: Millis) -> Option<u64> {
        if !self.up || self.answer_until_ms.is_some() || now < self.ping_at_ms {
            return None;
        }
        self.ping += 1;
        Some(self.ping)
    }

    /// The ping has been sent; from now on its arrival is awaited, unless it came faster than this news.
    pub fn sent(&mut self, now: Millis) {
        if self.up && self.ping_at_ms <= now {
            self.answer_until_ms = Some(now + PING_TAKES_MS);
        }
    }

    /// A notification of ours arrived.
    pub fn heard(&mut self, now: Millis, number: u64) {
        if self.up && number == self.ping {
            self.arrived = true;
            self.silent = 0;
            self.said = false;
            self.answer_until_ms = None;
            self.ping_at_ms = now + PING_EVERY_MS;
        }
    }

    /// When [`Wakeups::expire`] is due.
    pub fn expires_at(&self) -> Option<Millis> {
        self.answer_until_ms
    }

    /// When a ping is due.
    pub fn ping_at(&self) -> Option<Millis> {
        (self.up && self.answer_until_ms.is_none()).then_some(self.ping_at_ms)
    }

    /// A ping that has not arrived in time means a silent connection.
    pub fn expire(&mut self, now: Millis) -> Wanted {
        if self.answer_until_ms.is_none_or(|until| now < until) {
            return Wanted::Nothing;
        }
        self.down();
        self.silent += 1;
        if self.silent < SILENT {
            return Wanted::Relisten { after_ms: 0, say: false };
        }
        let say = !std::mem::replace(&mut self.said, true);
        Wanted::Relisten { after_ms: TRY_AGAIN_MS, say }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_that_arrives_proves_the_connection() {
        let mut w = Wakeups::default();
        assert_eq!(w.ping_due(0), None);
        w.up(10);
        assert_eq!(w.ping_due(10), Some(1));
        w.sent(12);
        assert!(!w.arriving());
        w.heard(13, 1);
        assert!(w.arriving());
        assert_eq!(w.expire(6_000), Wanted::Nothing);
        assert_eq!(w.ping_due(15_012), None);
        assert_eq!(w.ping_due(15_013), Some(2));
    }

    #[test]
    fn a_ping_may_arrive_before_the_news_that_it_was_sent() {
        let mut w = Wakeups::default();
        w.up(0);
        assert_eq!(w.ping_due(0), Some(1));
        w.heard(1, 1);
        w.sent(2);
        assert_eq!(w.expire(10_000), Wanted::Nothing);
        assert!(w.arriving());
    }

    #[test]
    fn a_silent_connection_is_replaced_and_the_second_one_is_said_once() {
        let mut w = Wakeups::default();
        w.up(0);
        w.ping_due(0);
        w.sent(0);
        assert_eq!(w.expire(4_999), Wanted::Nothing);
        assert_eq!(w.expire(5_000), Wanted::Relisten { after_ms: 0, say: false });
        for said in [true, false, false] {
            w.up(6_000);
            w.ping_due(6_000);
            w.sent(6_000);
            assert_eq!(w.expire(11_000), Wanted::Relisten { after_ms: TRY_AGAIN_MS, say: said });
        }
    }
}
