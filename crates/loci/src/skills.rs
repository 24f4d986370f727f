//! `loci skills`: which skills and commands there are, where each comes from, and what the model is told of it.

use std::collections::BTreeMap;

use clap::Parser as _;
use loci_app::extensions::skills::{ReadSkills, SkillOptions};
use loci_app::settings::RunSettings;
use loci_app::{RunOptions, UserError};
use loci_context::prose_tokens;
use loci_core::skill::{SkillDefinition, SkillKind, SkillOverride, SkillRegistry};
use loci_engine::{CommandRegistry, CommandScope};
use loci_stdx::{Env, printable, single_line};
use serde_json::{Value, json};

use crate::args::Args;
use crate::config::{pretty, write};

/// The most letters of a description in a list.
const MOST_LETTERS: usize = 90;

#[derive(Debug, clap::Args)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List all skills and commands: who may use them, where they come from, and what hides another.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Flags that the session would be started with, behind `--`.
        #[arg(last = true, value_name = "FLAGS")]
        flags: Vec<String>,
    },
    /// Show one skill: what it may do, what it costs, and its text.
    Show {
        /// Its name, without the slash.
        name: String,
    },
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &SkillsArgs) -> Result<u8, UserError> {
    let text = match &args.verb {
        Verb::List { json, flags } => {
            let line = std::iter::once("loci").chain(flags.iter().map(String::as_str));
            let flags = Args::try_parse_from(line)
                .map_err(|error| UserError::new(error.render().to_string().trim_end().to_owned()))?;
            let (registry, problems) = read(env, &flags.options()?)?;
            match *json {
                true => pretty(&list_json(&registry, &problems)),
                false => printable(&list_text(&registry, &problems)),
            }
        }
        Verb::Show { name } => {
            let (registry, _) = read(env, &RunOptions::default())?;
            printable(&show(&registry, name.strip_prefix('/').unwrap_or(name))?)
        }
    };
    write(&text)?;
    Ok(0)
}

fn read(env: &Env, options: &RunOptions) -> Result<(SkillRegistry, Vec<String>), UserError> {
    let run = RunSettings::load(env, options)?;
    let options = SkillOptions::new(&run);
    let read = ReadSkills::read(&run, &options);
    let problems = read.warnings();
    Ok((read.into_registry(&options), problems))
}

fn list_text(registry: &SkillRegistry, problems: &[String]) -> String {
    let mut by_scope: BTreeMap<_, Vec<&SkillDefinition>> = BTreeMap::new();
    for skill in registry.all() {
        by_scope.entry(skill.source.scope).or_default().push(skill);
    }
    let mut out = String::new();
    for (scope, skills) in by_scope {
        out += &format!("{}\n", scope.as_str());
        for skill in skills {
            let description = single_line(&skill.description, MOST_LETTERS);
            out += &format!(
                "  /{}  {description}\n    {}; {}\n",
                skill.name,
                users(registry, skill),
                skill.source
            );
            out += &notes(skill).iter().map(|note| format!("    ! {note}\n")).collect::<String>();
        }
    }
    for (lost, won) in registry.hidden() {
        out += &format!("! /{} of {} is hidden by that of {}\n", lost.name, lost.source, won.source);
    }
    if out.is_empty() {
        out += "There are no skills\n";
    }
    out + &problems.iter().map(|problem| format!("! {problem}\n")).collect::<String>()
}

/// Returns what people should know of a skill: what it says in vain, and that its name is one of our own commands.
fn notes(skill: &SkillDefinition) -> Vec<String> {
    let builtin = CommandRegistry::builtin();
    let command = builtin.find_in_terminal(&skill.name).filter(|_| skill.is_for_people);
    let taken = command.map(|command| match command.scope {
        CommandScope::Everywhere => {
            format!("`/{}` is a command of loci: people cannot type this one", skill.name)
        }
        CommandScope::UnlessTaken | CommandScope::Terminal => {
            format!(
                "at a terminal `/{}` is a command of loci; this one is typed only without one",
                skill.name
            )
        }
    });
    skill.notes.iter().cloned().chain(taken).collect()
}

