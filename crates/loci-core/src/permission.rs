//! Whether a call may run: rules, checks and modes, judged in one place.
//!
//! [`decide`] is the only road to running a tool. It looks at the call's effects, never at prose, and fails
//! closed: what it cannot understand is asked about, and denied where nobody can be asked. The order is
//! deny rules, ask rules, critical removals and protected paths, allow rules, read-only, mode, ask.
//!
//! This is the first cut of the engine: rules are tool names and shell commands (exact, or with `*`). Path and
//! domain rules are refused when they are given, so that no rule is ever silently without effect.

mod critical;
mod decide;
mod mode;
mod protected;
mod rule;

pub use decide::{Call, Decision, Reason, Rulebook, Verdict, decide};
pub use mode::{BadMode, Mode};
pub use rule::{BadRule, Rule, RuleSource, parse_list};
