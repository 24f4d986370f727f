//! What the command of the status line reads.

use std::path::Path;

use loci_core::stream::RateLimits;
use loci_core::usage::Usage;
use loci_engine::SessionSnapshot;
use serde_json::{Map, Value, json};

use super::repository::{branch, origin, worktree_name};

/// More tokens than this are said to be many, whatever the window.
const MANY_TOKENS: u64 = 200_000;

/// What the front end knows beside the session.
#[derive(Debug, Clone, Default)]
pub struct StatusViewer {
    /// The release.
    pub version: String,
    /// The mode of vim's keys, where they are in force.
    pub vim_mode: Option<&'static str>,
    /// The open pull request of the branch at hand, where one is known.
    pub pull_request: Option<Value>,
}

/// Returns what the command reads of a session. It looks at a few files of git, so front ends call it beside the thread
/// that draws.
pub fn status_input(session: &SessionSnapshot, viewer: &StatusViewer) -> Value {
    let text = |value: &std::path::Path| value.display().to_string();
    let mut input = json!({
        "hook_event_name": "Status",
        "session_id": session.session.as_str(),
        "transcript_path": session.transcript.as_deref().map(text).unwrap_or_default(),
        "cwd": text(&session.current_dir),
        "model": {"id": session.model, "display_name": display_name(&session.model)},
        "workspace": workspace(session),
        "version": viewer.version,
        "output_style": {"name": session.output_style},
        "cost": {
            "total_cost_usd": session.totals.cost_usd(),
            "total_duration_ms": session.wall.as_millis() as u64,
            "total_api_duration_ms": session.totals.api.as_millis() as u64,
            "total_lines_added": session.totals.lines.added,
            "total_lines_removed": session.totals.lines.removed,
        },
        "context_window": context_window(session),
        "exceeds_200k_tokens": session.last_usage.as_ref().is_some_and(|usage| {
            input_tokens(usage) + usage.output_tokens > MANY_TOKENS
        }),
        "fast_mode": false,
        "thinking": {"enabled": session.max_thinking_tokens != Some(0)},
    });
    let name = session.title.as_ref().map(|title| ("session_name", json!(title)));
    let prompt = session.prompt.as_ref().map(|id| ("prompt_id", json!(id.as_str())));
    // What is asked for, also where nobody chose; a model that knows no effort has none.
    let effort = session.catalog.facts(&session.model).effort(session.effort.as_deref());
    let effort = effort.map(|level| ("effort", json!({"level": level})));
    let agent = session.main_agent.as_ref().map(|name| ("agent", json!({"name": name})));
    let worktree = worktree(&session.worktree).map(|it| ("worktree", it));
    let vim = viewer.vim_mode.map(|mode| ("vim", json!({"mode": mode})));
    let sandbox =
        session.sandbox.map(|it| ("sandbox", json!({"level": it.level.to_string(), "hosts": it.n_hosts})));
    let limits = session.rate_limits.as_deref().and_then(rate_limits).map(|it| ("rate_limits", it));
    let pull_request = viewer.pull_request.as_ref().map(|it| ("pr", it.clone()));
    let more = [name, prompt, effort, agent, worktree, vim, sandbox, limits, pull_request];
    for (key, value) in more.into_iter().flatten() {
        input[key] = value;
    }
    input
}

fn workspace(session: &SessionSnapshot) -> Value {
    let added: Vec<String> =
        session.rulebook.dirs.iter().skip(1).map(|dir| dir.display().to_string()).collect();
    let mut workspace = json!({
        "current_dir": session.current_dir.display().to_string(),
        "project_dir": session.cwd.display().to_string(),
        "added_dirs": added,
    });
    if let Some(name) = worktree_name(&session.current_dir) {
        workspace["git_worktree"] = json!(name);
    }
    if let Some(repository) = origin(&session.current_dir) {
        workspace["repo"] = repository;
    }
    workspace
}

/// Says how much of the account's limits is used, of those that have figures.
fn rate_limits(limits: &RateLimits) -> Option<Value> {
    let windows = [("five_hour", limits.five_hour), ("seven_day", limits.seven_day)];
    let told: Map<String, Value> = windows
        .into_iter()
        .filter_map(|(name, window)| {
            let window = window?;
            // A figure such as 0.57 * 100 is not a whole one.
            let percentage = (window.utilization * 1e4).round() / 1e2;
            let mut told = json!({"used_percentage": percentage.clamp(0.0, 100.0)});
            if let Some(at) = window.resets_at {
                told["resets_at"] = json!(at);
            }
            Some((name.to_owned(), told))
        })
        .collect();
    (!told.is_empty()).then_some(Value::Object(told))
}

/// Counts what the last answer was made from: input alone fills the window.
fn context_window(session: &SessionSnapshot) -> Value {
    let window = session.context.fullness.window;
    let usage = session.last_usage.as_ref();
    let tokens = usage.map(input_tokens);
    let percentage =
        tokens.filter(|_| window > 0).map(|n| (n * 100 + window / 2) / window).map(|n| n.min(100));
    let current = usage.map(|usage| {
        json!({
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_creation_input_tokens": usage.cache_creation_input_tokens,
            "cache_read_input_tokens": usage.cache_read_input_tokens,
        })
    });
    json!({
        "total_input_tokens": tokens.unwrap_or(0),
        "total_output_tokens": usage.map_or(0, |usage| usage.output_tokens),
        "context_window_size": window,
        "used_percentage": percentage,
        "remaining_percentage": percentage.map(|n| 100 - n),
        "current_usage": current,
    })
}

