//! The reference of the other gates of an endpoint or a queue: pause, token bucket, concurrency.

/// A token bucket whose tokens are counted in the microseconds they take to come, so that everything is exact.
#[derive(Clone, Debug)]
pub struct Bucket {
    pub limit: i64,
    pub interval: i64,
    pub burst: i64,
    /// At `at`, in microseconds.
    level: i64,
    at: i64,
}

impl Bucket {
    /// Starts full.
    fn full(limit: i64, interval: i64, burst: i64, now: i64) -> Bucket {
        assert_eq!(interval % limit, 0, "the model counts whole microseconds");
        Bucket { limit, interval, burst, level: burst * interval / limit, at: now }
    }

    fn token(&self) -> i64 {
        self.interval / self.limit
    }

    fn level(&self, now: i64) -> i64 {
        (self.level + now - self.at).min(self.burst * self.token())
    }

    pub fn tokens(&self, now: i64) -> i64 {
        self.level(now) / self.token()
    }

    fn take(&mut self, tokens: i64, now: i64) {
        self.level = self.level(now) - tokens * self.token();
        self.at = now;
        assert!(self.level >= 0, "more tokens were taken than there are");
    }

    /// When the next token comes; none while the bucket is full.
    pub fn next_token(&self, now: i64) -> Option<i64> {
        let level = self.level(now);
        (level < self.burst * self.token()).then(|| now + self.token() - level % self.token())
    }

    /// Other settings keep the tokens that are there, up to the new burst.
    fn become_like(&mut self, other: Bucket, now: i64) {
        let kept = self.level(now) * other.token() / self.token();
        let level = kept.min(other.burst * other.token());
        *self = Bucket { level, at: now, ..other };
    }
}

#[derive(Clone, Debug, Default)]
pub struct Gate {
    pub paused: bool,
    pub bucket: Option<Bucket>,
    pub max_concurrency: Option<i64>,
}

impl Gate {
    /// How many more claims it admits, with `used` slots in use.
    pub fn room(&self, used: i64, now: i64) -> i64 {
        if self.paused {
            return 0;
        }
        let tokens = self.bucket.as_ref().map_or(i64::MAX, |bucket| bucket.tokens(now));
        let slots = self.max_concurrency.map_or(i64::MAX, |limit| (limit - used).max(0));
        tokens.min(slots)
    }

    pub fn take(&mut self, claims: i64, now: i64) {
        if let Some(bucket) = &mut self.bucket {
            bucket.take(claims, now);
        }
    }

    /// (limit, interval, burst), or none for no limit.
    pub fn set_rate(&mut self, rate: Option<(i64, i64, i64)>, now: i64) {
        let new = rate.map(|(limit, interval, burst)| Bucket::full(limit, interval, burst, now));
        match (&mut self.bucket, new) {
            (Some(bucket), Some(new)) => bucket.become_like(new, now),
            (bucket, new) => *bucket = new,
        }
    }
}
