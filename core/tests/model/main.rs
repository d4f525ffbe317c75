//! The circuit and the other gates against a reference that was written from their rules: random runs of claims,
//! reports, cancels, lost leases, pauses, settings, forces, clocks and restarts, compared after every operation; and
//! fifty processes at the end of one cooldown.

mod circuit;
mod claiming;
mod compare;
mod fleet;
mod gate;
mod job;
mod plan;
mod reports;
mod run;
mod stage;
#[path = "../support/mod.rs"]
mod support;
mod world;

use plan::Op;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use stage::Stage;

/// Operations of a run, about.
const STEPS: usize = 60;

/// A size that `DRAYHORSE_SCALE` multiplies: 1 in `make test`, 100 in `make soak`.
fn scaled(small: u64, literal: u64) -> u64 {
    let scale: u64 = std::env::var("DRAYHORSE_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1);
    (small * scale.max(1)).min(literal)
}

/// The operations of a seed.
fn planned(seed: u64) -> Vec<Op> {
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    plan::run(STEPS).new_tree(&mut runner).expect("a plan").current()
}

/// Runs `count` seeds from `first` on, or the one that `DRAYHORSE_MODEL_SEED` names. A failure is told with its seed and
/// the fewest operations that were found to lead to one.
fn runs(variable: &str, first: u64, count: u64) {
    let chosen = std::env::var("DRAYHORSE_MODEL_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let (first, count) = chosen.map_or((first, count), |seed| (seed, 1));
    let mut stage = Stage::open(variable);
    for seed in first..first + count {
        let ops = planned(seed);
        if let Err(why) = run::perform(&mut stage, &ops) {
            let (ops, shortest) = shrunk(&mut stage, ops, why.clone());
            let list = ops.iter().map(|op| format!("  {op:?}")).collect::<Vec<_>>().join("\n");
            panic!(
                "DRAYHORSE_MODEL_SEED={seed} with {variable}: {why}\n\nthe shortest run that fails: {shortest}\n{list}"
            );
        }
    }
}

/// Leaves out operations, many at once and then one by one, as long as the run still fails somehow.
fn shrunk(stage: &mut Stage, mut ops: Vec<Op>, mut why: String) -> (Vec<Op>, String) {
    let mut size = ops.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < ops.len() {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(ops.len()));
            match run::perform(stage, &fewer) {
                Ok(()) => at += size,
                Err(found) => (ops, why) = (fewer, found),
            }
        }
        size /= 2;
    }
    (ops, why)
}

#[test]
fn newest() {
    runs("DRAYHORSE_TEST_URL", 1, scaled(100, 10_000));
}

#[test]
fn oldest() {
    runs("DRAYHORSE_TEST_URL_15", 1_000_001, scaled(50, 5_000));
}
