//! Whether a call may run: rules, checks and modes, judged in one place.
//!
//! [`decide`] is the only road to running a tool. It looks at the call's effects, never at prose, and fails
//! closed: what it cannot understand is asked about, and denied where nobody can be asked. The order is
//! hooks that deny, deny rules, ask rules, hooks that ask, rules that unknown parts may evade, critical removals,
//! what only a person may say, the plan, memories, the sandbox, protected paths, allow rules, hooks that allow, read-only, mode, ask (S-2). [`explain`] lists the outcome of each,
//! [`fits`] what each rule has to do with a call, and [`suggest`] what would let it run.
//!
//! What must stay true is numbered in `docs/design/permissions.md` (P-1 to P-14).
//!
//! Rules that restrict are read broadly, rules that allow narrowly (S-5): any reading of any part may make the
//! first match, while the second must cover every part and both spellings of every path.

mod condition;
mod critical;
mod decide;
mod glob;
mod host;
mod isolation;
mod learned;
mod limits;
mod matching;
mod memory;
mod mode;
mod path_pattern;
mod plan;
mod private_address;
mod protected;
mod reason;
mod rule;
mod rule_tools;
mod rulebook;
mod sandbox;
mod suggest;
mod update;

#[cfg(test)]
mod tests;

pub use condition::RuleCondition;
pub use decide::{Call, Classified, Decision, DecisionStep, HookVerdict, Verdict, decide, explain};
pub use host::{canonical_host, socket_host};
pub use isolation::Isolation;
pub use learned::{AskedCall, LearnedRule, also_allows, learn_rules};
pub use limits::{BlockedAccess, PermissionLimits};
pub use matching::{RuleFit, fits};
pub use memory::is_memory_file;
pub use mode::{BadMode, Mode};
pub use path_pattern::matches_name;
pub use private_address::{is_private_address, is_private_host};
pub use protected::is_protected;
pub use reason::Reason;
pub use rule::{BadRule, Rule, RuleList, RuleOrigin, RulePlace, RuleSource, split_list};
pub(crate) use rule_tools::spelled as spelled_tool;
pub use rulebook::{MoveRefusal, Rulebook};
pub use sandbox::{SandboxRules, containment, drop_refused_sandbox_exit};
pub use suggest::suggest;
pub use update::{BadUpdate, Destination, RuleChange, Update};