/// Says who may use a skill.
fn users(registry: &SkillRegistry, skill: &SkillDefinition) -> String {
    let who = match (registry.override_of(skill), skill.is_for_people, skill.is_for_model) {
        (SkillOverride::Off, ..) => "nobody: skillOverrides turns it off",
        (_, true, false) | (SkillOverride::UserInvocableOnly, true, true) => "people",
        (_, true, true) => "people and the model",
        (_, false, true) => "the model",
        (_, false, false) => "nobody: its front matter says so",
    };
    format!("{who}; about {} tokens", prose_tokens(&skill.body))
}

fn list_json(registry: &SkillRegistry, problems: &[String]) -> Value {
    let hidden: Vec<Value> = registry
        .hidden()
        .map(|(lost, won)| json!({"name": lost.name, "source": lost.source.to_string(), "by": won.source.to_string()}))
        .collect();
    json!({
        "skills": registry.all().map(|skill| skill_json(registry, skill)).collect::<Vec<_>>(),
        "hidden": hidden,
        "problems": problems,
    })
}

fn skill_json(registry: &SkillRegistry, skill: &SkillDefinition) -> Value {
    json!({
        "name": skill.name,
        "kind": match skill.source.kind {
            SkillKind::Skill => "skill",
            SkillKind::CommandFile => "command",
        },
        "description": skill.description,
        "scope": skill.source.scope.as_str(),
        "source": skill.source.to_string(),
        "isTrusted": skill.source.is_trusted,
        "isOff": registry.override_of(skill) == SkillOverride::Off,
        "forPeople": skill.is_for_people,
        "forModel": skill.is_for_model,
        "allowedTools": skill.allowed_tools,
        "disallowedTools": skill.disallowed_tools,
        "tokens": prose_tokens(&skill.body),
        "listingTokens": prose_tokens(&skill.summary()),
        "notes": notes(skill),
    })
}

fn show(registry: &SkillRegistry, name: &str) -> Result<String, UserError> {
    let found =
        registry.all().find(|skill| skill.name == name).or_else(|| registry.find(name).map(AsRef::as_ref));
    let skill = found.ok_or_else(|| {
        UserError::new(format!("There is no skill `{name}`"))
            .hint("`loci skills list` shows those there are.")
    })?;
    let mut out = format!("/{}  ({}, {})\n", skill.name, skill.source.scope.as_str(), skill.source);
    let listed = |items: &[String]| items.join(", ");
    let fields = [
        ("for", users(registry, skill)),
        ("description", skill.summary()),
        ("arguments", skill.argument_hint.clone().unwrap_or_default()),
        ("allowed-tools", listed(&skill.allowed_tools)),
        ("disallowed-tools", listed(&skill.disallowed_tools)),
        ("model", skill.model.clone().unwrap_or_default()),
        ("effort", skill.effort.clone().unwrap_or_default()),
        ("runs in", fork_text(skill)),
        ("paths", listed(&skill.paths)),
        ("costs", cost_text(skill)),
        ("hooks", skill.hooks.as_ref().map(Value::to_string).unwrap_or_default()),
    ];
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        out += &format!("{name}: {value}\n");
    }
    for (lost, _) in registry.hidden().filter(|(lost, _)| lost.name == skill.name) {
        out += &format!("hides that of {}\n", lost.source);
    }
    out += &notes(skill).iter().map(|note| format!("! {note}\n")).collect::<String>();
    Ok(out + &format!("\n{}\n", skill.body))
}

fn fork_text(skill: &SkillDefinition) -> String {
    let Some(fork) = &skill.fork else { return String::new() };
    let kind = fork.agent.as_deref().unwrap_or(loci_core::agent::GENERAL_PURPOSE);
    let waits = if fork.is_background { "in the background at a terminal" } else { "waited for" };
    format!("an agent of the type {kind}, {waits}")
}

/// Says what a skill costs: before it is used, and when it is.
fn cost_text(skill: &SkillDefinition) -> String {
    let is_told = skill.is_for_model && skill.is_listed;
    let listed = if is_told { prose_tokens(&skill.summary()) } else { 0 };
    format!("about {listed} tokens in every conversation, {} when it is used", prose_tokens(&skill.body))
}
