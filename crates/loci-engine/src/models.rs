//! Models: which one a name means, which clouds serve it, and what small work beside a conversation asks.

pub(crate) mod cloud_kind;
pub(crate) mod model_name;
pub(crate) mod side_request;
pub(crate) mod small_model;
