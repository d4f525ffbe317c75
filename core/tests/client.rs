//! Control calls against real servers: schema names, errors by name, waits, batches, lost replies, closing and fork.

mod client {
    mod calls;
    mod faults;
    mod fork;
    mod names;
    mod proxy;
    mod secrets;
}
mod support;
