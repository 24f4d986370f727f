//! The tree as lines of text.
//!
//! The live conversation runs down the left edge; a branch that was left is moved to the right and drawn before the
//! conversation goes on:
//!
//! ```text
//! ● 2026-01-02 03:04  What is the port?  (1 answer, 1 call)  [uuid]
//! ├─○ 2026-01-02 03:06  Compare both notes  (2 answers)  [uuid]
//! │ ○ 2026-01-02 03:07  Thanks, wrap up  (1 answer)  [uuid]
//! ● 2026-01-02 03:09  What is the host?  (1 answer)  [uuid]  ← a resume goes on here
//! ```

use loci_stdx::{counted, single_line};
use loci_storage::sessions::SessionSummary;

use super::super::format;
use super::relatives::{Agent, Fork};
use super::turns::{Kind, Turn, Turns};

/// The most characters of a prompt.
const TEXT: usize = 70;

/// Draws everything.
pub(super) fn draw(session: &SessionSummary, turns: &Turns, stray: &[Agent], ascii: bool) -> String {
    let mut text = head(session);
    let children = children(turns.all());
    // A branch is opened by its first turn; what follows it stands below.
    let mut open: Vec<Step> = roots(turns.all())
        .into_iter()
        .rev()
        .map(|turn| Step { turn, margin: String::new(), is_branch: false })
        .collect();
    while let Some(step) = open.pop() {
        let turn = &turns.all()[step.turn];
        let (first, rest) = margins(&step);
        text.push_str(&format!("{first}{}\n", turn_line(turn)));
        let below = &children[step.turn];
        let margin = if below.is_empty() { format!("{rest}  ") } else { format!("{rest}│ ") };
        for agent in &turn.agents {
            text.push_str(&format!("{margin}  ◇ {}\n", agent_line(agent)));
        }
        for fork in &turn.forks {
            text.push_str(&format!("{margin}  ⑂ {}\n", fork_line(fork)));
        }
        let Some((last, left)) = below.split_last() else { continue };
        open.push(Step { turn: *last, margin: rest.clone(), is_branch: false });
        open.extend(left.iter().rev().map(|turn| Step {
            turn: *turn,
            margin: rest.clone(),
            is_branch: true,
        }));
    }
    for agent in stray {
        text.push_str(&format!("◇ {} (no call in this file)\n", agent_line(agent)));
    }
    if ascii { plain(&text) } else { text }
}

struct Step {
    turn: usize,
    margin: String,
    is_branch: bool,
}

/// Returns what stands before the turn's own line, and before the lines that follow.
fn margins(step: &Step) -> (String, String) {
    let margin = &step.margin;
    match step.is_branch {
        true => (format!("{margin}├─"), format!("{margin}│ ")),
        false => (margin.clone(), margin.clone()),
    }
}

fn head(session: &SessionSummary) -> String {
    let id = session.place.id();
    let mut text = match session.facts.labels.title() {
        Some(title) => format!("{id}  {}\n", single_line(title, TEXT)),
        None => format!("{id}\n"),
    };
    if let Some(source) = &session.facts.forked_from {
        text.push_str(&format!("branched from {}\n", single_line(source, TEXT)));
    }
    text
}

fn turn_line(turn: &Turn) -> String {
    let mark = match (turn.kind, turn.is_live) {
        (Kind::Compaction, _) => '◆',
        (Kind::Prompt | Kind::Loose, true) => '●',
        (Kind::Prompt | Kind::Loose, false) => '○',
    };
    let counts = counts(turn);
    let place =
        turn.last_uuid.as_ref().map(|uuid| format!("  [{}]", single_line(uuid, 40))).unwrap_or_default();
    let leaf = if turn.is_leaf { "  ← a resume goes on here" } else { "" };
    let time = format::written(turn.time.as_deref());
    format!("{mark} {time}  {}{counts}{place}{leaf}", single_line(&turn.text, TEXT))
}

fn counts(turn: &Turn) -> String {
    let all = [(turn.n_answers, "answer", "answers"), (turn.n_calls, "call", "calls")];
    let counts: Vec<String> = all
        .into_iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, several)| counted(n as u64, one, several))
        .collect();
    if counts.is_empty() { String::new() } else { format!("  ({})", counts.join(", ")) }
}

fn agent_line(agent: &Agent) -> String {
    let kind = agent.kind.as_deref().unwrap_or("subagent");
    let about =
        agent.description.as_deref().map(|text| format!(": {}", single_line(text, TEXT))).unwrap_or_default();
    let n_entries = counted(agent.n_entries as u64, "entry", "entries");
    format!("{} {}{about}  ({n_entries})", single_line(kind, 30), single_line(&agent.id, 30))
}

fn fork_line(fork: &Fork) -> String {
    let relation = if fork.is_source { "taken from" } else { "forked as" };
    let about = fork.headline.as_deref().map(|text| format!("  {text}")).unwrap_or_default();
    format!("{relation} {}{about}", fork.id)
}

fn roots(turns: &[Turn]) -> Vec<usize> {
    (0..turns.len()).filter(|idx| turns[*idx].parent.is_none()).collect()
}

/// Returns the turns below each, the live one last.
fn children(turns: &[Turn]) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); turns.len()];
    for (idx, turn) in turns.iter().enumerate() {
        if let Some(parent) = turn.parent {
            children[parent].push(idx);
        }
    }
    for below in &mut children {
        below.sort_by_key(|idx| turns[*idx].is_live);
    }
    children
}

/// Returns the picture in plain characters.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '●' => out.push('*'),
            '○' => out.push('o'),
            '◆' => out.push('#'),
            '◇' => out.push('@'),
            '⑂' => out.push('Y'),
            '│' => out.push('|'),
            '├' => out.push('+'),
            '─' => out.push('-'),
            '←' => out.push_str("<-"),
            other => out.push(other),
        }
    }
    out
}
