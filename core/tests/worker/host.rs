//! A small host: takes events, runs each job's handler on a thread of its own, reports its end.

use crate::support::Database;
use drayhorse_core::bridge::{Client, WorkerHandle};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What a handler sees of its job.
pub struct Job {
    pub event: Value,
    aborts: Arc<Mutex<Vec<Value>>>,
    worker: Arc<WorkerHandle>,
}

impl Job {
    /// A member of the job event.
    pub fn get(&self, key: &str) -> &Value {
        &self.event[key]
    }

    pub fn handle(&self) -> &Value {
        &self.event["handle"]
    }

    pub fn worker(&self) -> &WorkerHandle {
        &self.worker
    }

    /// The reason of the abort this handler got, if any.
    pub fn aborted(&self) -> Option<String> {
        let aborts = self.aborts.lock().unwrap();
        let mine = aborts.iter().find(|abort| abort["handle"] == self.event["handle"])?;
        mine["reason"].as_str().map(str::to_owned)
    }

    /// Waits for an abort.
    pub fn wait_for_abort(&self, patience: Duration) -> Option<String> {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if let Some(reason) = self.aborted() {
                return Some(reason);
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// A call of the handler.
    pub fn call(&self, verb: &str, mut args: Value) -> drayhorse_core::error::Result<Value> {
        args["handle"] = self.handle().clone();
        self.worker.call(verb, &args.to_string()).map(|text| serde_json::from_str(&text).unwrap())
    }
}

/// A report without its handle.
pub fn complete(result: Value) -> Value {
    json!({"verb": "complete", "result": result})
}

pub fn fail(message: &str) -> Value {
    json!({"verb": "fail", "error": {"name": "Error", "message": message}})
}

pub struct Host {
    pub worker: Arc<WorkerHandle>,
    log: Arc<Mutex<Vec<(Instant, Value)>>>,
    done: Arc<AtomicBool>,
    loops: Option<JoinHandle<()>>,
}

impl Host {
    /// A worker for handlers of the type `t`, started now.
    pub fn start(database: &Database, options: Value, handler: impl Fn(&Job) -> Value + Send + Sync + 'static) -> Host {
        Host::start_on(database.client(), options, handler)
    }

    pub fn start_on(
        client: Client,
        mut options: Value,
        handler: impl Fn(&Job) -> Value + Send + Sync + 'static,
    ) -> Host {
        if options.get("handlers").is_none() {
            options["handlers"] = json!([{"type": "t"}]);
        }
        let worker = WorkerHandle::start(&client, &options.to_string(), Box::new(|| {}));
        let worker = Arc::new(worker.unwrap_or_else(|e| panic!("start: {}", e.to_json())));
        let log: Arc<Mutex<Vec<(Instant, Value)>>> = Arc::default();
        let done: Arc<AtomicBool> = Arc::default();
        let aborts: Arc<Mutex<Vec<Value>>> = Arc::default();
        let handler = Arc::new(handler);
        let loops = {
            let (worker, log, done, aborts) = (worker.clone(), log.clone(), done.clone(), aborts.clone());
            thread::spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    let events: Vec<Value> = serde_json::from_str(&worker.take(100, 100)).expect("events are JSON");
                    for event in events {
                        log.lock().unwrap().push((Instant::now(), event.clone()));
                        match event["event"].as_str().expect("a kind") {
                            "job" => {
                                let job = Job { event, aborts: aborts.clone(), worker: worker.clone() };
                                let handler = handler.clone();
                                thread::spawn(move || {
                                    let mut report = handler(&job);
                                    report["handle"] = job.handle().clone();
                                    job.worker.report(&json!([report]).to_string()).expect("reports are accepted");
                                });
                            }
                            "abort" => aborts.lock().unwrap().push(event),
                            "stopped" => done.store(true, Ordering::SeqCst),
                            "error" => {}
                            other => panic!("unknown event {other}"),
                        }
                    }
                }
            })
        };
        Host { worker, log, done, loops: Some(loops) }
    }

    /// All events of a kind so far.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.log
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, event)| event["event"] == kind)
            .map(|(_, event)| event.clone())
            .collect()
    }

    /// When the first event of a kind came.
    pub fn time_of(&self, kind: &str) -> Option<Instant> {
        self.log.lock().unwrap().iter().find(|(_, event)| event["event"] == kind).map(|(at, _)| *at)
    }

    /// Jobs started so far.
    pub fn starts(&self) -> usize {
        self.events("job").len()
    }

    pub fn health(&self) -> Value {
        serde_json::from_str(&self.worker.health()).expect("health is JSON")
    }

    /// Drains; returns how long it took and the last event.
    pub fn stop(&mut self) -> (Duration, Value) {
        let started = Instant::now();
        self.worker.stop();
        let last = self.wait_for_end(Duration::from_secs(60));
        (started.elapsed(), last)
    }

    /// Waits until the worker has stopped.
    pub fn wait_for_end(&mut self, patience: Duration) -> Value {
        let until = Instant::now() + patience;
        while !self.done.load(Ordering::SeqCst) {
            assert!(Instant::now() < until, "the worker has not stopped: {:?}", self.events("error"));
            thread::sleep(Duration::from_millis(2));
        }
        if let Some(loops) = self.loops.take() {
            loops.join().unwrap();
        }
        let last = self.log.lock().unwrap().last().map(|(_, event)| event.clone()).unwrap_or_default();
        assert_eq!(last["event"], "stopped");
        last
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.worker.close();
        self.done.store(true, Ordering::SeqCst);
        if let Some(loops) = self.loops.take() {
            loops.join().ok();
        }
    }
}
