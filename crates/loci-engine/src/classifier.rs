//! The seam for mode `auto`: somebody who judges what would otherwise be asked about.
//!
//! Without a classifier mode `auto` asks. One that blocks again and again is left alone, and people are asked.

use std::future::Future;
use std::pin::Pin;

use loci_core::permission::Classified;
use serde_json::Value;

/// Blocks in a row after which people are asked instead.
const MOST_IN_A_ROW: u32 = 3;
/// Blocks in a session after which people are asked instead.
const MOST_IN_ALL: u32 = 20;

/// A call that nobody's rule decides.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassifierCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub input: Value,
    /// Why it would be asked about.
    pub reason: String,
}

/// An answer that takes a while; none means that it could not be told.
pub type ClassifierFuture = Pin<Box<dyn Future<Output = Option<Classified>> + Send>>;

/// Judges calls in mode `auto`.
pub trait Classifier: Send + Sync {
    /// Says whether a call may run.
    fn classify(&self, call: ClassifierCall) -> ClassifierFuture;
}

/// How often the classifier said no.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    in_a_row: u32,
    in_all: u32,
}

impl Blocks {
    pub(crate) fn count(&mut self, said: &Classified) {
        match said {
            Classified::Pass(_) => self.in_a_row = 0,
            Classified::Block(_) => {
                self.in_a_row += 1;
                self.in_all += 1;
            }
        }
    }

    /// A person said yes: the classifier gets another chance.
    pub(crate) fn forgive(&mut self) {
        self.in_a_row = 0;
    }

    pub(crate) fn are_too_many(&self) -> bool {
        self.in_a_row >= MOST_IN_A_ROW || self.in_all >= MOST_IN_ALL
    }
}
