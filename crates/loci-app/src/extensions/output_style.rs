//! The output style of a run: the one that settings name, among those of loci and those of files.

use std::sync::Arc;

use loci_context::StylePrompt;
use loci_core::output_style::{DEFAULT_STYLE, OutputStyle, builtin_styles, find_style};
use loci_storage::config::discover_output_styles;
use serde_json::Value;

use crate::settings::RunSettings;

/// The style that settings choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenStyle {
    /// Its name, as settings have it.
    pub name: String,
    /// What the model is told; nothing for the usual way.
    pub prompt: Option<StylePrompt>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Chooses the style of a run. No file is read for the usual one.
pub fn choose_style(run: &RunSettings) -> ChosenStyle {
    let named = run.in_force.get("outputStyle").and_then(Value::as_str).unwrap_or(DEFAULT_STYLE);
    let name = named.to_owned();
    if let Some(style) = run.plugins.styles().into_iter().find(|style| style.is_forced && !run.is_bare) {
        let warnings = notes_of(&style);
        let prompt = Some(StylePrompt { text: style.text, keeps_coding: style.keeps_coding });
        return ChosenStyle { name: style.name, prompt, warnings };
    }
    if run.is_bare || named.eq_ignore_ascii_case(DEFAULT_STYLE) {
        return ChosenStyle { name, prompt: None, warnings: Vec::new() };
    }
    let (styles, mut warnings) = all_styles(run);
    let found = find_style(&styles, named);
    if found.is_none() {
        let known: Vec<&str> = styles.iter().map(|style| style.name.as_str()).collect();
        warnings.push(format!(
            "There is no output style `{named}`, so the usual one counts; there are: {DEFAULT_STYLE}, {}",
            known.join(", ")
        ));
    }
    warnings.extend(found.into_iter().flat_map(notes_of));
    let prompt =
        found.map(|style| StylePrompt { text: style.text.clone(), keeps_coding: style.keeps_coding });
    ChosenStyle { name, prompt, warnings }
}

/// Says what the front matter of a style says in vain.
fn notes_of(style: &OutputStyle) -> Vec<String> {
    style.notes.iter().map(|note| format!("Output style `{}`: {note}", style.name)).collect()
}

/// Lists the names of all styles, the usual one first, when it is asked: files are read for it.
pub type StyleNames = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Returns what lists the names of all styles.
pub fn style_names(run: &RunSettings) -> StyleNames {
    let places = run.instructions.definition_places(&run.env, &run.home);
    let (is_bare, plugins) = (run.is_bare, Arc::clone(&run.plugins));
    Arc::new(move || {
        let mut names = vec![DEFAULT_STYLE.to_owned()];
        let (found, _) = if is_bare { Default::default() } else { discover_output_styles(&places) };
        for style in found.into_iter().chain(builtin_styles()).chain(plugins.styles()) {
            if !names.contains(&style.name) {
                names.push(style.name);
            }
        }
        names
    })
}

/// Files come first: they may take the place of those of loci.
fn all_styles(run: &RunSettings) -> (Vec<OutputStyle>, Vec<String>) {
    let places = run.instructions.definition_places(&run.env, &run.home);
    let (mut styles, problems) = discover_output_styles(&places);
    styles.extend(builtin_styles());
    styles.extend(run.plugins.styles());
    (styles, problems)
}
