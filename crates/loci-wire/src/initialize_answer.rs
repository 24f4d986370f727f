//! What `initialize` tells a client: commands, agents, models, styles, and what this program can do.

use loci_core::model::MODEL_ALIASES;
use loci_engine::{InitializeRequest, resolve_model};
use serde_json::{Value, json};

use crate::control::ControlContext;
use crate::frame::CAPABILITIES;
use crate::session_query::model_info;

impl ControlContext {
    /// Answers `initialize`. Of one that comes too late nothing is taken up, its hooks included.
    pub(crate) fn initialize(&self, request: &InitializeRequest, is_late: bool) -> Value {
        let vars = &self.session_commands.env.vars;
        let aliases = MODEL_ALIASES.iter().map(|name| (*name, resolve_model(vars, name)));
        let named: Vec<(&str, String)> = aliases.collect();
        let others = self.models.iter().filter(|model| !named.iter().any(|(_, id)| id == *model));
        let others = others.map(|model| (model.as_str(), model.clone()));
        let models: Vec<Value> =
            named.iter().cloned().chain(others).map(|(name, id)| model_info(name, &id, "")).collect();
        let mut answer = json!({
            "commands": self.command_rows(),
            "agents": self.agent_rows(),
            "output_style": self.output_style,
            "available_output_styles": (self.output_styles)(),
            "models": models,
            "account": {"tokenSource": "none", "apiKeySource": self.api_key_source, "apiProvider": self.provider},
            "pid": std::process::id(),
            "claude_code_version": self.version,
            "fast_mode_state": "off",
            "current_permission_mode": self.mode.as_str(),
            "session_state": if self.is_busy { "running" } else { "idle" },
            "capabilities": CAPABILITIES,
            "hook_on_failure_supported": true,
        });
        if !request.hooks.is_empty() {
            answer["hooks_applied"] = json!(!is_late);
        }
        let initialized = self.initialized.as_ref();
        let parts = [
            ("plugins_applied", initialized.is_some_and(|request| !request.plugin_dirs.is_empty())),
            ("mcp_servers_applied", initialized.is_some_and(|request| !request.mcp_servers.is_empty())),
        ];
        for (key, _) in parts.into_iter().filter(|(_, is_asked)| *is_asked) {
            answer[key] = json!(self.has_awaited_initialize);
        }
        answer
    }

    /// Returns the slash commands there are.
    pub(crate) fn command_rows(&self) -> Vec<Value> {
        let commands = self.commands.get();
        let rows = commands.iter().map(|command| {
            let mut shown = json!({
                "name": command.name,
                "description": command.description,
                "argumentHint": command.argument_hint,
            });
            if !command.aliases.is_empty() {
                shown["aliases"] = json!(command.aliases);
            }
            shown
        });
        rows.collect()
    }

    /// Returns the agents there are.
    pub(crate) fn agent_rows(&self) -> Vec<Value> {
        let agents = self.agents.get();
        let rows = agents.iter().map(|agent| json!({"name": agent.name, "description": agent.description}));
        rows.collect()
    }
}
