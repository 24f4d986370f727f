//! The model and how it is asked.

use serde::{Deserialize, Deserializer, Serialize};

/// Asks another model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetModel {
    /// Which, by alias or id; none goes back to the one chosen at the start.
    #[serde(default)]
    pub model: Option<String>,
}

/// Asks with another effort.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetEffort {
    /// Which; none leaves it to the model.
    #[serde(default)]
    pub effort: Option<String>,
}

/// Lets the model think more or less, or shows its thinking in another form. What is left out stays as it is; null leaves it to
/// the model or the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetThinking {
    /// The most tokens; zero switches it off.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<Option<u64>>,
    /// The form.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub display: Option<Option<String>>,
}

/// Tells a null from a field that is left out.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}
