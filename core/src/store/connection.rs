//! One session: typed statements in one round trip, notifications, and a bound on every wait.
//!
//! Statements are unnamed and nothing is set on the session, so that PgBouncer in transaction mode may serve every
//! statement by another server. For the same reason the statement timeout is not a setting of the session but a cancel
//! request sent by this side when the time is over; a server that answers neither is given up with its connection.

use super::dsn::Dsn;
use super::fault::{self, lost};
use super::tls::Tls;
use crate::error::{Error, Kind, Result};
use postgres::tls::{NoTls, TlsStream};
use postgres::types::{ToSql, Type};
use postgres::{Row, Socket};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client};

/// A parameter and the type it is sent as.
pub type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// A message of LISTEN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Where it was sent.
    pub channel: String,
    /// What was sent, may be empty.
    pub payload: String,
}

/// How long a cancelled statement may take to end before its connection is given up.
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_millis(200);

type Failure = postgres::Error;
type Poller = Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<std::result::Result<AsyncMessage, Failure>>> + Send>;

/// An open session, used by one thread at a time.
pub struct Connection {
    /// None once it has been dropped or leaked.
    session: Option<Session>,
    tls: Tls,
    pid: u32,
    broken: bool,
    limit: Option<Duration>,
}

struct Session {
    runtime: Runtime,
    client: Client,
    wire: Wire,
}

/// The socket's side: it must be polled for anything to move.
struct Wire {
    poll: Poller,
    ended: bool,
    notifications: VecDeque<Notification>,
}

impl Wire {
    fn new<S>(mut connection: tokio_postgres::Connection<Socket, S>) -> Wire
    where
        S: TlsStream + Unpin + Send + 'static,
    {
        Wire { poll: Box::new(move |cx| connection.poll_message(cx)), ended: false, notifications: VecDeque::new() }
    }

    /// Moves bytes until there is nothing more to do. After an end or an error it must not be polled again.
    fn turn(&mut self, cx: &mut Context<'_>) -> std::result::Result<(), Failure> {
        while !self.ended {
            match (self.poll)(cx) {
                Poll::Ready(Some(Ok(AsyncMessage::Notification(n)))) => self
                    .notifications
                    .push_back(Notification { channel: n.channel().to_owned(), payload: n.payload().to_owned() }),
                Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                    tracing::debug!(severity = notice.severity(), "{}", notice.message());
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => {
                    self.ended = true;
                    return Err(error);
                }
                Poll::Ready(None) => self.ended = true,
                Poll::Pending => return Ok(()),
            }
        }
        Ok(())
    }

    async fn drive<T>(
        &mut self,
        work: impl Future<Output = std::result::Result<T, Failure>>,
    ) -> std::result::Result<T, Failure> {
        let mut work = pin!(work);
        poll_fn(|cx| match self.turn(cx) {
            Err(error) => Poll::Ready(Err(error)),
            Ok(()) => work.as_mut().poll(cx),
        })
        .await
    }
}

