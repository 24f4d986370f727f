//! Domain-free blocks: reactive store, atomic write, locks, JSONL scanning from both ends, process
//! groups, clock.
//!
//! Nothing here knows what loci is. Whatever touches the world (time, randomness, environment) comes
//! as a value in [`Env`], which the binary builds once and passes down; [`Env::from_process`] is the
//! only place that reads the process environment.

mod clock;
mod env;
mod random;
mod store;

pub use clock::{Clock, Date, FixedClock, SystemClock, Timestamp, rfc3339_millis};
pub use env::{Env, Vars};
pub use random::{OsRandom, Random, SeededRandom, Uuid};
pub use store::{Listener, Store, Subscription};
