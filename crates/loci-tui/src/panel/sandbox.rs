//! `/sandbox`: how commands are approved, what may leave the sandbox, what is set, and what this machine lacks for it.
//!
//! Changes go to the person's settings for the project.

use loci_app::commands::sandbox::{SandboxChange, SandboxMode, SandboxReport};

use super::{Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, Tabs, mark_row};
use crate::app::{Action, Effect};
use crate::key::InputEvent;
use crate::keymap::Action as KeyAction;
use crate::layout::{code, faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Style};

const TITLES: &[&str] = &["Mode", "Overrides", "Config", "Dependencies"];

/// How the sandbox stands.
#[derive(Debug)]
pub(crate) struct SandboxPanel {
    report: Option<SandboxReport>,
    note: Option<String>,
    tabs: Tabs,
    marked: usize,
    scroll: Scroll,
}

impl SandboxPanel {
    /// Shows it once it is known.
    pub(crate) fn new() -> Self {
        Self { report: None, note: None, tabs: Tabs::new(TITLES), marked: 0, scroll: Scroll::default() }
    }

    /// Returns what it asks for when it is opened.
    pub(crate) fn begin() -> Vec<Action> {
        vec![Action::Effect(Effect::AskPanel(PanelRequest::Sandbox))]
    }

    /// Returns what can be chosen in the tab that is shown: what it says, what it asks for, and whether it is so.
    fn choices(&self) -> Vec<(&'static str, SandboxChange, bool)> {
        let Some(report) = &self.report else { return Vec::new() };
        match self.tabs.shown() {
            0 => SandboxMode::ALL
                .into_iter()
                .map(|mode| (mode.describe(), SandboxChange::Mode(mode), report.mode == mode))
                .collect(),
            1 => vec![
                (
                    "A command that fails inside may be run outside, after a question",
                    SandboxChange::MayLeave(true),
                    report.may_leave,
                ),
                (
                    "Strict: nothing leaves it but the commands that settings name",
                    SandboxChange::MayLeave(false),
                    !report.may_leave,
                ),
            ],
            _ => Vec::new(),
        }
    }

    fn rows(&self, report: &SandboxReport, size: Size) -> Vec<Row> {
        let width = size.width;
        match self.tabs.shown() {
            2 if report.set.is_empty() && report.not_honoured.is_empty() => {
                vec![line("Nothing is set; `/config` has the keys that begin with sandbox.", faint())]
            }
            2 => {
                let set = report.set.iter().flat_map(|(key, value, from)| {
                    let mut rows = paragraph("", &format!("{key}: {value}"), code(), width);
                    rows.extend(paragraph("  ", from, faint(), width));
                    rows
                });
                let lost = report.not_honoured.iter();
                let lost =
                    lost.flat_map(|it| paragraph("! ", &format!("has no effect: {it}"), warning(), width));
                set.chain(lost).collect()
            }
            _ => {
                let mut rows = paragraph(
                    "",
                    &format!("This machine can give: {}", report.level),
                    Style::default(),
                    width,
                );
                for layer in &report.layers {
                    match &layer.problem {
                        None => rows.push(line(&format!("✓ {} holds", layer.name), Style::default())),
                        Some(why) => {
                            let text = format!("{} is missing: {why}", layer.name);
                            rows.extend(paragraph("✗ ", &text, warning(), width));
                        }
                    }
                    rows.extend(layer.remedy.iter().flat_map(|it| paragraph("  ", it, faint(), width)));
                }
                rows.extend(report.open.iter().flat_map(|it| paragraph("open: ", it, warning(), width)));
                rows
            }
        }
    }
}

