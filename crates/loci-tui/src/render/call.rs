//! Calls of tools: a line, and what came of it in a few.

use loci_core::tool::ToolKind;

use super::{
    DiffStat, RenderContext, diff_stat, output_row, plain_style, render_diff, render_markdown, trim_row,
};
use crate::block::{CallBlock, CallState};
use crate::text::{Row, Span, parse_output, sanitize_line, truncate, truncate_path, width, wrap};
use crate::theme::{Role, spinner};

/// The most lines of a result that are shown of a call when it is not verbose.
const MAX_RESULT_LINES: usize = 3;
/// The most lines of what a person has answered.
const MAX_ANSWER_LINES: usize = 12;
/// The tool that asks a person something; it needs an answer, not a permission.
const USER_QUESTION: &str = "AskUserQuestion";
/// What stands around the summaries of calls in a row takes about so many cells.
const LEAST_AROUND: usize = 8;
/// A path of several in a row is not cut to less.
const LEAST_SHARE: usize = 16;
/// The most rows of a change that are shown then.
const MAX_DIFF_ROWS: usize = 60;

/// Returns the rows of a call: one line, and its result, in part unless all is wanted.
pub fn render_call(call: &CallBlock, ctx: &RenderContext) -> Vec<Row> {
    let stat = call.diff.as_ref().map(diff_stat);
    let mut rows = head(&describe(call), call.state, call.agent.as_deref(), stat, ctx);
    if let Some(plan) = &call.plan {
        rows.extend(plan_rows(plan, ctx));
        return rows;
    }
    match (&call.diff, call.state) {
        (Some(diff), CallState::Done | CallState::Waiting | CallState::Running) => {
            rows.extend(limited(render_diff(diff, ctx), ctx));
        }
        _ if call.is_read_only && call.state == CallState::Done && !ctx.is_verbose => {}
        _ => rows.extend(result_rows(call, ctx)),
    }
    rows
}

/// Whether a call may be told in one line with its neighbours: it only looked, or is one of an MCP server, and all went well
/// so far.
pub fn is_groupable(call: &CallBlock) -> bool {
    let is_short = call.is_read_only || call.tool.starts_with("mcp__");
    is_short && !matches!(call.state, CallState::Failed | CallState::Refused | CallState::Waiting)
}

/// Returns the row of calls that only looked; all are shown one by one where all is wanted.
pub fn render_call_group(calls: &[&CallBlock], ctx: &RenderContext) -> Vec<Row> {
    if ctx.is_verbose || ctx.is_screen_reader || calls.len() < 2 {
        return calls.iter().flat_map(|call| render_call(call, ctx)).collect();
    }
    let mut parts: Vec<(&str, Option<&str>, Vec<String>)> = Vec::new();
    for call in calls {
        let summary = sanitize_line(&call.summary);
        match parts.last_mut() {
            Some((tool, agent, summaries)) if *tool == call.tool && *agent == call.agent.as_deref() => {
                summaries.push(summary);
            }
            _ => parts.push((&call.tool, call.agent.as_deref(), vec![summary])),
        }
    }
    // Where not all of it has room, the names of the files have.
    let share = (ctx.width / calls.len()).saturating_sub(LEAST_AROUND).max(LEAST_SHARE);
    let all: usize = parts.iter().flat_map(|(_, _, summaries)| summaries).map(|it| width(it) + 2).sum();
    let is_long = all + LEAST_AROUND > ctx.width;
    let texts = parts.iter().map(|(tool, _, summaries)| {
        let summaries = summaries.iter().map(|summary| match is_long && names_path(tool) {
            true => truncate_path(summary, share),
            false => summary.clone(),
        });
        format!("{}({})", sanitize_line(tool), summaries.collect::<Vec<_>>().join(", "))
    });
    let state = calls.iter().map(|call| call.state).find(|state| *state != CallState::Done);
    let agent = parts.first().and_then(|(_, agent, _)| *agent);
    let text = texts.collect::<Vec<_>>().join(" · ");
    head(&[ctx.span(text, Role::Label)], state.unwrap_or(CallState::Done), agent, None, ctx)
}

