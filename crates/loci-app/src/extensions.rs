//! What files and plugins bring a run beside settings: agents, skills, output styles.

pub mod agents;
pub mod output_style;
pub(crate) mod skill_usage;
pub mod skills;
