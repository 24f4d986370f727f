//! Questions of a client about how the session stands: each is answered from one snapshot of it, without a model request,
//! also while a turn is under way.

use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use loci_app::commands::hooks::{self, HookRow};
use loci_app::commands::permissions::{PermissionReport, RuleRow};
use loci_app::commands::{SessionCommands, model, short_tokens};
use loci_app::interface::file_suggestions::{FileSource, suggest_files};
use loci_app::interface::helper_command::HelperSandboxes;
use loci_app::permissions::sandbox::sandbox_maker_in;
use loci_app::settings::editor::SettingsContext;
use loci_app::{FlagSettings, api_provider};
use loci_core::model::{ThinkingStyle, facts};
use loci_core::permission::{Call, Destination, RuleList, Verdict, decide};
use loci_core::plugin::PluginOnly;
use loci_core::tool::{CallEffects, PathEffect};
use loci_engine::{ContextCategory, ContextCell, ContextUsage, SessionSnapshot};
use serde_json::{Map, Value, json};

use crate::control::ControlContext;
use crate::result_frame::usage_by_model;

/// How much of a file is read, unless the client says otherwise.
const READ_BYTES: u64 = 1024 * 1024;

/// The picture that `get_context_usage` answers with: cells in a row, and rows.
const COLUMNS: usize = 10;
const ROWS: usize = 10;

/// What a client wants to know of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionQuery {
    /// What fills the window.
    ContextUsage {
        /// Without the picture and what each message takes.
        is_summary: bool,
    },
    /// The settings in force, and each file's.
    Settings,
    /// Cost and tokens.
    Usage,
    /// The models that can be chosen.
    Models,
    /// What calls are judged by.
    PermissionRules,
    /// The hooks.
    Hooks,
    /// The skills.
    Skills,
    /// What plugins have brought, after they were read anew.
    Plugins,
    /// Whether there is a server whose calls are to be asked about.
    ServerMode {
        /// Its name.
        server: String,
        /// Whether a mode was chosen, and not taken back.
        is_set: bool,
    },
    /// Files that fit what somebody has begun to type.
    FileSuggestions {
        /// What stands behind the `@`.
        query: String,
    },
    /// A file, as far as the model might read it.
    ReadFile {
        /// Which.
        path: PathBuf,
        /// How much of it.
        max_bytes: u64,
        /// Whether its bytes are wanted, and not its text.
        is_base64: bool,
    },
}

impl SessionQuery {
    /// Reads the subtype of a control request.
    pub(crate) fn parse(subtype: &str, request: &Value) -> Option<Self> {
        Some(match subtype {
            "get_context_usage" => Self::ContextUsage { is_summary: request["detail"] == "summary" },
            "get_settings" => Self::Settings,
            "get_usage" => Self::Usage,
            "list_models" => Self::Models,
            "list_permission_rules" => Self::PermissionRules,
            "get_hooks_listing" => Self::Hooks,
            "file_suggestions" => {
                Self::FileSuggestions { query: request["query"].as_str().unwrap_or_default().to_owned() }
            }
            "read_file" => Self::ReadFile {
                path: request["path"].as_str()?.into(),
                max_bytes: request["max_bytes"].as_u64().unwrap_or(READ_BYTES),
                is_base64: request["encoding"] == "base64",
            },
            _ => return None,
        })
    }

    /// Tells whether the answer takes its time, since many files are looked at.
    pub(crate) fn reads_project(&self) -> bool {
        matches!(self, Self::FileSuggestions { .. })
    }

    /// Returns the answer, or why there is none.
    pub(crate) fn answer(self, context: &ControlContext, session: &SessionSnapshot) -> Result<Value, String> {
        let ControlContext { session_commands: commands, flag_settings: flags, .. } = context;
        Ok(match self {
            Self::ContextUsage { is_summary } => context_usage(session, is_summary),
            Self::Settings => settings(commands, flags, session),
            Self::Skills => json!({"skills": skill_commands(session)}),
            Self::Plugins => plugins(context, session),
            Self::ServerMode { server, is_set } => server_mode(session, &server, is_set),
            Self::Usage => usage(session, api_provider(&commands.env)),
            Self::Models => json!({"models": models(commands, session)}),
            Self::PermissionRules => json!({"state": permission_rules(session)}),
            Self::Hooks => hook_listing(&hooks::rows(commands, session), &session.settings),
            Self::FileSuggestions { query } => return file_suggestions(commands, session, &query),
            Self::ReadFile { path, max_bytes, is_base64 } => {
                return read_file(session, &path, max_bytes, is_base64);
            }
        })
    }
}