/// Tells whether a tool is called with a path, which is cut in its middle.
fn names_path(tool: &str) -> bool {
    ToolKind::of_tool(tool).is_about_file()
}

fn describe(call: &CallBlock) -> [Span; 2] {
    let summary = sanitize_line(&call.summary);
    let arguments = if summary.is_empty() { String::new() } else { format!("({summary})") };
    let label = crate::text::Style { is_bold: true, ..Default::default() };
    [Span::styled(sanitize_line(&call.tool), label), Span::plain(arguments)]
}

fn head(
    text: &[Span],
    state: CallState,
    agent: Option<&str>,
    stat: Option<DiffStat>,
    ctx: &RenderContext,
) -> Vec<Row> {
    let mut row = Row::default();
    row.push(mark(state, ctx));
    if let Some(agent) = agent {
        row.push(ctx.span(format!("{} · ", sanitize_line(agent)), Role::Accent));
    }
    let args = text.last().map_or(0, |span| width(&span.text));
    text.iter().for_each(|span| row.push(span.clone()));
    let before = row.width().saturating_sub(args);
    let is_question = text.first().is_some_and(|tool| tool.text == USER_QUESTION);
    let mut tail = Row::default();
    if let Some(stat) = stat.filter(|_| !matches!(state, CallState::Arriving | CallState::Refused)) {
        tail.push(ctx.span(format!(" +{}", stat.n_added), Role::Added));
        tail.push(ctx.span(format!(" -{}", stat.n_removed), Role::Removed));
    }
    match state {
        CallState::Waiting if is_question => tail.push(ctx.span(" waiting for your answer", Role::Warning)),
        CallState::Waiting => tail.push(ctx.span(" waiting for permission", Role::Warning)),
        CallState::Failed if !ctx.is_screen_reader => tail.push(ctx.span(" failed", Role::Error)),
        CallState::Refused => tail.push(ctx.span(" not run", Role::Warning)),
        CallState::Arriving | CallState::Running | CallState::Done | CallState::Failed => {}
    }
    if ctx.is_verbose {
        row.spans.extend(tail.spans);
        let rest = Span::plain(if ctx.is_screen_reader { "" } else { "  " });
        return wrap(&row.spans, ctx.width, &[], &[rest]);
    }
    let room = ctx.width.saturating_sub(tail.width());
    let is_path = text.first().is_some_and(|tool| names_path(&tool.text));
    if let Some(last) = row.spans.last_mut().filter(|_| is_path)
        && let Some(path) = last.text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'))
    {
        let others = before + width("()");
        last.text = format!("({})", truncate_path(path, room.saturating_sub(others)));
    }
    let mut row = truncate(&row, room);
    row.spans.extend(tail.spans);
    vec![row]
}

fn mark(state: CallState, ctx: &RenderContext) -> Span {
    if ctx.is_screen_reader {
        return Span::plain(if state == CallState::Failed { "tool error: " } else { "tool: " });
    }
    match state {
        CallState::Arriving | CallState::Waiting | CallState::Running => {
            ctx.span(format!("{} ", spinner(ctx.now, ctx.is_motion_reduced)), Role::Accent)
        }
        CallState::Done => ctx.span("● ", Role::Success),
        CallState::Failed => ctx.span("✗ ", Role::Error),
        CallState::Refused => ctx.span("○ ", Role::Warning),
    }
}

