//! What must hold for every text: nothing panics, and a line whose parse has an error never runs unasked.

use std::path::Path;

use loci_core::permission::{Call, Mode, RuleList, RuleOrigin, RuleSource, Rulebook, Verdict, decide};
use loci_core::tool::{CallEffects, CommandEffect, PathEffect};
use loci_shell::{ShellContext, ShellPath, ShellReading, analyse, top_level_parts};

/// Panics when something does not hold for `line`.
pub(crate) fn hold(line: &str) {
    let cwd = Path::new("/home/dev/project");
    let reading = analyse(line, &ShellContext { cwd, home: Path::new("/home/dev") });
    top_level_parts(line);
    if !has_error(line) {
        return;
    }
    assert!(!reading.unknown.is_empty(), "an error was overlooked in {line:?}: {reading:?}");
    assert!(!reading.is_read_only(), "a line with an error is read-only: {line:?}");
    let effects = effects(reading);
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::DontAsk] {
        let input = serde_json::json!({"command": line});
        let call = Call { tool: "Bash", command: Some(line), input: &input, effects: &effects, hook: None };
        let decision = decide(&call, &book(mode));
        assert_ne!(decision.verdict, Verdict::Allow, "a line with an error would run: {line:?}");
    }
}

/// Returns true when the grammar finds no way to read the line.
fn has_error(line: &str) -> bool {
    // The grammar's scanner does not survive all characters; to the shell they are letters.
    let line: String = line.chars().map(|c| if c.is_ascii() { c } else { 'x' }).collect();
    let mut parser = tree_sitter::Parser::new();
    assert!(parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_ok(), "the grammar is too new");
    parser.parse(line, None).is_none_or(|tree| tree.root_node().has_error())
}

/// Everything a rule can let run.
fn book(mode: Mode) -> Rulebook {
    let mut book = Rulebook {
        mode,
        dirs: vec!["/".into()],
        cwd: "/home/dev/project".into(),
        home: "/home/dev".into(),
        ..Rulebook::default()
    };
    for rule in ["Bash", "Bash(*)", "Read", "Edit(//**)"] {
        book.add(RuleList::Allow, rule, &RuleOrigin::new(RuleSource::Session, "/"));
    }
    book
}

fn effects(reading: ShellReading) -> CallEffects {
    let paths = |paths: Vec<ShellPath>| paths.into_iter().map(|it| PathEffect::plain(it.path)).collect();
    let commands = reading.commands.into_iter().map(|command| CommandEffect {
        text: command.text,
        is_read_only: command.is_read_only,
        is_edit: command.is_edit,
        runs_unknown: command.runs_unknown,
        cover: command.cover,
        readings: command.readings,
    });
    CallEffects {
        commands: commands.collect(),
        reads: paths(reading.reads),
        writes: paths(reading.writes),
        redirects: paths(reading.redirects),
        unclear: reading.unclear,
        unknown: reading.unknown,
        ..CallEffects::default()
    }
}
