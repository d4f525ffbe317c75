//! Control calls against real servers: schema names, errors by name, waits, batches, lost replies, closing and fork.

mod client {
    mod calls;
    mod embedded;
    mod faults;
    mod fork;
    mod names;
    mod pooler;
    mod proxy;
    mod secrets;
    mod tls;
}
mod support;