/// Returns the files that fit what somebody types, as the terminal would offer them.
fn file_suggestions(
    commands: &SessionCommands,
    session: &SessionSnapshot,
    query: &str,
) -> Result<Value, String> {
    let source = FileSource::from_settings(&session.settings);
    let sandboxes = match &source {
        FileSource::Command(command) if command.sandbox.is_some() => {
            let settings = SettingsContext::with_inputs(&commands.env, &commands.settings).loaded.settings();
            let make = sandbox_maker_in(&commands.env, &commands.home, &settings, session.session.as_str());
            HelperSandboxes::new(make)
        }
        FileSource::Command(_) | FileSource::Project(_) => HelperSandboxes::default(),
    };
    let found = suggest_files(&commands.env, &sandboxes, &session.cwd, &source, query)?;
    let paths: Vec<Value> = found.iter().map(|path| json!({"path": path})).collect();
    Ok(json!({"suggestions": paths, "cwd": session.cwd}))
}

fn context_usage(session: &SessionSnapshot, is_summary: bool) -> Value {
    let usage = &session.context;
    let window = usage.fullness.window;
    let mut categories: Vec<Value> = usage
        .categories()
        .into_iter()
        .map(|(category, tokens)| {
            let (id, color) = category_facts(category);
            json!({"id": id, "name": category.title(), "tokens": tokens, "color": color, "kind": "used"})
        })
        .collect();
    let rest = [
        ("free_space", "Free space", usage.free(), "promptBorder", "free"),
        ("autocompact_buffer", "Autocompact buffer", usage.buffer(), "inactive", "buffer"),
    ];
    categories.extend(rest.into_iter().filter(|(.., tokens, _, _)| *tokens > 0).map(
        |(id, name, tokens, color, kind)| {
            json!({"id": id, "name": name, "tokens": tokens, "color": color, "kind": kind})
        },
    ));
    let mut answer = json!({
        "categories": categories,
        "totalTokens": usage.fullness.tokens,
        "maxTokens": window,
        "rawMaxTokens": facts(&session.model).window.max(window),
        "percentage": usage.percentage(),
        "model": session.model,
        "isAutoCompactEnabled": usage.is_automatic,
        "memoryFiles": items(usage, ContextCategory::MemoryFiles, |name, source, tokens| {
            json!({"path": name, "type": source, "tokens": tokens})
        }),
        "mcpTools": items(usage, ContextCategory::McpTools, |name, _, tokens| {
            let server = name.strip_prefix("mcp__").and_then(|rest| rest.split("__").next()).unwrap_or_default();
            json!({"name": name, "serverName": server, "tokens": tokens, "isLoaded": true})
        }),
        "systemTools": items(usage, ContextCategory::Tools, |name, _, tokens| json!({"name": name, "tokens": tokens})),
        "systemPromptSections": items(usage, ContextCategory::SystemPrompt, |name, _, tokens| {
            json!({"name": name, "tokens": tokens})
        }),
        "agents": items(usage, ContextCategory::Agents, |name, source, tokens| {
            json!({"agentType": name, "source": source, "tokens": tokens})
        }),
        "skills": skills(session),
        "slashCommands": {"totalCommands": 0, "includedCommands": 0, "tokens": 0},
        "gridRows": [],
        "apiUsage": null,
    });
    if usage.is_automatic {
        answer["autoCompactThreshold"] = json!(usage.fullness.thresholds.compact);
    }
    if !is_summary {
        answer["gridRows"] = grid(usage);
        answer["messageBreakdown"] = message_breakdown(usage);
    }
    answer
}

