//! `/model [name]`: which models there are, which one is asked, and asking another.

use loci_core::hooks::HookEvent;
use loci_core::model::MODEL_ALIASES;
use loci_engine::{LocalEffect, LocalOutcome, SessionSnapshot, available_model, resolve_model};
use loci_settings::Scope;

use super::{SessionCommands, cell, refused, short_tokens};
use crate::models::gateway::gateway_models;
use crate::models::pinned::pinned_models;
use crate::settings::editor::NamedKey;
use crate::user_error::UserError;

/// A model that can be chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelRow {
    /// What is typed: an alias or an id.
    pub name: String,
    /// The id it stands for.
    pub id: String,
    /// What variables call it, for people.
    pub label: Option<String>,
    /// What variables say of it.
    pub description: Option<String>,
    /// How much it can read, in tokens.
    pub window: u64,
    /// US dollars per million tokens, in and out.
    pub price: Option<(f64, f64)>,
    /// Whether it is asked now.
    pub is_current: bool,
    /// Whether settings let it be chosen.
    pub is_available: bool,
}

impl ModelRow {
    fn new(commands: &SessionCommands, session: &SessionSnapshot, name: &str) -> Self {
        let vars = &commands.env.vars;
        let allowed = available_model(vars, &session.settings, name);
        let is_available = allowed.is_some();
        let id = allowed.unwrap_or_else(|| resolve_model(vars, name));
        let facts = session.catalog.facts(&id);
        let plain = id.trim_end_matches("[1m]");
        let pinned = pinned_models(vars).into_iter().find(|model| {
            model.id == plain
                && model.alias.is_none_or(|alias| alias.eq_ignore_ascii_case(name) || name == id)
        });
        let (label, description) = pinned.map(|model| (model.label, model.description)).unwrap_or_default();
        Self {
            name: name.to_owned(),
            label,
            description,
            window: facts.window,
            price: facts.price.map(|price| (price.input, price.output)),
            is_current: id == session.model,
            is_available,
            id,
        }
    }

    /// Says what it can read and what it costs.
    pub fn facts(&self) -> String {
        let price = match self.price {
            Some((input, output)) => format!("${input} in, ${output} out per million tokens"),
            None => "price unknown".to_owned(),
        };
        let said = [self.label.as_deref(), self.description.as_deref()].into_iter().flatten();
        let said: String = said.map(|text| format!("{text}; ")).collect();
        format!("{said}{} tokens, {price}", short_tokens(self.window))
    }
}

/// Returns the models that can be chosen: the aliases, what the environment adds, what settings name, and the one at hand.
pub fn rows(commands: &SessionCommands, session: &SessionSnapshot) -> Vec<ModelRow> {
    let custom = commands.env.vars.non_empty("ANTHROPIC_CUSTOM_MODEL_OPTION");
    let listed = session.settings["availableModels"].as_array().into_iter().flatten();
    let listed = listed.filter_map(serde_json::Value::as_str);
    let described = session.settings["providers"].as_object().into_iter().flatten();
    let described: Vec<String> = described
        .filter_map(|(provider, entry)| Some((provider, entry["models"].as_object()?)))
        .flat_map(|(provider, models)| models.keys().map(move |id| format!("{provider}/{id}")))
        .collect();
    let described = described.iter().map(String::as_str);
    let names = MODEL_ALIASES.iter().copied().chain(custom).chain(listed).chain(described);
    let mut rows: Vec<ModelRow> = Vec::new();
    for name in names {
        if !rows.iter().any(|row| row.name.eq_ignore_ascii_case(name)) {
            rows.push(ModelRow::new(commands, session, name));
        }
    }
    add_gateway_models(commands, session, &mut rows);
    if !rows.iter().any(|row| row.is_current) {
        rows.push(ModelRow { is_available: true, ..ModelRow::new(commands, session, &session.model) });
    }
    rows
}

/// Adds what the gateway told of: models that settings let be chosen, and that no other row means already.
fn add_gateway_models(commands: &SessionCommands, session: &SessionSnapshot, rows: &mut Vec<ModelRow>) {
    let is_fable = |id: &str| id.to_ascii_lowercase().contains("fable");
    for model in gateway_models(&commands.env.vars, &commands.home) {
        let means_it = |row: &ModelRow| {
            row.name.eq_ignore_ascii_case(&model.id)
                || row.id.trim_end_matches("[1m]") == model.id
                || (is_fable(&row.id) && is_fable(&model.id))
        };
        let row = ModelRow {
            label: model.display_name.clone(),
            description: Some("From gateway".to_owned()),
            ..ModelRow::new(commands, session, &model.id)
        };
        if row.is_available && !rows.iter().any(means_it) {
            rows.push(row);
        }
    }
}

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands, argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    match argument {
        "" => LocalOutcome::text(to_markdown(&rows(commands, session), session)),
        name => choose(commands, name, session).unwrap_or_else(|error| refused(&error)),
    }
}

fn to_markdown(rows: &[ModelRow], session: &SessionSnapshot) -> String {
    let mut text =
        format!("## Model\n\nAsked now: `{}`\n\n| | Name | Model | |\n|---|---|---|---|\n", session.model);
    for row in rows {
        let mark = match (row.is_current, row.is_available) {
            (true, _) => "now",
            (false, true) => "",
            (false, false) => "not available",
        };
        text.push_str(&format!("| {mark} | {} | {} | {} |\n", cell(&row.name), cell(&row.id), row.facts()));
    }
    text.push_str("\nSay `/model NAME` to ask another\n");
    text
}

/// Asks another model, and keeps that in the user's settings where somebody sits at a terminal: a program means the session
/// that it drives.
fn choose(
    commands: &SessionCommands,
    name: &str,
    session: &SessionSnapshot,
) -> Result<LocalOutcome, UserError> {
    if name.contains(char::is_whitespace) {
        return Err(UserError::new(format!("No model is called `{name}`"))
            .hint("Say `/model` to see which there are."));
    }
    let Some(id) = available_model(&commands.env.vars, &session.settings, name) else {
        return Err(UserError::new(format!("Settings do not let `{name}` be chosen"))
            .hint("See `loci config explain availableModels`."));
    };
    let usual = resolve_model(&commands.env.vars, name);
    let replaced =
        if usual == id { String::new() } else { format!(" (settings do not let `{usual}` be chosen)") };
    let ctx = commands.settings_context();
    let kept = match name.eq_ignore_ascii_case("default") {
        // What hooks may yet refuse is not kept: a later session would begin with it unasked.
        _ if !session.is_interactive || session.hooks.has(HookEvent::PreModelSwitch) => {
            ", for this session".to_owned()
        }
        true => match ctx.unset(&["model"], Scope::User)? {
            true => "; your settings name none any more".to_owned(),
            false => String::new(),
        },
        false => {
            let change = ctx.set(&NamedKey::parse("model")?, &name.into(), Scope::User)?;
            let no_effect = change.no_effect.map(|why| format!(". For later sessions: {why}"));
            format!(", kept in {}{}", change.file, no_effect.unwrap_or_default())
        }
    };
    let unknown = if session.catalog.facts(&id).is_known {
        ""
    } else {
        ". Nothing is known of it: window and price are assumed"
    };
    Ok(LocalOutcome::text(format!("The model is `{id}` now{replaced}{kept}{unknown}"))
        .with(LocalEffect::SetModel(Some(name.to_owned()))))
}
