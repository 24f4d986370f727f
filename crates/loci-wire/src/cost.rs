//! What a session has cost, with what it cost before this process took it up: what a result tells, for clients that ask.

use std::sync::Arc;

use loci_core::model::is_price_unknown;
use loci_core::session::{SessionIdentity, Totals};
use loci_core::usage::ModelUsage;
use loci_engine::EarlierTotals;
use loci_stdx::Store;
use serde_json::{Value, json};

/// The accounts of one session.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    identity: Arc<Store<SessionIdentity>>,
    earlier: EarlierTotals,
}

impl Cost {
    pub(crate) fn new(identity: Arc<Store<SessionIdentity>>, earlier: EarlierTotals) -> Self {
        Self { identity, earlier }
    }

    fn totals(&self) -> Totals {
        self.earlier.plus(&self.identity.get().process_totals())
    }

    /// Returns how many tokens models have read and written.
    pub(crate) fn n_tokens(&self) -> u64 {
        let totals = self.totals();
        let of_model = |usage: &ModelUsage| {
            usage.input_tokens
                + usage.output_tokens
                + usage.cache_read_input_tokens
                + usage.cache_creation_input_tokens
        };
        totals.by_model.values().map(of_model).sum()
    }

    /// Returns the answer to `get_session_cost`.
    pub(crate) fn text(&self) -> Value {
        let totals = self.totals();
        let mut text = format!("Total cost: ${:.4}", totals.cost_usd());
        for (model, usage) in &totals.by_model {
            let price = match is_price_unknown(model, usage) {
                true => "price unknown".to_owned(),
                false => format!("${:.4}", usage.cost_usd),
            };
            text.push_str(&format!(
                "\n{model}: {} input, {} output, {} cache read, {} cache write ({price})",
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_input_tokens,
                usage.cache_creation_input_tokens,
            ));
        }
        json!({"text": text})
    }
}
