//! What a session has cost, with what it cost before this process took it up.
//!
//! A result tells what this process used, as the protocol has it; clients that ask for the session's cost get all
//! of it. What came before is read from the transcript when somebody asks for the first time.

use std::fmt;
use std::sync::{Arc, OnceLock};

use loci_core::session::{SessionIdentity, Totals};
use loci_stdx::Store;
use serde_json::{Value, json};

use crate::frame::usage_by_model;

/// Reads what earlier runs of a session used.
pub type EarlierTotals = Arc<dyn Fn() -> Totals + Send + Sync>;

/// The accounts of one session.
#[derive(Clone)]
pub(crate) struct Cost {
    identity: Arc<Store<SessionIdentity>>,
    read_earlier: EarlierTotals,
    earlier: Arc<OnceLock<Totals>>,
}

impl Cost {
    pub(crate) fn new(identity: Arc<Store<SessionIdentity>>, read_earlier: EarlierTotals) -> Self {
        Self { identity, read_earlier, earlier: Arc::default() }
    }

    fn totals(&self) -> Totals {
        let earlier = self.earlier.get_or_init(|| (self.read_earlier)());
        earlier.clone().plus(&self.identity.get().totals)
    }

    /// Returns the answer to `get_usage`.
    pub(crate) fn usage(&self) -> Value {
        let totals = self.totals();
        json!({"session": {
            "total_cost_usd": totals.cost_usd(),
            "total_api_duration_ms": totals.api.as_millis() as u64,
            "model_usage": usage_by_model(&totals.by_model),
        }})
    }

    /// Returns the answer to `get_session_cost`.
    pub(crate) fn text(&self) -> Value {
        let totals = self.totals();
        let mut text = format!("Total cost: ${:.4}", totals.cost_usd());
        for (model, usage) in &totals.by_model {
            text.push_str(&format!(
                "\n{model}: {} input, {} output, {} cache read, {} cache write (${:.4})",
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_input_tokens,
                usage.cache_creation_input_tokens,
                usage.cost_usd
            ));
        }
        json!({"text": text})
    }
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cost").field("earlier", &self.earlier).finish_non_exhaustive()
    }
}
