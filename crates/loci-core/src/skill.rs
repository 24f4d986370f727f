//! Skills as values: how a `SKILL.md` or a command file reads, what is put into its text, the commands within it, and
//! what the model is told of the skills there are.
//!
//! Files are found in `loci-storage`; skills are used in `loci-engine`. A file that is read only in part is a skill all
//! the same, with notes about the rest.

mod bundled;
mod definition;
mod injection;
mod listing;
mod registry;
mod substitution;
mod usage;

pub use bundled::{bundled_commands, bundled_skills};
pub use definition::{SkillDefinition, SkillFork, SkillKind, SkillScope, SkillSource, parse_skill};
pub use injection::{Piece, split_commands};
pub use listing::{Listed, ListingBudget, SkillListing, list_skills};
pub use registry::{SkillOverride, SkillRegistry};
pub use substitution::{Arguments, Variables, substitute};
pub use usage::{SkillUsage, SkillUsageTable};
