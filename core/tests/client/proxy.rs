//! A TCP proxy that can lose the reply to what it has just forwarded, or swallow everything.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

pub struct Proxy {
    pub port: u16,
    /// While set, a statement that contains this many bytes or more loses its reply with its connection.
    lose_from: Arc<AtomicUsize>,
    pub lost: Arc<AtomicUsize>,
    /// The connection breaks before the server has answered.
    hasty: Arc<AtomicBool>,
    swallow: Arc<AtomicBool>,
}

impl Proxy {
    /// In front of the server of `url`.
    pub fn start(url: &str) -> Proxy {
        let server = url.rsplit_once('@').map_or(url, |(_, rest)| rest).split(['/', '?']).next().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy {
            port: listener.local_addr().unwrap().port(),
            lose_from: Arc::new(AtomicUsize::new(usize::MAX)),
            lost: Arc::new(AtomicUsize::new(0)),
            hasty: Arc::new(AtomicBool::new(false)),
            swallow: Arc::new(AtomicBool::new(false)),
        };
        let (lose_from, lost, swallow) = (proxy.lose_from.clone(), proxy.lost.clone(), proxy.swallow.clone());
        let hasty = proxy.hasty.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&server)) else {
                    continue;
                };
                let cut = Arc::new(AtomicBool::new(false));
                forward(client.try_clone().unwrap(), server.try_clone().unwrap(), {
                    let (lose_from, lost, swallow, cut) =
                        (lose_from.clone(), lost.clone(), swallow.clone(), cut.clone());
                    let (hasty, client) = (hasty.clone(), client.try_clone().unwrap());
                    move |bytes| {
                        if bytes >= lose_from.load(Ordering::SeqCst) && !cut.swap(true, Ordering::SeqCst) {
                            lost.fetch_add(1, Ordering::SeqCst);
                            if hasty.load(Ordering::SeqCst) {
                                let client = client.try_clone().unwrap();
                                thread::spawn(move || {
                                    thread::sleep(Duration::from_millis(50));
                                    client.shutdown(Shutdown::Both).ok();
                                });
                            }
                        }
                        !swallow.load(Ordering::SeqCst)
                    }
                });
                let swallow = swallow.clone();
                forward(server, client.try_clone().unwrap(), move |_| {
                    if cut.load(Ordering::SeqCst) {
                        // The server has answered, so it has committed; the client never learns.
                        client.shutdown(Shutdown::Both).ok();
                        return false;
                    }
                    !swallow.load(Ordering::SeqCst)
                });
            }
        });
        proxy
    }

    /// The proxy's URL for the same database.
    pub fn url(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    /// Loses the reply to the next statement of at least this many bytes on each connection.
    pub fn lose_replies(&self, from_bytes: usize) {
        self.lose_from.store(from_bytes, Ordering::SeqCst);
    }

    /// The same, but the connection breaks while the server is still at work.
    #[allow(dead_code)] // The worker's tests share this file and only lose replies.
    pub fn break_off(&self, from_bytes: usize) {
        self.hasty.store(true, Ordering::SeqCst);
        self.lose_replies(from_bytes);
    }

    /// Lets everything through again.
    pub fn heal(&self) {
        self.lose_from.store(usize::MAX, Ordering::SeqCst);
        self.swallow.store(false, Ordering::SeqCst);
    }

    /// Keeps sockets open and forwards nothing.
    pub fn swallow(&self) {
        self.swallow.store(true, Ordering::SeqCst);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, pass: impl Fn(usize) -> bool + Send + 'static) {
    thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if pass(length) && to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        thread::sleep(Duration::from_millis(1));
        to.shutdown(Shutdown::Both).ok();
    });
}
