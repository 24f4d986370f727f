//! What the model sees: the system prompt and the view of a transcript.
//!
//! The crate is pure. The transcript is the truth; what is sent is a projection of it, and the same transcript
//! always gives the same bytes, whether it was just written or loaded again, because both roads go through
//! [`Projection`]. Everything else put before the model is a named [`Fragment`] with a bound.

mod fragment;
mod projection;
mod tokens;

pub use fragment::{
    Fragment, GitContext, Instruction, PromptParts, Surroundings, system_prompt, user_context,
};
pub use projection::Projection;
pub use tokens::{json_tokens, prose_tokens};