/// The result, or what a running call printed last.
fn result_rows(call: &CallBlock, ctx: &RenderContext) -> Vec<Row> {
    let mut lines = parse_output(call.output.trim_end());
    let is_blank = |line: &Vec<Span>| line.iter().all(|span| span.text.trim().is_empty());
    let n_blank = lines.iter().take_while(|line| is_blank(line)).count();
    lines.drain(..n_blank);
    if call.tool == USER_QUESTION {
        keep_answers(&mut lines);
    }
    let is_running = call.state == CallState::Running;
    let most = shown_lines(call, &lines);
    let n_hidden = if ctx.is_verbose { 0 } else { lines.len().saturating_sub(most) };
    // One line more takes no more room than the line that tells of it.
    let n_hidden = if n_hidden == 1 && !is_running { 0 } else { n_hidden };
    if is_running {
        lines.drain(..n_hidden);
    } else {
        lines.truncate(lines.len() - n_hidden);
    }
    let role = if call.state == CallState::Failed { Role::Error } else { Role::Faint };
    let mut rows: Vec<Row> = lines.into_iter().map(|line| result_row(line, role, ctx)).collect();
    if n_hidden > 0 && !is_running {
        rows.push(Row::new(vec![ctx.span(hidden_text(n_hidden), Role::Faint)]));
    }
    for (idx, row) in rows.iter_mut().enumerate() {
        let prefix = match (ctx.is_screen_reader, idx) {
            (true, _) => "",
            (false, 0) => "  └ ",
            (false, _) => "    ",
        };
        row.spans.insert(0, ctx.span(prefix, Role::Faint));
        trim_row(row);
        if !ctx.is_verbose {
            *row = truncate(row, ctx.width);
        }
        row.is_overlong = row.width() > ctx.width;
    }
    rows
}

/// Leaves of the answers of a person what they said: what is around it says to the model what to make of it.
fn keep_answers(lines: &mut Vec<Vec<Span>>) {
    let begins = |line: &Vec<Span>, with: &str| line.first().is_some_and(|span| span.text.starts_with(with));
    if lines.iter().any(|line| begins(line, "- ")) {
        lines.retain(|line| begins(line, "- ") || begins(line, "  "));
    }
}

/// Returns how many lines of a result are shown. What an agent's result says behind its words, or behind that it was sent
/// out, is for the model: its id, and what to do with it.
fn shown_lines(call: &CallBlock, lines: &[Vec<Span>]) -> usize {
    if call.tool == USER_QUESTION {
        return MAX_ANSWER_LINES;
    }
    let begins = |line: &Vec<Span>| line.first().is_some_and(|span| span.text.starts_with("agentId: "));
    let for_model = Some(lines).filter(|_| call.tool == "Agent").and_then(|it| it.iter().position(begins));
    for_model.unwrap_or(MAX_RESULT_LINES).clamp(1, MAX_RESULT_LINES)
}

/// The plan that was approved, whole: it is what the work behind it goes by.
fn plan_rows(plan: &str, ctx: &RenderContext) -> Vec<Row> {
    let prefix = if ctx.is_screen_reader { "" } else { "  " };
    let inner = RenderContext { width: ctx.width.saturating_sub(prefix.len()).max(1), ..ctx.clone() };
    let approved = if ctx.is_screen_reader { "approved" } else { "└ approved" };
    let head = [Row::new(vec![ctx.span(approved, Role::Faint)]), Row::default()];
    let mut rows: Vec<Row> = head.into_iter().chain(render_markdown(plan, &inner)).collect();
    for row in rows.iter_mut().filter(|row| !row.spans.is_empty()) {
        row.spans.insert(0, Span::plain(prefix));
    }
    rows
}

fn result_row(line: Vec<Span>, role: Role, ctx: &RenderContext) -> Row {
    let mut row = output_row(line, Span::default(), ctx);
    for span in &mut row.spans {
        if plain_style(span.style) {
            span.style = ctx.theme.style(role);
        }
    }
    row
}

fn limited(mut rows: Vec<Row>, ctx: &RenderContext) -> Vec<Row> {
    if !ctx.is_verbose && rows.len() > MAX_DIFF_ROWS + 1 {
        let n_hidden = rows.len() - MAX_DIFF_ROWS;
        rows.truncate(MAX_DIFF_ROWS);
        rows.push(Row::new(vec![ctx.span(format!("  {}", hidden_text(n_hidden)), Role::Faint)]));
    }
    rows
}

fn hidden_text(n_lines: usize) -> String {
    format!("… +{n_lines} lines (ctrl+o shows all)")
}
