//! Entries of servers in the files that hold them.

use std::path::PathBuf;

use loci_app::UserError;
use loci_app::mcp::{PROJECT_FILE, is_managed};
use loci_mcp::config::{ServerPolicy, ServerScope, parse_server};
use loci_mcp::{is_plain_name, is_reserved};
use loci_settings::edit::{set, unset};
use loci_stdx::{WriteOptions, read_regular_to_string};
use loci_storage::config::{edit_settings, edit_state};
use serde_json::{Map, Value};

use super::McpContext;
use loci_app::settings::editor::to_user_error;

/// Where a server is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Scope {
    /// For you, in this project.
    Local,
    /// For everybody who works on this project, in its `.mcp.json`.
    Project,
    /// For you, everywhere.
    User,
}

impl Scope {
    pub(super) const ALL: [Self; 3] = [Self::Local, Self::Project, Self::User];

    pub(super) fn name(self) -> &'static str {
        self.server_scope().name()
    }

    fn server_scope(self) -> ServerScope {
        match self {
            Self::Local => ServerScope::Local,
            Self::Project => ServerScope::Project,
            Self::User => ServerScope::User,
        }
    }
}

impl McpContext {
    /// Returns the file of a scope, for people.
    pub(super) fn file(&self, scope: Scope) -> String {
        match scope {
            Scope::Project => self.project_file().display().to_string(),
            Scope::Local | Scope::User => self.run.home.state_file().display().to_string(),
        }
    }

    fn project_file(&self) -> PathBuf {
        self.run.mcp.root().join(PROJECT_FILE)
    }

    fn root(&self) -> String {
        self.run.mcp.trust().root.display().to_string()
    }

    /// Returns the entries of a scope, as they are written.
    pub(super) fn entries(&self, scope: Scope) -> Result<Map<String, Value>, UserError> {
        let found = match scope {
            Scope::User => self.run.mcp.state().user.clone(),
            Scope::Local => self.run.mcp.state().local.clone(),
            Scope::Project => match read_regular_to_string(self.project_file()) {
                Ok(text) => {
                    let value: Value =
                        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
                            UserError::new(format!("Not valid JSON in `{}`: {error}", self.file(scope)))
                        })?;
                    value.get("mcpServers").cloned().unwrap_or_default()
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Value::Null,
                Err(error) => {
                    return Err(UserError::new(format!("Failed to read `{}`: {error}", self.file(scope))));
                }
            },
        };
        Ok(match found {
            Value::Object(entries) => entries,
            _ => Map::new(),
        })
    }

    /// Writes an entry down; one that could never work, or whose name is taken, is refused.
    pub(super) fn add(&self, scope: Scope, name: &str, entry: &Value) -> Result<(), UserError> {
        if !is_plain_name(name) {
            return Err(UserError::new(format!("Not a name for an MCP server: `{name}`"))
                .hint("Use letters, digits, `-` and `_`."));
        }
        if is_reserved(name) {
            return Err(UserError::new(format!("The name `{name}` is reserved")).hint("Choose another."));
        }
        if self.entries(scope)?.contains_key(name) {
            return Err(UserError::new(format!("There is a {} MCP server `{name}` already", scope.name()))
                .hint(format!("Take it away first: `loci mcp remove {name} -s {}`.", scope.name())));
        }
        if is_managed(&self.run.mcp) {
            return Err(UserError::new(
                "The administrator says which MCP servers there are (`managed-mcp.json`)",
            )
            .hint("Ask them to add it."));
        }
        let lookup = |_: &str| Some(String::new());
        match parse_server(name, entry, scope.server_scope(), "the entry", &lookup) {
            Ok((config, _)) => {
                let settings = &self.run.settings.mcp;
                let (policy, _) = ServerPolicy::new(settings.allowed.as_deref(), &settings.denied);
                if let Some(why) = policy.refusal(&config) {
                    return Err(UserError::new(format!("MCP server `{name}`: {why}")));
                }
            }
            // An address that is put together from variables is looked at when they are known.
            Err(_) if entry.to_string().contains("${") => {}
            Err(problem) => return Err(UserError::new(format!("MCP server `{name}`: {problem}"))),
        }
        self.edit(scope, |text, path| set(text, &[path, &[name]].concat(), entry))
    }

    /// Takes an entry away.
    pub(super) fn remove(&self, scope: Scope, name: &str) -> Result<(), UserError> {
        self.edit(scope, |text, path| unset(text, &[path, &[name]].concat()))
    }

    fn edit(
        &self,
        scope: Scope,
        change: impl Fn(&str, &[&str]) -> Result<String, loci_settings::edit::EditError>,
    ) -> Result<(), UserError> {
        let root = self.root();
        let failed = |error: loci_storage::config::StateFileError| UserError::from_error(&error);
        match scope {
            Scope::User => {
                edit_state(&self.run.home, |text| change(text, &["mcpServers"])).map_err(failed)?
            }
            Scope::Local => {
                edit_state(&self.run.home, |text| change(text, &["projects", &root, "mcpServers"]))
                    .map_err(failed)?
            }
            Scope::Project => {
                let path = self.project_file();
                edit_settings(&self.run.home, &path, &WriteOptions::project(), |text| {
                    change(text, &["mcpServers"])
                })
                .map_err(|error| to_user_error(&error))?
            }
        };
        Ok(())
    }
}
