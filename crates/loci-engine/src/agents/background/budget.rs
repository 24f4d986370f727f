//! What background agents may cost, and which model they ask.
//!
//! 1. Where nobody asked for them, together they stay below a share of what the conversation itself has cost.
//! 2. An agent that is out counts with what it is expected to cost until it is back.
//! 3. They ask the model of the conversation, which has the beginning cached, unless the small one costs less all the
//!    same.

use std::sync::{Arc, Mutex};

use loci_core::model::{ModelCatalog, Price};
use loci_core::usage::Usage;

use crate::conversation::host::lock;

/// What an agent adds to the conversation and what it writes, in tokens, roughly.
const SAID: u64 = 1_500;
/// How often it asks: once to make its calls, once to stop.
const ROUNDS: u64 = 2;
/// Room that an agent needs behind the conversation, in tokens.
const ROOM: u64 = 20_000;
/// Stands for a price that nobody knows: only its proportions count.
const GUESS: Price = Price {
    input: 3.0,
    output: 15.0,
    cache_write_5m: 3.75,
    cache_write_1h: 6.0,
    cache_read: 0.3,
    web_search: 0.0,
    long_prompt: None,
};

/// What background agents of a session may cost.
pub(crate) struct BackgroundBudget {
    /// The most, as a share of what the conversation cost; without one they are not limited.
    share: Option<f64>,
    /// What is known of models.
    models: ModelCatalog,
    /// Held to count.
    spending: Mutex<Spending>,
}

/// US dollars, or what stands for them.
#[derive(Debug, Default, Clone, Copy)]
struct Spending {
    conversation: f64,
    background: f64,
    reserved: f64,
}

/// The model that an agent had better ask, and what that will cost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quote {
    pub(crate) model: String,
    usd: f64,
}

/// The expected cost of an agent that is out, until it is dropped.
pub(crate) struct Reservation {
    budget: Arc<BackgroundBudget>,
    usd: f64,
}

impl BackgroundBudget {
    pub(crate) fn new(share: Option<f64>, models: ModelCatalog) -> Self {
        Self { share, models, spending: Mutex::default() }
    }

    /// Counts a response.
    pub(crate) fn record(&self, is_background: bool, model: &str, usage: &Usage) {
        let usd = usage.cost_usd(&self.price(model));
        let mut spending = lock(&self.spending);
        match is_background {
            true => spending.background += usd,
            false => spending.conversation += usd,
        }
    }

    /// Finds the cheaper model for an agent that sees so many tokens of a conversation with `main`; `small` is one that costs
    /// little.
    pub(crate) fn quote(&self, main: &str, small: &str, tokens: u64) -> Quote {
        let cached = Quote { model: main.to_owned(), usd: cached_cost(&self.price(main), tokens) };
        let (known, theirs) = (self.models.facts(small), self.models.facts(main));
        let (Some(price), true) = (known.price, theirs.price.is_some()) else { return cached };
        let fresh = Quote { model: small.to_owned(), usd: fresh_cost(&price, tokens) };
        if tokens + ROOM <= known.window && fresh.usd < cached.usd { fresh } else { cached }
    }

    fn price(&self, model: &str) -> Price {
        self.models.facts(model).price.unwrap_or(GUESS)
    }

    /// Sets aside what an agent is expected to cost; nothing, when that would be too much.
    pub(crate) fn reserve(self: &Arc<Self>, quote: &Quote) -> Option<Reservation> {
        let mut spending = lock(&self.spending);
        if let Some(share) = self.share {
            // Twice, since the next one may cost more than it should.
            let after = spending.background + spending.reserved + 2.0 * quote.usd;
            if after > share * spending.conversation {
                return None;
            }
        }
        spending.reserved += quote.usd;
        Some(Reservation { budget: Arc::clone(self), usd: quote.usd })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        lock(&self.budget.spending).reserved -= self.usd;
    }
}

/// The conversation comes from the cache each time.
fn cached_cost(price: &Price, tokens: u64) -> f64 {
    usd(price, 0, ROUNDS * tokens)
}

/// The conversation is read afresh once.
fn fresh_cost(price: &Price, tokens: u64) -> f64 {
    usd(price, tokens, (ROUNDS - 1) * tokens)
}

fn usd(price: &Price, fresh: u64, cached: u64) -> f64 {
    let usage = Usage {
        cache_creation_input_tokens: fresh + SAID,
        cache_read_input_tokens: cached,
        output_tokens: SAID,
        ..Usage::default()
    };
    usage.cost_usd(price)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_stay_below_a_twentieth_of_what_a_growing_conversation_costs() {
        for model in ["claude-opus-4-8", "claude-sonnet-4-5", "a-model-nobody-knows"] {
            let budget = Arc::new(BackgroundBudget::new(Some(0.05), ModelCatalog::default()));
            let mut n_sent = 0;
            for request in 0..400_u64 {
                let tokens = 20_000 + request * 350;
                let usage = Usage {
                    cache_creation_input_tokens: 350,
                    cache_read_input_tokens: tokens,
                    output_tokens: 300,
                    ..Usage::default()
                };
                budget.record(false, model, &usage);
                let quote = budget.quote(model, "claude-haiku-4-5", tokens);
                let Some(reservation) = budget.reserve(&quote) else { continue };
                n_sent += 1;
                // It writes half as much again as it should.
                let written = Usage {
                    cache_creation_input_tokens: 2 * SAID,
                    cache_read_input_tokens: ROUNDS * tokens,
                    output_tokens: 2 * SAID,
                    ..Usage::default()
                };
                budget.record(true, model, &written);
                drop(reservation);
            }
            let Spending { conversation, background, reserved } = *lock(&budget.spending);
            assert!(
                n_sent > 2 && background < 0.05 * conversation,
                "{model}: {n_sent}, {background} of {conversation}"
            );
            assert!(reserved.abs() < 1e-9, "{model}: {reserved}");
        }
    }

    #[test]
    fn two_agents_at_once_share_what_is_left() {
        let budget = Arc::new(BackgroundBudget::new(Some(0.05), ModelCatalog::default()));
        let quote = budget.quote("claude-sonnet-4-5", "claude-sonnet-4-5", 20_000);
        // Enough for one of them and a bit.
        let n_tokens = (2.4 * quote.usd / 0.05 / GUESS.output * 1e6) as u64;
        let usage = Usage { output_tokens: n_tokens, ..Usage::default() };
        budget.record(false, "claude-sonnet-4-5", &usage);
        let first = budget.reserve(&quote);
        assert!(first.is_some() && budget.reserve(&quote).is_none());
        drop(first);
        assert!(budget.reserve(&quote).is_some());
    }

    #[test]
    fn small_model_is_asked_only_where_it_is_cheaper_and_large_enough() {
        let small = "claude-haiku-4-5";
        let budget = BackgroundBudget::new(None, ModelCatalog::default());
        for (main, tokens, expected) in [
            ("claude-sonnet-4-5", 100_000, "claude-sonnet-4-5"),
            ("claude-opus-4-1", 100_000, small),
            ("claude-opus-4-1", 400_000, "claude-opus-4-1"),
            ("a-model-nobody-knows", 100_000, "a-model-nobody-knows"),
        ] {
            assert_eq!(budget.quote(main, small, tokens).model, expected, "{main} {tokens}");
        }
    }

    #[test]
    fn agents_that_were_asked_for_are_not_limited() {
        let budget = Arc::new(BackgroundBudget::new(None, ModelCatalog::default()));
        assert!(budget.reserve(&budget.quote("claude-opus-4-8", "claude-haiku-4-5", 500_000)).is_some());
    }
}
