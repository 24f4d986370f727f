//! `loci permissions explain`: whether a call would run, and the whole way to that answer.

use loci_app::UserError;
use loci_core::permission::{
    BadMode, Call, Decision, DecisionStep, Mode, Rule, RuleFit, Rulebook, Update, Verdict, containment,
    decide, drop_refused_sandbox_exit, explain, fits, suggest,
};
use loci_core::tool::{CallEffects, Containment, PathEffect, Unclear};
use serde_json::{Value, json};

use super::call::Written;
use super::{origin, rule_json};
use crate::config::{SettingsContext, pretty};

#[derive(Debug, Clone, clap::Args)]
pub(super) struct ExplainArgs {
    /// The call: a tool and its input, as JSON or the argument that matters most, such as `Bash git push`. Options come
    /// before it, or behind a call in quotes; what comes behind a call without quotes, or behind `--`, is part of it.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    call: Vec<String>,
    /// Explain for this mode instead of the one a session would start in.
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<Mode>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    /// Returns the arguments with those options taken out that stand behind a call in quotes.
    fn with_options_behind(&self) -> Result<Self, UserError> {
        let mut args = self.clone();
        let Some((call, behind)) = self.call.split_first().filter(|(call, _)| is_quoted(call)) else {
            return Ok(args);
        };
        let mut words = behind.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match (word, word.strip_prefix("--permission-mode=")) {
                ("--json", _) => args.json = true,
                ("--permission-mode", _) => {
                    args.permission_mode = Some(mode(words.next().unwrap_or_default())?);
                }
                (_, Some(name)) => args.permission_mode = Some(mode(name)?),
                // Something else: all of it is the call's.
                _ => return Ok(self.clone()),
            }
        }
        args.call = vec![call.clone()];
        Ok(args)
    }

    /// Tells that what looks like an option was taken for a part of the call.
    fn note(&self) -> Option<String> {
        let is_option = |word: &String| word.split('=').next() == Some("--permission-mode");
        self.call.iter().any(is_option).then(|| {
            "`--permission-mode` was taken for a part of the call: write it before the call, or the call in quotes"
                .to_owned()
        })
    }
}

/// Tells whether a call came as one argument, with its input.
fn is_quoted(call: &str) -> bool {
    call.trim().contains(char::is_whitespace)
}

fn mode(name: &str) -> Result<Mode, UserError> {
    name.parse().map_err(|error: BadMode| UserError::new(error.to_string()))
}

pub(super) fn run(ctx: &SettingsContext, args: &ExplainArgs) -> Result<String, UserError> {
    let args = args.with_options_behind()?;
    let written = Written::parse(&args.call.join(" "))?;
    let (book, mut notes) = super::rulebook(ctx, args.permission_mode);
    notes.extend(args.note());
    let mut effects = written.effects(&book);
    let containment = containment(
        &Call {
            tool: &written.tool,
            command: written.command(),
            input: &written.input,
            effects: &effects,
            hook: None,
        },
        &book,
    );
    drop_refused_sandbox_exit(&containment, &mut effects.unknown);
    effects.containment = containment;
    let call = Call {
        tool: &written.tool,
        command: written.command(),
        input: &written.input,
        effects: &effects,
        hook: None,
    };
    let decision = decide(&call, &book);
    let explained = Explained {
        steps: explain(&call, &book),
        fits: fits(&call, &book),
        grants: suggest(&call, &book, &decision),
        decision,
        call,
        book: &book,
        notes,
    };
    Ok(if args.json { pretty(&explained.to_json()) } else { explained.to_text() })
}

struct Explained<'a> {
    call: Call<'a>,
    book: &'a Rulebook,
    decision: Decision,
    steps: Vec<DecisionStep>,
    fits: Vec<(&'a Rule, RuleFit)>,
    grants: Vec<Update>,
    notes: Vec<String>,
}

