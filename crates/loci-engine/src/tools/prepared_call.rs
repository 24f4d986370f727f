//! From a call the model made to a call that may run: lookup, schema, validation, permission.

use loci_core::ids::ToolUseId;
use loci_core::message::ToolUse;
use loci_core::permission::{
    Call, Decision, HookVerdict, Rulebook, Update, containment, decide, drop_refused_sandbox_exit, suggest,
};
use loci_core::tool::{CallEffects, Interaction, ToolFacts, ToolOutcome};
use loci_llm::UNPARSED_INPUT;
use loci_tools::{Host, Toolbox, Workspace};
use serde_json::Value;

use crate::extensions::{HookCall, HookMoment};
use crate::turn::{Concurrency, Preparation};

/// Arguments that name a file.
const PATHS: [&str; 2] = ["file_path", "notebook_path"];

/// A call that was looked up and checked.
#[derive(Debug, Clone)]
pub(crate) struct PreparedCall {
    pub(crate) id: ToolUseId,
    /// The tool's canonical name.
    pub(crate) tool: String,
    /// What its descriptor says of every call.
    pub(crate) facts: ToolFacts,
    /// The arguments after defaulting and coercion.
    pub(crate) input: Value,
    /// What it was judged by; the tool touches the paths named here and no others.
    pub(crate) effects: CallEffects,
    /// What hooks said about it; whoever judges it sees this.
    pub(crate) hook: Option<HookVerdict>,
    /// Whether a hook has said yes in a person's place, and handed in what a person would have.
    pub(crate) is_approved: bool,
}

impl PreparedCall {
    /// Returns the call as hooks see it: paths of files are absolute.
    pub(crate) fn for_hooks(&self, workspace: &Workspace, moment: HookMoment) -> HookCall {
        let mut input = self.input.clone();
        for key in PATHS.into_iter().filter(|_| !self.facts.keeps_input) {
            if let Some(Value::String(path)) = input.get_mut(key) {
                *path = workspace.resolve(path).requested.display().to_string();
            }
        }
        let (id, tool, effects) = (self.id.clone(), self.tool.clone(), self.effects.clone());
        HookCall { id, tool, input, effects, moment }
    }
}

/// What judging a call came to.
#[derive(Debug)]
pub(crate) struct PermissionCheck {
    pub(crate) decision: Decision,
    /// What it would do.
    pub(crate) effects: CallEffects,
    /// What would let it run, where it does not.
    pub(crate) suggestions: Vec<Update>,
}

/// Looks a call up and checks its input.
pub(crate) fn prepare(
    toolbox: &Toolbox,
    host: &dyn Host,
    call: &ToolUse,
) -> Result<(PreparedCall, Concurrency), Box<ToolOutcome>> {
    let (Some(tool), Some(check)) = (toolbox.find(&call.name), toolbox.input_check(&call.name)) else {
        return Err(Box::new(unknown_tool(toolbox, &call.name)));
    };
    if let Some(text) = call.input.get(UNPARSED_INPUT).and_then(Value::as_str) {
        return Err(Box::new(ToolOutcome::invalid_input(format!(
            "the arguments of {} were not a JSON object: {}",
            call.name,
            loci_stdx::single_line(text, 200)
        ))));
    }
    let input = match tool.descriptor().facts.keeps_input {
        true => check.check_as_given(&call.input),
        false => check.check(&call.input).map_err(|problem| {
            Box::new(ToolOutcome::invalid_input(format!(
                "the input of {} does not fit its schema:\n{problem}",
                call.name
            )))
        })?,
    };
    tool.validate(&input, host)?;
    let concurrency = match (tool.is_concurrency_safe(&input), tool.descriptor().facts.is_unbounded) {
        (true, true) => Concurrency::Unbounded,
        (true, false) => Concurrency::Shared,
        (false, _) => Concurrency::Exclusive,
    };
    let descriptor = tool.descriptor();
    let (id, tool, facts) = (call.id.clone(), descriptor.name.clone(), descriptor.facts);
    let (effects, hook) = (CallEffects::default(), None);
    Ok((PreparedCall { id, tool, facts, input, effects, hook, is_approved: false }, concurrency))
}

/// Wraps [`prepare`] for the turn machine and keeps the calls that can go on.
pub(crate) fn prepare_all(
    toolbox: &Toolbox,
    host: &dyn Host,
    calls: &[ToolUse],
) -> (Vec<PreparedCall>, Vec<Preparation>) {
    let mut ready = Vec::new();
    let preparations = calls
        .iter()
        .map(|call| match prepare(toolbox, host, &from_model(toolbox, host, call)) {
            Ok((prepared, concurrency)) => {
                ready.push(prepared);
                Preparation::Ready { call: call.id.clone(), concurrency }
            }
            Err(outcome) => Preparation::Refused { call: call.id.clone(), outcome: *outcome },
        })
        .collect();
    (ready, preparations)
}

/// Returns a call without what only people and hooks may put into it, and with what the house knows.
pub(crate) fn from_model(toolbox: &Toolbox, host: &dyn Host, call: &ToolUse) -> ToolUse {
    let (name, input) = (toolbox.redirected(&call.name).to_owned(), call.input.clone());
    let input = match toolbox.find(&name) {
        Some(tool) => tool.model_input(input, host),
        None => input,
    };
    ToolUse { name, input, ..call.clone() }
}

/// Judges a prepared call by its effects.
pub(crate) fn check_permission(
    toolbox: &Toolbox,
    host: &dyn Host,
    book: Rulebook,
    call: &PreparedCall,
) -> PermissionCheck {
    check_permission_at(toolbox, host.workspace(), book, call)
}

/// Judges a prepared call as if it were made at a place.
pub(crate) fn check_permission_at(
    toolbox: &Toolbox,
    place: Workspace,
    book: Rulebook,
    call: &PreparedCall,
) -> PermissionCheck {
    let mut effects = match toolbox.find(&call.tool) {
        Some(tool) => tool.effects(&call.input, &place),
        None => CallEffects::unknown(format!("there is no tool `{}`", call.tool)),
    };
    if call.is_approved {
        effects.interaction = effects.interaction.filter(|needed| *needed != Interaction::PlanApproval);
    }
    // What another program calls a command is none that a shell runs.
    let command = call.input.get("command").and_then(Value::as_str).filter(|_| !call.facts.keeps_input);
    let book = Rulebook { cwd: place.cwd, ..book };
    let hook = call.hook.as_ref();
    let containment =
        containment(&Call { tool: &call.tool, command, input: &call.input, effects: &effects, hook }, &book);
    drop_refused_sandbox_exit(&containment, &mut effects.unknown);
    effects.containment = containment;
    let judged = Call { tool: &call.tool, command, input: &call.input, effects: &effects, hook };
    let decision = decide(&judged, &book);
    let suggestions = suggest(&judged, &book, &decision);
    PermissionCheck { decision, effects, suggestions }
}

fn unknown_tool(toolbox: &Toolbox, name: &str) -> ToolOutcome {
    let names: Vec<&str> = toolbox.available().map(|descriptor| descriptor.name.as_str()).collect();
    if toolbox.is_deferred(name) {
        return ToolOutcome::refusal(format!(
            "{name} has not been looked for yet. Call ToolSearch with the query `select:{name}`, then call {name}."
        ));
    }
    let why = match toolbox.is_retired(name) {
        true => format!("The tool is no longer available: {name}"),
        false => format!("No such tool available: {name}"),
    };
    ToolOutcome::refusal(format!("{why}. The tools are: {}", names.join(", ")))
}
