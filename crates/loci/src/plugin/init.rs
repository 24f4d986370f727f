//! `loci plugin init`: the directory of a new plugin among the user's skills, where the next session finds it: a manifest, a
//! skill, and a file to begin with for each part that is asked for.

use std::path::{Path, PathBuf};

use loci_app::UserError;
use loci_app::plugins::marketplace_policy;
use loci_core::plugin::{SKILLS_DIR_MARKETPLACE, is_plugin_name};
use loci_stdx::{WriteOptions, write_atomic};
use loci_storage::config::git_identity;
use serde_json::{Value, json};

use crate::config::{SettingsContext, pretty};

#[derive(Debug, clap::Args)]
pub(super) struct InitArgs {
    /// What the plugin is called.
    name: String,
    /// Where its directory is made; among your skills, where nothing is said.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// What it is for.
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// Who writes it; the user of git, where nothing is said.
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Where they are reached.
    #[arg(long, value_name = "EMAIL")]
    author_email: Option<String>,
    /// Parts to begin with, besides one skill.
    #[arg(long, value_name = "PART", num_args = 1..)]
    with: Vec<Part>,
    /// Write over a `.claude-plugin` that is there.
    #[arg(long, short)]
    force: bool,
}

/// A part of a plugin that a file is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Another skill, `example`.
    Skills,
    /// An agent.
    Agents,
    /// A hook.
    Hooks,
    /// MCP servers.
    Mcp,
    /// A language server; not supported.
    Lsp,
    /// An output style that counts while the plugin is on.
    OutputStyle,
    /// A channel; not supported.
    Channel,
}

pub(super) fn run(ctx: &SettingsContext, args: &InitArgs) -> Result<String, UserError> {
    if !is_plugin_name(&args.name) {
        return Err(UserError::new(format!("`{}` is no name for a plugin", args.name))
            .hint("Letters, digits, `-`, `_` and `.` make one."));
    }
    if args.with.iter().any(|part| part.file(&args.name).is_none()) {
        return Err(UserError::new("Channels and language servers are not supported, so none is made")
            .hint("Leave `channel` and `lsp` out of `--with`."));
    }
    let root = match &args.dir {
        Some(dir) => ctx.env.cwd.join(dir).join(&args.name),
        None => skills_dir(ctx)?.join(&args.name),
    };
    refuse_existing(&root, args)?;
    for (file, text) in files(ctx, args) {
        let path = root.join(file);
        // What somebody wrote stays, but for the manifest.
        if path.exists() && !file.starts_with(".claude-plugin/") {
            continue;
        }
        write_atomic(&path, text.as_bytes(), &WriteOptions::project().creating_parents())
            .map_err(|error| UserError::new(format!("Failed to write `{}`: {error}", path.display())))?;
    }
    Ok(format!("Made {}\n{}", root.display(), next_step(&root, args)))
}

/// Returns the directory of the user's skills, unless the administrator lets no plugin lie there.
fn skills_dir(ctx: &SettingsContext) -> Result<PathBuf, UserError> {
    let source = json!({"source": SKILLS_DIR_MARKETPLACE});
    match marketplace_policy(&ctx.loaded.merged).refusal(Some(&source)) {
        Some(why) => Err(UserError::new(format!("No plugin can be made among your skills: {why}"))
            .hint("`--dir` makes it elsewhere.")),
        None => Ok(ctx.home.root().join("skills")),
    }
}

fn refuse_existing(root: &Path, args: &InitArgs) -> Result<(), UserError> {
    let is_there = root.symlink_metadata().is_ok();
    match is_there && !args.force {
        true => Err(UserError::new(format!("It is there already: `{}`", root.display()))
            .hint("`--force` writes the manifest anew and leaves other files as they are.")),
        false => Ok(()),
    }
}

fn next_step(root: &Path, args: &InitArgs) -> String {
    let name = &args.name;
    match &args.dir {
        Some(_) => format!("Try it with `loci --plugin-dir {} -p /{name}:about`\n", root.display()),
        None => format!("The next session has it as {name}@skills-dir: try `loci -p /{name}:about`\n"),
    }
}

fn files(ctx: &SettingsContext, args: &InitArgs) -> Vec<(&'static str, String)> {
    let name = &args.name;
    let about = format!(
        "---\ndescription: Says what {name} is for\n---\n\nSay in one sentence what the plugin {name} is for.\n"
    );
    let mut files =
        vec![(".claude-plugin/plugin.json", pretty(&manifest(ctx, args))), ("skills/about/SKILL.md", about)];
    files.extend(args.with.iter().filter_map(|part| part.file(name)));
    files
}

fn manifest(ctx: &SettingsContext, args: &InitArgs) -> Value {
    let mut manifest = json!({"name": args.name, "version": "0.1.0", "description": args.description});
    let author = args.author.clone().or_else(|| git_identity(&ctx.env, "user.name"));
    let email = args.author_email.clone().or_else(|| git_identity(&ctx.env, "user.email"));
    if let Some(author) = author {
        manifest["author"] = json!({"name": author});
        if let Some(email) = email {
            manifest["author"]["email"] = json!(email);
        }
    }
    manifest
}

impl Part {
    /// Returns the file to begin with; none of what has no effect here.
    fn file(self, name: &str) -> Option<(&'static str, String)> {
        Some(match self {
            Self::Skills => (
                "skills/example/SKILL.md",
                "---\ndescription: Says hello\n---\n\nSay hello to $ARGUMENTS.\n".to_owned(),
            ),
            Self::Agents => (
                "agents/example.md",
                format!(
                    "---\nname: example\ndescription: Answers questions about {name}\n---\n\nAnswer in one sentence.\n"
                ),
            ),
            Self::Hooks => (
                "hooks/hooks.json",
                pretty(&json!({"hooks": {"PostToolUse": [
                    {"matcher": "Write|Edit", "hooks": [{"type": "command", "command": "true"}]}]}})),
            ),
            Self::Mcp => (
                ".mcp.json",
                pretty(&json!({"mcpServers": {}, "examples": {
                    "remote": {"type": "http", "url": "https://example.com/mcp"},
                    "local": {"command": "${CLAUDE_PLUGIN_ROOT}/server", "args": []}}})),
            ),
            Self::OutputStyle => (
                "output-styles/style.md",
                format!(
                    "---\nname: {name}\ndescription: Short answers\nforce-for-plugin: true\nkeep-coding-instructions: true\n---\n\nAnswer in short sentences.\n"
                ),
            ),
            Self::Lsp | Self::Channel => return None,
        })
    }
}
