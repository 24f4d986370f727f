//! The plan file: the one file that is written while a plan is made.

use std::path::Path;

use super::{Mode, Rulebook};
use crate::tool::{CallEffects, PathEffect};

/// Returns the plan that a call writes, when it writes that alone and does nothing else.
pub(super) fn written_plan<'e>(effects: &'e CallEffects, book: &Rulebook) -> Option<&'e Path> {
    let file = book.plan_file.as_ref().filter(|_| book.mode == Mode::Plan)?;
    let is_plan = |path: &PathEffect| path.requested == file.requested && path.real == file.real;
    let is_only_paths = effects.commands.is_empty()
        && effects.hosts.is_empty()
        && effects.removals.is_empty()
        && effects.unclear.is_empty()
        && effects.unknown.is_empty();
    let is_fine = is_only_paths
        && effects.writes.iter().all(is_plan)
        && effects.reads.iter().all(|path| is_plan(path) || book.may_read(path));
    effects.writes.first().filter(|_| is_fine).map(|path| path.real.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{CommandEffect, Removal};

    #[test]
    fn only_the_plan_file_itself_is_written_and_only_while_planning() {
        let book = |mode| Rulebook {
            mode,
            plan_file: Some(PathEffect::plain("/c/plans/calm.md")),
            ..Rulebook::default()
        };
        let write = |path: &str| CallEffects::write(PathEffect::plain(path));
        let linked = PathEffect { requested: "/c/plans/calm.md".into(), real: "/etc/passwd".into() };
        let with_command =
            CallEffects { commands: vec![CommandEffect::plain("cp a b")], ..write("/c/plans/calm.md") };
        let with_removal = CallEffects {
            removals: vec![Removal { text: "x".to_owned(), target: None }],
            ..write("/c/plans/calm.md")
        };
        for (effects, mode, expected) in [
            (write("/c/plans/calm.md"), Mode::Plan, true),
            (write("/c/plans/calm.md"), Mode::Default, false),
            (write("/c/plans/other.md"), Mode::Plan, false),
            (CallEffects::write(linked), Mode::Plan, false),
            (with_command, Mode::Plan, false),
            (with_removal, Mode::Plan, false),
            (CallEffects::default(), Mode::Plan, false),
        ] {
            assert_eq!(written_plan(&effects, &book(mode)).is_some(), expected, "{effects:?}");
        }
    }
}
