//! Long conversations through the whole pipeline, with a model that is only pretended.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail loudly")]
#![allow(clippy::disallowed_methods, reason = "how long to go on is said from outside")]

mod session;
mod torture;