impl Panel for SandboxPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return PanelStep::Close;
        }
        if self.tabs.handle(ctx.action) {
            (self.marked, self.scroll) = (0, Scroll::default());
            return PanelStep::Stay;
        }
        let choices = self.choices();
        let last = choices.len().saturating_sub(1);
        match ctx.action {
            _ if choices.is_empty() => _ = self.scroll.handle(event),
            Some(KeyAction::SelectNext) => {
                self.marked = if self.marked >= last { 0 } else { self.marked + 1 };
            }
            Some(KeyAction::SelectPrevious) => self.marked = self.marked.checked_sub(1).unwrap_or(last),
            Some(KeyAction::SelectAccept) => {
                let Some((_, wish, _)) = choices.get(self.marked) else { return PanelStep::Stay };
                self.note = Some("Writing it down…".to_owned());
                return PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::ChangeSandbox(
                    *wish,
                )))]);
            }
            _ => {}
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Sandbox { report, note } => {
                self.report = Some(report);
                self.note = note;
            }
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let choices = self.choices();
        let hint = match choices.is_empty() {
            true => "Tab more · ↑↓ scroll · Esc close",
            false => "Enter choose · Tab more · Esc close",
        };
        let mut view = PanelView::new("Sandbox", hint);
        view.head.push(self.tabs.row(size.width));
        let Some(report) = &self.report else {
            view.body =
                vec![line(self.note.as_deref().unwrap_or("Trying what this machine can do…"), faint())];
            return view;
        };
        let mut rows: Vec<Row> = choices
            .iter()
            .enumerate()
            .map(|(idx, (text, _, is_so))| {
                let now = if *is_so { "  (now)" } else { "" };
                mark_row(line(&format!("{text}{now}"), Style::default()), idx == self.marked)
            })
            .collect();
        match choices.is_empty() {
            true => rows.extend(self.rows(report, size)),
            false if !report.is_full => {
                let text =
                    format!("This machine gives less than all of it ({}): see Dependencies", report.level);
                rows.push(Row::default());
                rows.extend(paragraph("", &text, warning(), size.width));
            }
            false => {}
        }
        rows.extend(self.note.iter().flat_map(|note| paragraph("", note, warning(), size.width)));
        let room = view.room(size);
        view.body = self.scroll.rows(rows, room);
        view
    }
}

#[cfg(test)]
mod tests {
    use loci_app::commands::sandbox::SandboxLayer;

    use super::super::testing::Shown;
    use super::*;

    #[test]
    fn mode_is_chosen_and_what_is_missing_is_named() {
        for (width, height) in [(20, 8), (50, 12), (80, 14), (120, 20)] {
            let mut shown = Shown::new(SandboxPanel::new(), width, height);
            assert!(shown.text().contains("Trying what"), "{}", shown.text());
            let layer = SandboxLayer {
                name: "namespaces",
                problem: Some("switched\u{1b}[2J off".into()),
                remedy: Some("sysctl x".into()),
            };
            let report = SandboxReport {
                mode: SandboxMode::Off,
                may_leave: true,
                level: "weak".into(),
                is_full: false,
                layers: vec![layer],
                open: vec!["sockets"],
                set: vec![("sandbox.enabled".into(), "false".into(), "f:1".into())],
                not_honoured: Vec::new(),
            };
            shown.receive(PanelData::Sandbox { report, note: None });
            shown.assert_clean();
            let ask = PanelRequest::ChangeSandbox(SandboxChange::Mode(SandboxMode::AutoAllow));
            assert_eq!(
                shown.action(KeyAction::SelectAccept),
                PanelStep::Act(vec![Action::Effect(Effect::AskPanel(ask))])
            );
            shown.action(KeyAction::TabsNext);
            shown.action(KeyAction::SelectNext);
            let ask = PanelRequest::ChangeSandbox(SandboxChange::MayLeave(false));
            assert_eq!(
                shown.action(KeyAction::SelectAccept),
                PanelStep::Act(vec![Action::Effect(Effect::AskPanel(ask))])
            );
            shown.action(KeyAction::TabsNext);
            assert!(shown.text().contains("sandbox.enabled"), "{}", shown.text());
            shown.action(KeyAction::TabsNext);
            shown.assert_clean();
            assert!(shown.text().contains("namespaces"), "{}", shown.text());
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }
}
