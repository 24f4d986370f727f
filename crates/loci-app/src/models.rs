//! Which model a run asks, and where: names, clouds, gateways and other providers.

pub mod choose_model;
pub(crate) mod cloud;
pub(crate) mod gateway;
pub(crate) mod pinned;
pub mod providers;
