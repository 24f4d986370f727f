//! What the arguments mean: the one place where they become the options of a run.

use loci_app::{
    FlagSettings, McpOptions, ModelOptions, PermissionOptions, RunOptions, SessionOptions, SessionSource,
    TextSource, ThinkingChoice, ToolChoice, UserError,
};
use loci_core::permission::Mode;
use loci_engine::ClientRequests;
use loci_storage::config::SettingsSources;
use loci_wire::PermissionPrompter;

use crate::args::{Args, Input, ThinkingMode};
use crate::permission_prompter::permission_prompter;

impl Args {
    /// Returns what the run is asked to be.
    pub(crate) fn options(&self) -> Result<RunOptions, UserError> {
        if let Some(url) = self.plugin_url.first() {
            return Err(UserError::new(format!("--plugin-url is not supported: `{url}`")).hint(
                "Unpack the plugin and name its directory with --plugin-dir, or install it with `loci plugin install`.",
            ));
        }
        Ok(RunOptions {
            session: self.session(),
            is_persistent: !self.no_session_persistence,
            // A safe run has none of what people have changed, and all tools.
            is_bare: self.bare || self.client.safe_mode,
            is_long_lived: self.input_format == Input::StreamJson,
            can_ask: permission_prompter(self) != PermissionPrompter::Nobody,
            keeps_checkpoints: self.checkpoint_files,
            model: self.model_options(),
            system_prompt: text_source(self.system_prompt.as_ref(), self.system_prompt_file.as_ref()),
            appended_prompt: text_source(
                self.append_system_prompt.as_ref(),
                self.append_system_prompt_file.as_ref(),
            ),
            appended_agent_prompt: self.append_subagent_system_prompt.clone(),
            tools: self.tool_choice(),
            permissions: self.permissions(),
            max_turns: self.max_turns,
            max_budget_usd: self.max_budget_usd,
            json_schema: self.client.schema().map_err(UserError::new)?,
            excludes_dynamic_sections: self.client.exclude_dynamic_system_prompt_sections,
            keeps_system_prompt: self.client.keeps_system_prompt(),
            is_restricted: self.client.restricted,
            compact_window: self.client.compact_window().map_err(UserError::new)?,
            has_no_commands: self.client.disable_slash_commands,
            mirrors_transcript: self.client.session_mirror,
            settings: self.settings.clone(),
            flag_settings: FlagSettings::default(),
            setting_sources: self.sources()?,
            agents: self.agents.clone(),
            agent: self.agent.clone(),
            is_interactive: false,
            has_given_trust: false,
            accepts_unknown_settings: self.client.allow_unknown_settings,
            setup: match (self.init || self.init_only, self.maintenance) {
                (true, _) => Some("init"),
                (false, true) => Some("maintenance"),
                (false, false) => None,
            },
            plugin_dirs: self.plugin_dir.iter().chain(&self.client.plugin_dir_no_mcp).cloned().collect(),
            plugin_dirs_without_servers: self.client.plugin_dir_no_mcp.clone(),
            mcp: McpOptions {
                configs: self.mcp_config.clone(),
                is_strict: self.strict_mcp_config || self.client.restricted,
                needs_approval: false,
            },
            mcp_servers: None,
            client_requests: ClientRequests::none(),
            editor: None,
            build: Some(crate::build_info::describe()),
            worktree: loci_app::CurrentWorktree::default(),
            is_demo: false,
            initialize: None,
            client_agents: serde_json::Map::new(),
        })
    }

    fn session(&self) -> SessionOptions {
        SessionOptions {
            source: match (&self.resume, self.continue_newest) {
                (Some(name), _) => SessionSource::Named(name.clone()),
                (None, true) => SessionSource::Newest,
                (None, false) => SessionSource::New,
            },
            is_fork: self.fork_session,
            at: self.resume_session_at.clone(),
            drops_turn: self.client.resume_drops_turn.clone(),
            id: self.session_id.clone(),
            title: self.name.clone(),
            takes_over: self.take_over,
        }
    }

    fn model_options(&self) -> ModelOptions {
        ModelOptions {
            model: self.model.clone(),
            fallbacks: self.fallback_model.as_ref().map(|list| list.split(',').map(str::to_owned).collect()),
            effort: self.effort.clone(),
            max_thinking_tokens: self.max_thinking_tokens,
            thinking: self.client.thinking.map(|mode| match mode {
                ThinkingMode::Adaptive | ThinkingMode::Enabled => ThinkingChoice::Adaptive,
                ThinkingMode::Disabled => ThinkingChoice::Disabled,
            }),
            thinking_display: self.client.thinking_display.clone(),
            task_budget: self.client.task_budget,
            betas: self
                .betas
                .iter()
                .flat_map(|list| list.split(','))
                .map(str::trim)
                .map(str::to_owned)
                .collect(),
            wants_wire_events: self.include_partial_messages,
        }
    }

