//! A call as a person writes it, and what it would do.

use loci_app::UserError;
use loci_core::permission::{Rulebook, canonical_host};
use loci_core::tool::CallEffects;
use loci_tools::{Toolbox, Workspace, real_path};
use serde_json::{Value, json};

/// A call to be explained.
pub(super) struct Written {
    pub(super) tool: String,
    pub(super) input: Value,
}

impl Written {
    /// Reads `Tool input`, where the input is a JSON object or the argument that matters most.
    pub(super) fn parse(text: &str) -> Result<Self, UserError> {
        let (tool, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let rest = rest.trim();
        if tool.is_empty() {
            return Err(UserError::new("There is no call to explain")
                .hint("Write one as `loci permissions explain 'Bash git push'`."));
        }
        let input = match serde_json::from_str::<Value>(rest) {
            Ok(input @ Value::Object(_)) => input,
            _ => plain(tool, rest)?,
        };
        Ok(Self { tool: tool.to_owned(), input })
    }

    /// Returns the command line, for tools that run one.
    pub(super) fn command(&self) -> Option<&str> {
        self.input.get("command").and_then(Value::as_str)
    }

    /// Returns what the call would do.
    pub(super) fn effects(&self, book: &Rulebook) -> CallEffects {
        let place = Workspace {
            cwd: book.cwd.clone(),
            project: real_path(&book.cwd),
            extra_dirs: book.dirs.iter().skip(1).cloned().collect(),
            home: book.home.clone(),
        };
        let toolbox = Toolbox::builtin();
        match (toolbox.find(&self.tool), self.input.get("url").and_then(Value::as_str)) {
            (Some(tool), _) => tool.effects(&self.input, &place),
            (None, Some(url)) => match canonical_host(url) {
                Some(host) => CallEffects { hosts: vec![host], ..CallEffects::default() },
                None => CallEffects::unknown(format!("`{url}` has no host")),
            },
            (None, None) => CallEffects::unknown(format!("what {} does is not known", self.tool)),
        }
    }
}

fn plain(tool: &str, rest: &str) -> Result<Value, UserError> {
    Ok(match Toolbox::builtin().facts().facts(tool).main_argument {
        Some(main) => main.input(rest),
        None if rest.is_empty() => json!({}),
        None => {
            return Err(UserError::new(format!("Not a JSON object: `{rest}`"))
                .hint(format!("Write the arguments of {tool} as `{tool} {{\"name\": \"value\"}}`.")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_plainly_or_as_json() {
        for (text, tool, input) in [
            ("Bash git push origin", "Bash", r#"{"command":"git push origin"}"#),
            (r#"Bash {"command": "ls"}"#, "Bash", r#"{"command":"ls"}"#),
            ("Bash {ls;}", "Bash", r#"{"command":"{ls;}"}"#),
            ("Read  src/a.rs ", "Read", r#"{"file_path":"src/a.rs"}"#),
            ("Edit a", "Edit", r#"{"file_path":"a","old_string":"","new_string":""}"#),
            ("Write a", "Write", r#"{"file_path":"a","content":""}"#),
            ("Grep", "Grep", r#"{"pattern":"*"}"#),
            ("Glob src", "Glob", r#"{"path":"src","pattern":"*"}"#),
            ("Task explore", "Task", r#"{"subagent_type":"explore"}"#),
            ("Skill", "Skill", r#"{"skill":""}"#),
            ("WebFetch https://a.test", "WebFetch", r#"{"url":"https://a.test","prompt":""}"#),
            ("mcp__s__t", "mcp__s__t", "{}"),
            (r#"mcp__s__t {"a":1}"#, "mcp__s__t", r#"{"a":1}"#),
        ] {
            let written = Written::parse(text).unwrap();
            assert_eq!((written.tool.as_str(), written.input.to_string().as_str()), (tool, input));
        }
        assert!(Written::parse("  ").is_err() && Written::parse("mcp__s__t a=1").is_err());
    }
}
