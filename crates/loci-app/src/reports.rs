//! What people are told about an installation and about use: checks, figures, and how things are written for them.

pub mod display;
pub mod doctor;
pub mod stats;
