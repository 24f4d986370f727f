//! `loci config explain instructions`: every instruction file, in the order the model sees them, and why.

use loci_app::settings::InstructionOptions;
use loci_stdx::counted;
use loci_storage::config::{InstructionFile, InstructionScope, Instructions, discover_instructions};
use serde_json::{Value, json};

use super::{SettingsContext, pretty};

pub(super) fn run(ctx: &SettingsContext, as_json: bool) -> String {
    let wish = InstructionOptions::new(&ctx.places, &ctx.loaded, &[]);
    let env = loci_app::settings::with_settings_vars(&ctx.env, &ctx.loaded.settings());
    let found = discover_instructions(&wish.places(&env, &ctx.home));
    if as_json { pretty(&to_json(ctx, &found)) } else { to_text(ctx, &found) }
}

fn to_text(ctx: &SettingsContext, found: &Instructions) -> String {
    let mut lines: Vec<String> = found
        .files
        .iter()
        .map(|file| {
            let size = counted(file.content.len() as u64, "byte", "bytes");
            format!("{}  {size}  {}", ctx.places.display_path(&file.path), why(ctx, file))
        })
        .collect();
    if lines.is_empty() {
        lines.push("There are no instruction files".to_owned());
    }
    let out: Vec<_> = found.left_out.iter().chain(&found.diagnostics).collect();
    if !out.is_empty() {
        lines.extend([String::new(), "Left out:".to_owned()]);
        lines.extend(
            out.iter().map(|note| format!("{}  {}", ctx.places.display_path(&note.path), note.message)),
        );
    }
    lines.join("\n") + "\n"
}

fn why(ctx: &SettingsContext, file: &InstructionFile) -> String {
    let whose = match file.scope {
        InstructionScope::Managed => "the administrator's",
        InstructionScope::User => "yours, for all projects",
        InstructionScope::Project => "the project's",
        InstructionScope::Local => "yours, for this project",
    };
    match &file.imported_by {
        Some(by) => format!("{whose}; imported by {}", ctx.places.display_path(by)),
        None => whose.to_owned(),
    }
}

fn to_json(ctx: &SettingsContext, found: &Instructions) -> Value {
    let files: Vec<Value> = found
        .files
        .iter()
        .map(|file| {
            json!({
                "path": file.path,
                "bytes": file.content.len(),
                "why": why(ctx, file),
                "importedBy": file.imported_by,
                "isPartial": file.is_partial,
            })
        })
        .collect();
    let out: Vec<Value> = found
        .left_out
        .iter()
        .chain(&found.diagnostics)
        .map(|note| json!({"path": note.path, "why": note.message}))
        .collect();
    json!({"files": files, "leftOut": out})
}