    fn tool_choice(&self) -> ToolChoice {
        let Some(lists) = &self.tools else {
            return if self.client.safe_mode && !self.bare { ToolChoice::All } else { ToolChoice::Usual };
        };
        let names = lists.iter().flat_map(|list| list.split([',', ' '])).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        match names.iter().any(|name| name == "default") {
            true => ToolChoice::All,
            false => ToolChoice::Only(names),
        }
    }

    fn permissions(&self) -> PermissionOptions {
        PermissionOptions {
            allow: self.allowed_tools.clone(),
            deny: self.disallowed_tools.clone(),
            mode: match self.dangerously_skip_permissions {
                true => Some(Mode::BypassPermissions),
                false => self.permission_mode,
            },
            may_bypass: !self.client.restricted
                && (self.dangerously_skip_permissions || self.allow_dangerously_skip_permissions),
            dirs: self.add_dir.clone(),
            is_confined: self.client.restricted,
        }
    }

    fn sources(&self) -> Result<SettingsSources, UserError> {
        match self.setting_sources.as_deref() {
            _ if self.client.restricted => Ok(SettingsSources::NONE),
            None => Ok(SettingsSources::ALL),
            Some(list) => SettingsSources::parse(list).map_err(|unknown| {
                UserError::new(format!("Unknown source in --setting-sources: `{unknown}`"))
                    .hint("Name user, project and local, separated by commas.")
            }),
        }
    }
}

fn text_source(text: Option<&String>, file: Option<&std::path::PathBuf>) -> Option<TextSource> {
    let text = text.cloned().map(TextSource::Text);
    text.or_else(|| file.cloned().map(TextSource::File))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn options(line: &str) -> RunOptions {
        Args::try_parse_from(std::iter::once("loci").chain(line.split(' '))).unwrap().options().unwrap()
    }

    #[test]
    fn only_streams_of_prompts_are_long_lived() {
        for (line, expected) in [
            ("-p hi", false),
            ("-p hi -c", false),
            ("-p hi -r some", false),
            ("-p --input-format stream-json", true),
        ] {
            assert_eq!(options(line).is_long_lived, expected, "{line}");
        }
    }

    #[test]
    fn flags_have_their_meaning() {
        let usual = options("-p hi");
        assert!(usual.is_persistent && !usual.is_bare && !usual.keeps_checkpoints);
        assert_eq!((usual.tools, usual.session.source), (ToolChoice::Usual, SessionSource::New));
        assert!(!options("-p hi --no-session-persistence").is_persistent);
        assert!(options("-p hi --bare").is_bare);
        assert!(options("-p --checkpoint-files").keeps_checkpoints);
        assert_eq!(options("-p hi -c").session.source, SessionSource::Newest);
        assert_eq!(options("-p hi -r x").session.source, SessionSource::Named("x".to_owned()));
        let model = options("-p hi --model x --fallback-model a,b --effort max --betas c,d").model;
        assert_eq!(model.fallbacks, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!((model.model.as_deref(), model.effort.as_deref()), (Some("x"), Some("max")));
        assert_eq!(model.betas, ["c", "d"]);
    }

    #[test]
    fn tools_are_named_or_all() {
        for (line, expected) in [
            ("-p hi --tools=default", ToolChoice::All),
            ("-p hi --tools=Read,default", ToolChoice::All),
            ("-p hi --tools=", ToolChoice::Only(vec![])),
            (
                "-p hi --tools Read,Bash Edit",
                ToolChoice::Only(vec!["Read".into(), "Bash".into(), "Edit".into()]),
            ),
        ] {
            assert_eq!(options(line).tools, expected, "{line}");
        }
    }

    #[test]
    fn skipping_permissions_is_a_mode_that_wins() {
        let skipped = options("-p hi --permission-mode plan --dangerously-skip-permissions").permissions;
        assert_eq!((skipped.mode, skipped.may_bypass), (Some(Mode::BypassPermissions), true));
        let allowed =
            options("-p hi --permission-mode plan --allow-dangerously-skip-permissions").permissions;
        assert_eq!((allowed.mode, allowed.may_bypass), (Some(Mode::Plan), true));
        assert_eq!(options("-p hi").permissions.mode, None);
    }
}