impl Explained<'_> {
    fn to_text(&self) -> String {
        let Decision { verdict, reason } = &self.decision;
        let mut out = format!("{}: {reason}\n", name(*verdict));
        out += &format!("\nMode: {}\n\nSteps:\n", self.book.mode);
        for step in &self.steps {
            out += &format!("  {:<36} {}\n", step.check, outcome(step));
        }
        out += "\nRules about it:\n";
        for (rule, fit) in &self.fits {
            let list = rule.list().as_str();
            out += &format!("  {list:<5} {}  ({})  {}\n", rule.text(), origin(rule), fit_text(*fit));
        }
        if self.fits.is_empty() {
            out += &format!("  none: no rule of any settings file is about {}\n", self.call.tool);
        }
        out += "\nWhat it would do:\n";
        let rows = effect_rows(self.call.effects);
        out += &rows.iter().map(|(what, text)| format!("  {what:<11} {text}\n")).collect::<String>();
        if rows.is_empty() {
            out += "  nothing that is judged\n";
        }
        out += &self.advice();
        out + &self.notes.iter().map(|note| format!("\n{note}\n")).collect::<String>()
    }

    fn advice(&self) -> String {
        if self.decision.verdict == Verdict::Allow {
            return String::new();
        }
        let lines: String = self.grants.iter().map(|grant| format!("  {grant}\n")).collect();
        match lines.is_empty() {
            true => "\nNo rule is offered that would let it run unasked.\n".to_owned(),
            false => format!("\nWhat would let it run:\n{lines}"),
        }
    }

    fn to_json(&self) -> Value {
        let rules: Vec<Value> = self
            .fits
            .iter()
            .map(|(rule, fit)| {
                let mut row = rule_json(rule);
                row["fit"] = Value::from(fit_text(*fit));
                row
            })
            .collect();
        let steps: Vec<Value> = self
            .steps
            .iter()
            .map(|step| {
                let decision = step.decision.as_ref();
                json!({
                    "check": step.check,
                    "verdict": decision.map(|it| name(it.verdict)),
                    "reason": decision.map(|it| it.reason.to_string()),
                })
            })
            .collect();
        json!({
            "tool": self.call.tool,
            "input": self.call.input,
            "mode": self.book.mode.as_str(),
            "verdict": name(self.decision.verdict),
            "reason": self.decision.reason.to_string(),
            "reasonType": self.decision.reason.kind(),
            "rule": self.decision.reason.rule().map(rule_json),
            "steps": steps,
            "rules": rules,
            "effects": effect_rows(self.call.effects)
                .iter()
                .map(|(what, text)| json!({"effect": what, "text": text}))
                .collect::<Vec<_>>(),
            "suggestions": self.grants.iter().map(Update::to_value).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    }
}

fn outcome(step: &DecisionStep) -> String {
    match &step.decision {
        Some(Decision { verdict, reason }) => format!("{}: {reason}", name(*verdict)),
        None => "nothing to say".to_owned(),
    }
}

fn fit_text(fit: RuleFit) -> &'static str {
    match fit {
        RuleFit::No => "does not match",
        RuleFit::Part => "covers a part",
        RuleFit::Possible => "may match",
        RuleFit::Certain => "matches",
    }
}

fn effect_rows(effects: &CallEffects) -> Vec<(&'static str, String)> {
    let path = |path: &PathEffect| match path.requested == path.real {
        true => path.real.display().to_string(),
        false => format!("{} -> {}", path.requested.display(), path.real.display()),
    };
    let mut rows = Vec::new();
    for command in &effects.commands {
        rows.push((if command.is_read_only { "runs (reads)" } else { "runs" }, command.text.clone()));
    }
    rows.extend(effects.reads.iter().map(|it| ("reads", path(it))));
    rows.extend(effects.writes.iter().map(|it| ("writes", path(it))));
    rows.extend(effects.removals.iter().map(|it| ("removes", it.text.clone())));
    rows.extend(effects.hosts.iter().map(|it| ("contacts", it.clone())));
    rows.extend(effects.unclear.iter().map(|it| match it {
        Unclear::Read(text) => ("reads (?)", text.clone()),
        Unclear::Write(text) | Unclear::Redirect(text) => ("writes (?)", text.clone()),
    }));
    rows.extend(effects.unknown.iter().map(|it| ("unknown", it.clone())));
    match &effects.containment {
        Containment::Unsaid => {}
        Containment::Inside => rows.push(("sandbox", "runs inside".to_owned())),
        Containment::Outside(why) => rows.push(("sandbox", format!("runs outside: {why}"))),
    }
    rows
}
