//! The protocol in SQL, on PostgreSQL 18 and 15: races, pinned plans, bounds, rights and evidence.
//! Names in the tests (`t01_…`) are the known traps of job queues that they keep shut.

#[path = "../support/mod.rs"]
mod support;

mod bounds;
mod evidence;
mod language;
mod plans;
mod races;
mod reports;
mod roles;
mod spread;