impl Connection {
    pub(super) fn open(dsn: &Dsn, tls: &Tls, within: Duration, limit: Duration) -> Result<Connection> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::new(Kind::Internal, format!("no event loop for a connection: {e}")))?;
        let config = &dsn.config;
        let opened = runtime.block_on(async {
            let attempt = async {
                Ok::<_, Failure>(match tls {
                    Tls::None => {
                        let (client, connection) = config.connect(NoTls).await?;
                        (client, Wire::new(connection))
                    }
                    Tls::Rustls(rustls) => {
                        let (client, connection) = config.connect(rustls.clone()).await?;
                        (client, Wire::new(connection))
                    }
                })
            };
            timeout(within, attempt).await
        });
        let failed = match opened {
            Ok(Ok((client, wire))) => {
                return Ok(Connection {
                    session: Some(Session { runtime, client, wire }),
                    tls: tls.clone(),
                    pid: std::process::id(),
                    broken: false,
                    limit: Some(limit),
                });
            }
            Ok(Err(error)) => fault::from_driver(&error),
            Err(_) => lost(format!("no connection to the database within {} ms", within.as_millis())),
        };
        // A look-up of a host name may still run on a thread of the loop: not waited for.
        runtime.shutdown_background();
        Err(failed)
    }

    /// Runs one statement with its parameters and returns its rows.
    pub fn query(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let limit = self.limit;
        self.run(limit, async |client| client.query_typed(sql, params).await)
    }

    /// The one row of a statement that always has one.
    pub fn query_one(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Row> {
        let mut rows = self.query(sql, params)?;
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(row),
            _ => Err(Error::new(Kind::Internal, "a statement did not return its one row")),
        }
    }

    /// The one text of a statement `select f(..)`; none when it is null.
    pub fn query_text(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Option<String>> {
        let row = self.query_one(sql, params)?;
        row.try_get(0).map_err(|e| self.refuse_row(e))
    }

    /// Runs a statement for its effect; returns the number of rows it touched.
    pub fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let limit = self.limit;
        self.run(limit, async |client| client.execute_typed(sql, params).await)
    }

    /// Runs several statements without parameters in one round trip: one transaction unless they say otherwise.
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        let limit = self.limit;
        self.run(limit, async |client| client.batch_execute(sql).await)
    }

    /// Another bound for the following statements; none waits as long as the server lives.
    pub fn set_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    /// Waits for notifications, at most for `wait`; returns all that have come, maybe none.
    pub fn notifications(&mut self, wait: Duration) -> Result<Vec<Notification>> {
        let Session { runtime, wire, .. } = self.session()?;
        let outcome = runtime.block_on(async {
            let arrival = poll_fn(|cx| match wire.turn(cx) {
                Err(error) => Poll::Ready(Err(error)),
                Ok(()) if wire.ended || !wire.notifications.is_empty() => Poll::Ready(Ok(())),
                Ok(()) => Poll::Pending,
            });
            timeout(wait, arrival).await.unwrap_or(Ok(()))
        });
        let got: Vec<Notification> = wire.notifications.drain(..).collect();
        let ended = wire.ended && got.is_empty();
        match outcome {
            Err(error) => Err(self.fail(fault::from_driver(&error))),
            Ok(()) if ended => Err(self.fail(lost("the database closed the connection"))),
            Ok(()) => Ok(got),
        }
    }

    /// Whether the session must not be used again: it broke, is read-only, or a late cancel may still hit it.
    pub fn is_broken(&self) -> bool {
        self.broken || self.session.as_ref().is_none_or(|session| session.wire.ended || session.client.is_closed())
    }

    /// The error for a column that is not what the statement promised.
    pub fn refuse_row(&self, error: Failure) -> Error {
        fault::from_driver(&error)
    }

    fn session(&mut self) -> Result<&mut Session> {
        if std::process::id() != self.pid {
            return Err(Error::new(Kind::UsedAfterFork, "this connection belongs to the parent process"));
        }
        self.session.as_mut().ok_or_else(|| lost("the connection is closed"))
    }

    fn run<T>(
        &mut self,
        limit: Option<Duration>,
        work: impl AsyncFnOnce(&Client) -> std::result::Result<T, Failure>,
    ) -> Result<T> {
        let tls = self.tls.clone();
        let Session { runtime, client, wire } = self.session()?;
        let started = Instant::now();
        let (outcome, cancelled) = runtime.block_on(async {
            let mut work = pin!(work(client));
            let Some(limit) = limit else {
                return (Ok(wire.drive(work).await), false);
            };
            match timeout(limit, wire.drive(work.as_mut())).await {
                Ok(outcome) => (Ok(outcome), false),
                Err(_) => {
                    let token = client.cancel_token();
                    let asked = timeout(CANCEL_GRACE, async {
                        match tls {
                            Tls::None => token.cancel_query(NoTls).await,
                            Tls::Rustls(rustls) => token.cancel_query(rustls).await,
                        }
                    });
                    if let Ok(Err(error)) = asked.await {
                        tracing::debug!("a cancel request was not delivered: {error}");
                    }
                    (timeout(CANCEL_GRACE, wire.drive(work)).await, true)
                }
            }
        });
        // The cancel request may arrive late and would hit whatever this session runs next.
        self.broken |= cancelled;
        match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.fail(fault::from_driver(&error))),
            Err(_) => {
                let waited = started.elapsed().as_millis();
                Err(self.fail(lost(format!("the database did not answer within {waited} ms, nor to a cancel request"))))
            }
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        self.broken |= matches!(error.kind(), Kind::ConnectionLost | Kind::ReadOnly);
        error
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        if std::process::id() != self.pid {
            // The socket is the parent's: closing it politely would end the parent's session.
            std::mem::forget(session);
            return;
        }
        let Session { runtime, client, mut wire } = session;
        drop(client);
        if !self.broken {
            // Without a goodbye the server would log a lost connection.
            let farewell = poll_fn(|cx| match wire.turn(cx) {
                Ok(()) if !wire.ended => Poll::Pending,
                _ => Poll::Ready(()),
            });
            runtime.block_on(async { timeout(GOODBYE, farewell).await.ok() });
        }
        // Sockets belong to the loop: they go first.
        drop(wire);
        runtime.shutdown_background();
    }
}
