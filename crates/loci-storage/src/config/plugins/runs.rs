//! What a plugin may run, as lines: people read them before they install it, and an update shows which came and went.
//!
//! A line is one line whatever the plugin's files say, and nothing in it hides or moves what stands beside it.

use loci_core::skill::{Piece, SkillDefinition, split_commands};
use loci_stdx::visible;
use serde_json::Value;

use super::PluginFolder;

impl PluginFolder {
    /// Returns what it brings that runs or is called, a line each.
    pub fn runs(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.skills.iter().map(|skill| skill_line(skill)).collect();
        for agent in &self.agents {
            let tools = agent.tools.as_ref().map(|tools| format!("; tools: {tools:?}")).unwrap_or_default();
            lines.push(format!("agent {}{tools}", agent.name));
        }
        for (_, value) in &self.hooks {
            hook_lines(value.get("hooks").unwrap_or(value), &mut lines);
        }
        for (_, value) in &self.servers {
            for (name, entry) in value.get("mcpServers").unwrap_or(value).as_object().into_iter().flatten() {
                lines.push(format!("MCP server {name}: {}", server_text(entry)));
            }
        }
        if let Some(bin) = &self.bin {
            let entries = std::fs::read_dir(bin).into_iter().flatten().filter_map(Result::ok);
            let mut names: Vec<String> =
                entries.map(|entry| format!("program bin/{}", entry.file_name().to_string_lossy())).collect();
            names.sort();
            lines.append(&mut names);
        }
        if let Some(agent) = self.settings.get("agent").and_then(Value::as_str) {
            lines.push(format!("setting: the conversation runs as the agent {agent}"));
        }
        let rows = self.settings.get("subagentStatusLine").and_then(|it| it.get("command")?.as_str());
        lines
            .extend(rows.map(|command| format!("setting: the rows of agents at work come from `{command}`")));
        lines.into_iter().map(one_line).collect()
    }
}

/// Returns a text as one line that shows all of itself.
fn one_line(text: String) -> String {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte);
    match text.bytes().all(is_plain) && !text.contains("  ") {
        true => text,
        false => visible(&text.replace('\n', "\\n")),
    }
}

fn skill_line(skill: &SkillDefinition) -> String {
    let mut line = format!("skill /{}", skill.name);
    if !skill.allowed_tools.is_empty() {
        line += &format!("; runs without asking: {}", skill.allowed_tools.join(", "));
    }
    // Few have any, and a mark is found faster than what stands beside one.
    if skill.body.as_bytes().contains(&b'!') {
        let pieces = split_commands(&skill.body);
        let commands = pieces.into_iter().filter_map(|piece| match piece {
            Piece::Command(command) => Some(format!("`{}`", command.trim())),
            Piece::Text(_) => None,
        });
        let commands: Vec<String> = commands.collect();
        if !commands.is_empty() {
            line += &format!("; runs before it is read: {}", commands.join(", "));
        }
    }
    if skill.hooks.is_some() {
        line += "; has hooks";
    }
    line
}

fn hook_lines(events: &Value, lines: &mut Vec<String>) {
    for (event, groups) in events.as_object().into_iter().flatten() {
        for group in groups.as_array().into_iter().flatten() {
            let matcher = group.get("matcher").and_then(Value::as_str).filter(|it| !it.is_empty());
            let matcher = matcher.map(|it| format!(" ({it})")).unwrap_or_default();
            for handler in group.get("hooks").and_then(Value::as_array).into_iter().flatten() {
                let text =
                    ["command", "url", "prompt", "tool"].iter().find_map(|key| handler.get(key)?.as_str());
                let args = texts(handler.get("args"));
                lines.push(
                    format!("hook {event}{matcher}: {} {args}", text.unwrap_or("?")).trim_end().to_owned(),
                );
            }
        }
    }
}

fn server_text(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let place = match (text("command"), text("url")) {
        (Some(command), _) => format!("{command} {}", texts(entry.get("args"))).trim_end().to_owned(),
        (None, Some(url)) => url.to_owned(),
        (None, None) => "?".to_owned(),
    };
    match text("headersHelper") {
        Some(helper) => format!("{place}; its headers come from `{helper}`"),
        None => place,
    }
}

fn texts(value: Option<&Value>) -> String {
    let items = value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    items.collect::<Vec<_>>().join(" ")
}
