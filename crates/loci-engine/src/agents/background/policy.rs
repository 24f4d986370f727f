//! What a background agent may do: judged by effects, before the permission rules have their say.
//!
//! Nobody can be asked, so what would be asked about is refused, with one exception: a file that the agent was sent
//! out to write is granted over the built-in protection of the place it lies in. People's own rules are never
//! overruled.

use std::path::{Path, PathBuf};

use loci_core::permission::{Decision, Reason, Verdict, is_memory_file};
use loci_core::tool::{CallEffects, PathEffect};
use serde_json::Value;

/// What an agent may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Change this one file with Edit.
    OneFile(PathBuf),
    /// Nothing but answer.
    Nothing,
    /// Look at what is permitted.
    Look,
    /// Look at what is permitted, and write memories in this directory.
    Memory(PathBuf),
}

/// What a policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Permit {
    /// It is what the agent is for.
    Granted,
    /// If the permission rules let it run unasked.
    IfAllowed,
    /// No, and why.
    Refused(String),
}

impl Policy {
    /// Judges a call.
    pub(crate) fn permit(&self, tool: &str, input: &Value, effects: &CallEffects) -> Permit {
        match self {
            Self::Nothing => Permit::Refused("Answer with text only.".to_owned()),
            Self::Look => match effects.is_read_only() && input["run_in_background"] != true {
                true => Permit::IfAllowed,
                false => Permit::Refused("Here you can only look.".to_owned()),
            },
            Self::OneFile(file) => match is_edit(effects) && tool == "Edit" {
                true if effects.writes.iter().all(|path| is_exactly(path, file)) => Permit::Granted,
                _ => Permit::Refused(format!(
                    "Only Edit of `{}` is possible here. Make those calls, or stop.",
                    file.display()
                )),
            },
            Self::Memory(dir) => {
                let is_memory = |path: &PathEffect| {
                    is_memory_file(dir, &path.requested) && is_memory_file(dir, &path.real)
                };
                let is_shell_left_running = input["run_in_background"] == true;
                if is_edit(effects) && effects.writes.iter().all(is_memory) {
                    Permit::Granted
                } else if effects.is_read_only() && !is_shell_left_running {
                    Permit::IfAllowed
                } else {
                    Permit::Refused(format!(
                        "Here you can only look, and write Markdown files in `{}`.",
                        dir.display()
                    ))
                }
            }
        }
    }
}

/// Holds a permit against what the permission rules say; the error is for the model.
pub(crate) fn admit(permit: Permit, decision: &Decision) -> Result<(), String> {
    let is_peoples = matches!(
        decision.reason.root(),
        Reason::Rule(_)
            | Reason::MayMatch(..)
            | Reason::Hook(_)
            | Reason::Interaction(_)
            | Reason::Forbidden(_)
    );
    match (permit, decision.verdict) {
        (Permit::Refused(why), _) => Err(why),
        (_, Verdict::Allow) => Ok(()),
        (Permit::Granted, _) if !is_peoples => Ok(()),
        (Permit::Granted | Permit::IfAllowed, _) => {
            Err(format!("Not permitted, and nobody can be asked here: {}.", decision.reason))
        }
    }
}

/// Files are written, and nothing else happens but reading them.
fn is_edit(effects: &CallEffects) -> bool {
    !effects.writes.is_empty()
        && effects.commands.is_empty()
        && effects.hosts.is_empty()
        && effects.removals.is_empty()
        && effects.unclear.is_empty()
        && effects.unknown.is_empty()
        && effects.reads.iter().all(|path| effects.writes.contains(path))
}