fn category_facts(category: ContextCategory) -> (&'static str, &'static str) {
    match category {
        ContextCategory::SystemPrompt => ("system_prompt", "promptBorder"),
        ContextCategory::Tools => ("system_tools", "inactive"),
        ContextCategory::McpTools => ("mcp_tools", "cyan"),
        ContextCategory::Agents => ("custom_agents", "permission"),
        ContextCategory::Skills => ("skills", "warning"),
        ContextCategory::MemoryFiles => ("memory_files", "claude"),
        ContextCategory::Messages => ("messages", "purple"),
    }
}

fn items(usage: &ContextUsage, category: ContextCategory, row: fn(&str, &str, u64) -> Value) -> Vec<Value> {
    let items = usage.items.iter().filter(|item| item.category == category);
    items.map(|item| row(&item.name, &item.source, item.tokens)).collect()
}

fn skills(session: &SessionSnapshot) -> Value {
    let included = session.skills.for_model().count();
    let frontmatter: Vec<Value> = session
        .skills
        .for_model()
        .map(|(skill, _)| json!({"name": skill.name, "source": skill.source.scope.as_str(), "tokens": 0}))
        .collect();
    json!({
        "totalSkills": session.skills.iter().count(),
        "includedSkills": included,
        "tokens": session.context.tokens_of(ContextCategory::Skills),
        "skillFrontmatter": frontmatter,
    })
}

/// Reads a file for the client, if the model might read it unasked.
fn read_file(
    session: &SessionSnapshot,
    path: &Path,
    max_bytes: u64,
    is_base64: bool,
) -> Result<Value, String> {
    let requested = session.cwd.join(path);
    let real = requested.canonicalize().map_err(|error| error.to_string())?;
    let effects = CallEffects::read(PathEffect { requested, real: real.clone() });
    let input = json!({"file_path": real});
    let call = Call { tool: "Read", command: None, input: &input, effects: &effects, hook: None };
    if decide(&call, &session.rulebook).verdict != Verdict::Allow {
        return Err(format!("The rules do not let `{}` be read unasked", real.display()));
    }
    let mut bytes = Vec::new();
    let file = loci_stdx::open_regular(&real).map_err(|error| error.to_string())?;
    let total = file.metadata().map_err(|error| error.to_string())?.len();
    file.take(max_bytes).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let mut answer = json!({"absPath": real, "truncated": total > max_bytes});
    match is_base64 {
        true => {
            answer["contents"] = base64::engine::general_purpose::STANDARD.encode(&bytes).into();
            answer["encoding"] = json!("base64");
        }
        false => {
            answer["contents"] = String::from_utf8_lossy(&bytes).into();
            // Whether what is told is not what is there.
            answer["lossy"] = json!(std::str::from_utf8(&bytes).is_err());
        }
    }
    Ok(answer)
}

fn skill_commands(session: &SessionSnapshot) -> Vec<Value> {
    let rows = session.skills.iter().map(|skill| {
        let hint = skill.argument_hint.clone().unwrap_or_default();
        json!({"name": skill.name, "description": skill.description, "argumentHint": hint})
    });
    rows.collect()
}

fn grid(usage: &ContextUsage) -> Value {
    let share = |tokens: u64| tokens as f64 * 100.0 / usage.fullness.window.max(1) as f64;
    let cell = |cell: ContextCell| {
        let (name, color, tokens, is_filled) = match cell {
            ContextCell::Used(category) => {
                (category.title(), category_facts(category).1, usage.tokens_of(category), true)
            }
            ContextCell::Free => ("Free space", "promptBorder", usage.free(), false),
            ContextCell::Buffer => ("Autocompact buffer", "inactive", usage.buffer(), true),
        };
        json!({
            "color": color,
            "isFilled": is_filled,
            "categoryName": name,
            "tokens": tokens,
            "percentage": share(tokens).round(),
            "squareFullness": if is_filled { 1.0 } else { 0.0 },
        })
    };
    let cells: Vec<Value> = usage.grid(COLUMNS * ROWS).into_iter().map(cell).collect();
    cells.chunks(COLUMNS).map(<[Value]>::to_vec).collect::<Vec<_>>().into_iter().map(Value::from).collect()
}

