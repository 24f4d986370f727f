//! Models, as they are chosen.

use serde::{Deserialize, Serialize};

/// A model that was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// Its id.
    pub model: String,
    /// Whether a conversation that has begun goes on with another model than before.
    pub is_news: bool,
}
