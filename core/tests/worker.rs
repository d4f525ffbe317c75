//! Workers against real servers, through the bridge as a binding would: claims, reports, limits, wake-ups, outages,
//! and the phases of an end.

#[path = "client/proxy.rs"]
mod proxy;
mod support;
mod worker {
    mod basics;
    mod endings;
    mod fair;
    mod host;
    mod outages;
    mod wakeups;
}