/// Says what the conversation itself is made of.
fn message_breakdown(usage: &ContextUsage) -> Value {
    let said = |name: &str| -> u64 {
        let items =
            usage.items.iter().filter(|it| it.category == ContextCategory::Messages && it.name == name);
        items.map(|item| item.tokens).sum()
    };
    let results: Vec<Value> = usage
        .items
        .iter()
        .filter_map(|item| Some((item.name.strip_prefix("Results of ")?, item.tokens)))
        .map(|(tool, tokens)| json!({"name": tool, "callTokens": 0, "resultTokens": tokens}))
        .collect();
    let result_tokens: u64 = results.iter().filter_map(|row| row["resultTokens"].as_u64()).sum();
    json!({
        "toolCallTokens": 0,
        "toolResultTokens": result_tokens,
        "attachmentTokens": said("Commands and notes"),
        "assistantMessageTokens": said("Answers"),
        "userMessageTokens": said("Prompts"),
        "redirectedContextTokens": 0,
        "unattributedTokens": said("conversation"),
        "toolCallsByType": results,
        "attachmentsByType": [],
    })
}

fn settings(commands: &SessionCommands, flags: &FlagSettings, session: &SessionSnapshot) -> Value {
    let given = Some(("flagSettings", flags.to_value()));
    let given = given.filter(|(_, settings)| settings.as_object().is_some_and(|fields| !fields.is_empty()));
    let sources: Vec<Value> = SettingsContext::new(&commands.env)
        .layers()
        .into_iter()
        .chain(given)
        .map(|(source, settings)| json!({"source": source, "settings": settings}))
        .collect();
    let effort = session.effort.clone().or_else(|| {
        let facts = facts(&session.model);
        facts.has_effort.then(|| facts.default_effort.to_owned())
    });
    json!({
        "effective": session.settings,
        "sources": sources,
        "applied": {"model": session.model, "effort": effort},
    })
}

fn usage(session: &SessionSnapshot, provider: &str) -> Value {
    let totals = &session.totals;
    json!({
        "session": {
            "total_cost_usd": totals.cost_usd(),
            "total_api_duration_ms": totals.api.as_millis() as u64,
            "total_duration_ms": session.wall.as_millis() as u64,
            "total_lines_added": totals.lines.added,
            "total_lines_removed": totals.lines.removed,
            "model_usage": usage_by_model(&totals.by_model, provider),
        },
        "subscription_type": null,
        "rate_limits_available": false,
        "rate_limits": null,
        "behaviors": null,
    })
}

/// Says what there is after plugins were read anew.
fn plugins(context: &ControlContext, session: &SessionSnapshot) -> Value {
    let reload = context.session_commands.plugin_reload.as_ref();
    let list = reload.map(|reload| reload.store.get().list()).unwrap_or_default();
    let plugins: Vec<Value> = list
        .plugins
        .iter()
        .map(|it| json!({"name": it.name, "path": it.path, "source": it.source}))
        .collect();
    let servers: Vec<Value> =
        session.mcp_servers.iter().map(|it| json!({"name": it.name, "status": it.status.name()})).collect();
    json!({
        "commands": context.command_rows(),
        "agents": context.agent_rows(),
        "plugins": plugins,
        "mcpServers": servers,
        "error_count": list.problems.len(),
    })
}

/// Says whether there is such a server; what is chosen for one that is not counts once it comes.
fn server_mode(session: &SessionSnapshot, server: &str, is_set: bool) -> Value {
    match is_set && !session.mcp_servers.iter().any(|it| it.name == server) {
        true => json!({"warning": format!(
            "There is no MCP server `{server}` yet; its calls are asked about once there is"
        )}),
        false => json!({}),
    }
}

/// Lists models as `initialize` does.
pub(crate) fn models(commands: &SessionCommands, session: &SessionSnapshot) -> Vec<Value> {
    let rows = model::rows(commands, session).into_iter().filter(|row| row.is_available);
    rows.map(|row| model_info(&row.name, &row.id, &row.facts())).collect()
}