fn is_exactly(path: &PathEffect, file: &Path) -> bool {
    path.requested == file && path.real == file
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_core::permission::{Mode, Rule, RuleList, RuleOrigin, RuleSource};
    use loci_core::tool::CommandEffect;
    use serde_json::json;

    fn edit(path: &str) -> CallEffects {
        let path = PathEffect::plain(path);
        CallEffects { reads: vec![path.clone()], writes: vec![path], ..CallEffects::default() }
    }

    fn linked(requested: &str, real: &str) -> CallEffects {
        CallEffects::write(PathEffect { requested: requested.into(), real: real.into() })
    }

    fn command(text: &str, is_read_only: bool) -> CallEffects {
        let command = CommandEffect { is_read_only, ..CommandEffect::plain(text) };
        CallEffects { commands: vec![command], ..CallEffects::default() }
    }

    fn permit_name(permit: &Permit) -> &'static str {
        match permit {
            Permit::Granted => "granted",
            Permit::IfAllowed => "if allowed",
            Permit::Refused(_) => "refused",
        }
    }

    /// Invariant 1 of `docs/design/memory.md`.
    #[test]
    fn agents_do_what_they_are_for_and_nothing_else() {
        let notes = Policy::OneFile("/s/summary.md".into());
        let memory = Policy::Memory("/m".into());
        let both = CallEffects { writes: vec![PathEffect::plain("/x")], ..edit("/m/a.md") };
        for (policy, tool, input, effects, expected) in [
            (&notes, "Edit", json!({}), edit("/s/summary.md"), "granted"),
            (&notes, "Write", json!({}), edit("/s/summary.md"), "refused"),
            (&notes, "Edit", json!({}), edit("/s/other.md"), "refused"),
            (&notes, "Edit", json!({}), linked("/s/summary.md", "/etc/passwd"), "refused"),
            (&notes, "Edit", json!({}), linked("/p/link", "/s/summary.md"), "refused"),
            (&notes, "Read", json!({}), CallEffects::read(PathEffect::plain("/s/summary.md")), "refused"),
            (&notes, "Bash", json!({}), command("ls", true), "refused"),
            (&memory, "Write", json!({}), edit("/m/a.md"), "granted"),
            (&memory, "Edit", json!({}), edit("/m/logs/2026/01/2026-01-02.md"), "granted"),
            (&memory, "Write", json!({}), edit("/m/a.sh"), "refused"),
            (&memory, "Write", json!({}), edit("/m/.git/hooks/x.md"), "refused"),
            (&memory, "Write", json!({}), edit("/m2/a.md"), "refused"),
            (&memory, "Write", json!({}), both, "refused"),
            (&memory, "Write", json!({}), linked("/m/a.md", "/p/CLAUDE.md"), "refused"),
            (&memory, "Write", json!({}), linked("/p/l/a.md", "/m/a.md"), "refused"),
            (&memory, "Read", json!({}), CallEffects::read(PathEffect::plain("/p/a.rs")), "if allowed"),
            (&memory, "Bash", json!({}), command("git log", true), "if allowed"),
            (&memory, "Bash", json!({"run_in_background": true}), command("tail -f x", true), "refused"),
            (&memory, "Bash", json!({}), command("touch x", false), "refused"),
            (&memory, "Bash", json!({}), CallEffects::unknown("?"), "refused"),
            (&Policy::Nothing, "Read", json!({}), CallEffects::default(), "refused"),
        ] {
            let permit = policy.permit(tool, &input, &effects);
            assert_eq!(permit_name(&permit), expected, "{policy:?} {tool} {effects:?}");
        }
    }

    /// Invariant 1 of `docs/design/memory.md`.
    #[test]
    fn nobody_is_asked_and_peoples_rules_stand() {
        let rule = |list| {
            let origin = RuleOrigin::new(RuleSource::Session, "/p");
            Reason::Rule(Rule::parse("Edit", list, &origin).0.unwrap())
        };
        let decided = |verdict, reason| Decision { verdict, reason };
        let protected = || Reason::ProtectedPath("/s".into());
        let unasked = Reason::NotAsked(Mode::DontAsk, Box::new(protected()));
        let ruled = Reason::NotAsked(Mode::DontAsk, Box::new(rule(RuleList::Ask)));
        for (permit, decision, expected) in [
            (Permit::Granted, decided(Verdict::Allow, Reason::ReadOnly), true),
            (Permit::Granted, decided(Verdict::Ask, protected()), true),
            (Permit::Granted, decided(Verdict::Deny, unasked), true),
            (Permit::Granted, decided(Verdict::Deny, ruled), false),
            (Permit::Granted, decided(Verdict::Deny, rule(RuleList::Deny)), false),
            (Permit::Granted, decided(Verdict::Ask, rule(RuleList::Ask)), false),
            (Permit::IfAllowed, decided(Verdict::Allow, Reason::ReadOnly), true),
            (Permit::IfAllowed, decided(Verdict::Ask, Reason::OutsideDirectories("/x".into())), false),
            (Permit::Refused("no".to_owned()), decided(Verdict::Allow, Reason::ReadOnly), false),
        ] {
            assert_eq!(admit(permit.clone(), &decision).is_ok(), expected, "{permit:?} {decision:?}");
        }
    }
}
