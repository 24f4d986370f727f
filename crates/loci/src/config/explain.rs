//! `loci config explain`: every file's value, which one wins, and why.

use loci_app::UserError;
use loci_settings::{Key, Merge, Part, Role, Setting, Trust};
use serde_json::{Value, json};

use super::{Named, SettingsContext, pretty, without_secrets};

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    /// The key, such as `model`; `instructions` for the instruction files.
    key: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(ctx: &SettingsContext, args: &ExplainArgs) -> Result<String, UserError> {
    if args.key == "instructions" {
        return Ok(super::instructions::run(ctx, args.json));
    }
    let key = Named::parse(&args.key)?.key;
    let setting = ctx.loaded.merged.get(key.path);
    if args.json {
        return Ok(pretty(&as_json(key, setting)));
    }
    let value = setting.and_then(|setting| setting.value.as_ref());
    let head = match value.map(|value| without_secrets(key, value)) {
        Some(value) => format!("{} = {value}\n", key.path),
        None => format!("{} is not set\n", key.path),
    };
    let parts = setting.map(|setting| setting.parts.as_slice()).unwrap_or_default();
    let rows: String = parts.iter().rev().map(|part| row(key, part)).collect();
    let before = before(key.path).map(|before| format!("{before}\n")).unwrap_or_default();
    let unused = if key.is_used { "" } else { "This version keeps it and does not act upon it yet.\n" };
    Ok(format!(
        "{head}{rows}\nWhat it is: {}.\nWho may set it: {}{}.\nHow files are joined: {}.\n{before}{unused}",
        key.about,
        key.scopes.describe(),
        trust(key),
        joined(key.merge)
    ))
}

fn row(key: &Key, part: &Part) -> String {
    let (origin, line) = (&part.origin, part.line);
    format!(
        "  {:<12} {}:{line}  {}  {}\n",
        origin.scope.to_string(),
        origin.name,
        without_secrets(key, &part.value),
        role(key, part)
    )
}

fn role(key: &Key, part: &Part) -> String {
    match (part.role, key.merge) {
        (Role::Wins, Merge::AnyTrue | Merge::AnyFalse | Merge::Strictest(_)) => {
            "wins: the strictest value".to_owned()
        }
        (Role::Wins, _) => "wins: the highest file that counts".to_owned(),
        (Role::Joins, _) => "counts".to_owned(),
        (Role::Overridden, _) => "overridden".to_owned(),
        (Role::Refused(why), _) => format!("does not count: {why}"),
    }
}

fn joined(merge: Merge) -> &'static str {
    match merge {
        Merge::Highest => "the highest wins, of managed, command line, local, project, user",
        Merge::Union => "all lists are put together",
        Merge::ByName | Merge::ByWholeName => "name by name, the highest file wins a name",
        Merge::Concatenate => "all lists under a name are put together",
        Merge::ManagedOrUnion => "all lists are put together, unless managed settings have one",
        Merge::AnyTrue => "true in any file wins",
        Merge::AnyFalse => "false in any file wins",
        Merge::Strictest(_) => "the strictest value wins",
    }
}

fn trust(key: &Key) -> &'static str {
    match key.trust {
        Trust::Free => "",
        Trust::Needed => "; in a project's files once the folder is trusted",
        Trust::NeverShared => "; in the local file once the folder is trusted, in the shared one never",
        Trust::Environment => {
            "; in a project's files once the folder is trusted, and never where requests go"
        }
        Trust::PermissionMode => {
            "; in a project's files once the folder is trusted, and never to stop asking"
        }
    }
}

/// Says what wins over all files.
fn before(path: &str) -> Option<&'static str> {
    Some(match path {
        "model" => "What comes first: `--model`, then ANTHROPIC_MODEL, then the model of a resumed session.",
        "effortLevel" => "What comes first: CLAUDE_CODE_EFFORT_LEVEL, then `--effort`.",
        "fallbackModel" => "What comes first: `--fallback-model`.",
        "alwaysThinkingEnabled" => "What comes first: `--max-thinking-tokens`, then MAX_THINKING_TOKENS.",
        "permissions.defaultMode" => "What comes first: `--permission-mode`.",
        _ => return None,
    })
}

fn as_json(key: &Key, setting: Option<&Setting>) -> Value {
    let parts: Vec<Value> = setting
        .into_iter()
        .flat_map(|setting| &setting.parts)
        .map(|part| {
            json!({
                "scope": part.origin.scope.to_string(),
                "file": part.origin.name.as_ref(),
                "line": part.line,
                "value": without_secrets(key, &part.value),
                "counts": matches!(part.role, Role::Wins | Role::Joins),
                "why": role(key, part),
            })
        })
        .collect();
    json!({
        "key": key.path,
        "value": setting.and_then(|setting| setting.value.as_ref()).map(|value| without_secrets(key, value)),
        "about": key.about,
        "isUsed": key.is_used,
        "sources": parts,
    })
}
