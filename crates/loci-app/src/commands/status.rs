//! `/status`: which program this is, which session, and what it works with.

use loci_engine::{LocalOutcome, SessionSnapshot};

use super::{SessionCommands, cell, effort, mcp};
use crate::COMPATIBLE_VERSION;
use crate::models::cloud::provider_status;

/// How a session stands, a row each: what it is, and its value. Rows of one topic stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusReport {
    /// The topics.
    pub sections: Vec<(&'static str, Vec<(String, String)>)>,
}

impl StatusReport {
    /// Gathers it.
    pub fn new(commands: &SessionCommands, session: &SessionSnapshot) -> Self {
        let ctx = commands.settings_context();
        let shown = |path: &std::path::Path| ctx.places.display_path(path);
        let row = |name: &str, value: String| (name.to_owned(), value);
        let (level, _) = effort::current(session);
        let mut program = vec![
            row(
                "Version",
                format!(
                    "loci {} (compatible with Claude Code {COMPATIBLE_VERSION})",
                    env!("CARGO_PKG_VERSION")
                ),
            ),
            row("Build", commands.build.clone()),
            row("Credentials", session.api_key_source.clone()),
            row("Config home", shown(commands.home.root())),
        ];
        program.extend(provider_status(&commands.env));
        let mut of_session = vec![row("Session", session.session.to_string())];
        of_session.extend(session.title.clone().map(|title| row("Name", title)));
        of_session.push(row("Directory", shown(&session.cwd)));
        let more = session.rulebook.dirs.iter().filter(|dir| **dir != session.cwd);
        of_session.extend(more.map(|dir| row("Also works in", shown(dir))));
        let transcript = session.transcript.as_deref().map_or("not kept".to_owned(), shown);
        of_session.push(row("Transcript", transcript));
        of_session.push(row("Model", session.model.clone()));
        if session.catalog.facts(&session.model).has_effort {
            of_session.push(row("Effort", level));
        }
        let thinking = if session.max_thinking_tokens == Some(0) { "off" } else { "on" };
        of_session.push(row("Thinking", thinking.to_owned()));
        of_session.push(row("Permission mode", session.mode.to_string()));
        of_session.push(row("Output style", session.output_style.clone()));
        let settings = ctx.loaded.files.iter().filter(|file| file.exists);
        let settings = settings.map(|file| (file.scope.to_string(), shown(&file.path))).collect();
        let mut memory: Vec<_> =
            session.instructions.iter().map(|(path, whose)| row(whose, shown(path))).collect();
        memory.extend(session.memory_dir.as_deref().map(|dir| row("memories", shown(dir))));
        let servers = mcp::rows(session).into_iter().map(|server| (server.name, server.status.to_owned()));
        Self {
            sections: vec![
                ("Program", program),
                ("Session", of_session),
                ("Settings files in force", settings),
                ("Memory files", memory),
                ("MCP servers", servers.collect()),
            ],
        }
    }

    /// Returns it for people.
    pub fn to_markdown(&self) -> String {
        let mut text = "## Status\n".to_owned();
        for (title, rows) in self.sections.iter().filter(|(_, rows)| !rows.is_empty()) {
            text.push_str(&format!("\n**{title}**\n\n"));
            for (name, value) in rows {
                text.push_str(&format!("- {}: {}\n", cell(name), cell(value)));
            }
        }
        text
    }
}

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands, session: &SessionSnapshot) -> LocalOutcome {
    LocalOutcome::text(StatusReport::new(commands, session).to_markdown())
}