/// Describes a model to a client.
pub(crate) fn model_info(name: &str, id: &str, description: &str) -> Value {
    let facts = facts(id);
    let description = match (description, facts.price) {
        ("", Some(price)) => format!(
            "{} tokens, ${} in, ${} out per million tokens",
            short_tokens(facts.window),
            price.input,
            price.output
        ),
        (said, _) => said.to_owned(),
    };
    let mut row = Map::from_iter([
        ("value".to_owned(), json!(name)),
        ("resolvedModel".to_owned(), json!(id)),
        ("displayName".to_owned(), json!(name)),
        ("description".to_owned(), json!(description)),
    ]);
    if facts.has_effort {
        row.insert("supportsEffort".to_owned(), json!(true));
        row.insert("supportedEffortLevels".to_owned(), json!(["low", "medium", "high", "xhigh", "max"]));
    }
    if facts.thinking == ThinkingStyle::Adaptive {
        row.insert("supportsAdaptiveThinking".to_owned(), json!(true));
    }
    Value::Object(row)
}

fn permission_rules(session: &SessionSnapshot) -> Value {
    let PermissionReport { rules, directories, .. } = PermissionReport::new(session);
    let rules: Vec<Value> = rules.iter().map(rule_row).collect();
    let directories: Vec<Value> =
        directories.iter().map(|dir| json!({"path": dir, "source": "session"})).collect();
    json!({
        "rules": rules,
        "workspaceDirectories": directories,
        "originalCwd": session.cwd,
        "managedOnly": is_on(&session.settings, "allowManagedPermissionRulesOnly"),
    })
}

fn rule_row(rule: &RuleRow) -> Value {
    let behavior = match rule.list {
        RuleList::Allow => "allow",
        RuleList::Ask => "ask",
        RuleList::Deny => "deny",
    };
    let (source, editability) = match rule.destination {
        Some(Destination::User) => ("userSettings", "persistent"),
        Some(Destination::Project) => ("projectSettings", "persistent"),
        Some(Destination::Local) => ("localSettings", "persistent"),
        Some(Destination::Session) => ("session", "session"),
        None if rule.origin.starts_with("managed") => ("policySettings", "readonly"),
        None => ("cliArg", "readonly"),
    };
    json!({"behavior": behavior, "source": source, "rule": rule.text, "editability": editability})
}

/// Tells whether settings in force switch something on.
fn is_on(settings: &Value, key: &str) -> bool {
    settings.get(key) == Some(&Value::Bool(true))
}

fn hook_listing(rows: &[HookRow], settings: &Value) -> Value {
    let hooks: Vec<Value> = rows
        .iter()
        .map(|row| {
            let (kind, text) = row.handler.split_once(' ').unwrap_or((&row.handler, ""));
            let mut shown = json!({
                "event": row.event,
                "matcher": row.matcher,
                "source": row.source,
                "sourceLabel": row.source,
                "type": kind,
                "displayText": row.handler,
                "commandText": text,
                "contentLabel": kind,
            });
            if row.refusal.is_some() {
                shown["disabled"] = json!(true);
            }
            shown
        })
        .collect();
    let mut names: Vec<&str> = rows.iter().map(|row| row.event).collect();
    names.dedup();
    let events: Vec<Value> = names
        .iter()
        .map(|name| {
            let n_hooks = rows.iter().filter(|row| row.event == *name).count();
            json!({"name": name, "summary": "", "supportsMatcher": true, "hookCount": n_hooks})
        })
        .collect();
    json!({
        "events": events,
        "hooks": hooks,
        "eventCatalog": [],
        "policy": {
            "disabledByPolicy": false,
            "managedOnly": is_on(settings, "allowManagedHooksOnly"),
            "pluginOnly": PluginOnly::new(settings.get("strictPluginOnlyCustomization")).hooks,
            "allDisabled": is_on(settings, "disableAllHooks"),
            "policyHookCount": rows.iter().filter(|row| row.source.starts_with("managed")).count(),
        },
    })
}