fn input_tokens(usage: &Usage) -> u64 {
    usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
}

/// Says in which working copy a session is, from what its transcript says.
fn worktree(record: &Value) -> Option<Value> {
    let fields = [
        ("name", "worktreeName"),
        ("path", "worktreePath"),
        ("branch", "worktreeBranch"),
        ("original_cwd", "originalCwd"),
        ("original_branch", "originalBranch"),
    ];
    let record = record.as_object()?;
    let mut told: Map<String, Value> = fields
        .iter()
        .filter_map(|(name, key)| {
            Some(((*name).to_owned(), record.get(*key).filter(|it| !it.is_null())?.clone()))
        })
        .collect();
    // One that a hook made has no branches that we know of.
    let original = told.get("original_cwd").filter(|_| told.contains_key("branch"));
    if let Some(branch) = original.and_then(|dir| branch(Path::new(dir.as_str()?))) {
        told.entry("original_branch").or_insert(json!(branch));
    }
    Some(Value::Object(told))
}

/// Names a model for people: `claude-sonnet-4-5-20250929` is `Sonnet 4.5`. One of another family keeps its name.
fn display_name(model: &str) -> String {
    let Some(rest) = model.strip_prefix("claude-") else { return model.to_owned() };
    let (mut words, mut numbers) = (Vec::new(), Vec::new());
    for part in rest.split('-') {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        match (is_number, part.len()) {
            (true, 1 | 2) => numbers.push(part),
            // A date.
            (true, _) => {}
            (false, _) => words.push(capitalised(part)),
        }
    }
    let version = numbers.join(".");
    words.extend(Some(version).filter(|it| !it.is_empty()));
    words.join(" ")
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use loci_core::ids::SessionId;
    use loci_core::stream::RateWindow;

    use super::*;

    #[test]
    fn models_are_named_for_people() {
        for (model, expected) in [
            ("claude-sonnet-4-5-20250929", "Sonnet 4.5"),
            ("claude-opus-5", "Opus 5"),
            ("claude-3-7-sonnet-20250219", "Sonnet 3.7"),
            ("gpt-5", "gpt-5"),
        ] {
            assert_eq!(display_name(model), expected);
        }
    }

    #[test]
    fn session_without_an_answer_has_no_usage_and_one_with_it_counts_input_alone() {
        let mut session = SessionSnapshot::empty(
            SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap(),
            "claude-sonnet-4-5",
        );
        let mut viewer = StatusViewer { version: "9.9.9".to_owned(), ..StatusViewer::default() };
        let input = status_input(&session, &viewer);
        assert_eq!(input["context_window"]["current_usage"], Value::Null);
        assert_eq!(input["context_window"]["used_percentage"], Value::Null);
        for absent in ["session_name", "prompt_id", "effort", "agent", "worktree", "vim", "pr", "rate_limits"]
        {
            assert!(input.get(absent).is_none(), "{absent}");
        }
        session.last_usage = Some(Usage {
            input_tokens: 10_000,
            output_tokens: 5_000,
            cache_read_input_tokens: 8_000,
            cache_creation_input_tokens: 2_000,
            ..Usage::default()
        });
        session.worktree = json!({"worktreeName": "w", "worktreePath": "/w", "worktreeBranch": null});
        (session.title, session.effort) = (Some("Port".into()), Some("high".into()));
        viewer.vim_mode = Some("NORMAL");
        viewer.pull_request = Some(json!({"number": 7, "url": "https://h/7"}));
        session.rate_limits = Some(Box::new(RateLimits {
            five_hour: Some(RateWindow { utilization: 0.57, resets_at: Some(1_800_000_000) }),
            ..RateLimits::default()
        }));
        let input = status_input(&session, &viewer);
        assert_eq!(input["vim"], json!({"mode": "NORMAL"}));
        assert_eq!(input["pr"]["number"], json!(7));
        let five_hour = json!({"used_percentage": 57.0, "resets_at": 1_800_000_000});
        assert_eq!(input["rate_limits"], json!({"five_hour": five_hour}));
        let window = &input["context_window"];
        assert_eq!(
            (&window["total_input_tokens"], &window["total_output_tokens"]),
            (&json!(20_000), &json!(5_000))
        );
        assert_eq!((&window["used_percentage"], &window["remaining_percentage"]), (&json!(10), &json!(90)));
        assert_eq!(input["model"], json!({"id": "claude-sonnet-4-5", "display_name": "Sonnet 4.5"}));
        assert_eq!((&input["session_name"], &input["effort"]), (&json!("Port"), &json!(null)));
        for (model, chosen, level) in
            [("claude-opus-4-8", Some("low"), "low"), ("claude-opus-4-8", None, "high")]
        {
            (session.model, session.effort) = (model.to_owned(), chosen.map(str::to_owned));
            assert_eq!(status_input(&session, &viewer)["effort"], json!({"level": level}), "{chosen:?}");
        }
        assert_eq!(input["worktree"], json!({"name": "w", "path": "/w"}));
        assert_eq!((&input["version"], &input["exceeds_200k_tokens"]), (&json!("9.9.9"), &json!(false)));
    }
}
