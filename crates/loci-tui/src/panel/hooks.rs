//! `/hooks`: the hooks by event, what each runs and when, where it is written down, and whether it counts.

use loci_app::commands::hooks::HookRow;

use super::{ItemList, ListItem, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView};
use crate::app::{Action, Effect};
use crate::key::InputEvent;
use crate::keymap::Context;
use crate::layout::{code, faint, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Style};

/// The hooks.
#[derive(Debug, Default)]
pub(crate) struct HooksPanel {
    hooks: Vec<HookRow>,
    list: ItemList,
    problem: Option<String>,
}

impl HooksPanel {
    fn rows(hook: &HookRow, size: Size) -> Vec<Row> {
        let width = size.width;
        let matches = match hook.matcher.is_empty() {
            true => "Runs for everything".to_owned(),
            false => format!("Runs for: {}", hook.matcher),
        };
        let mut rows = paragraph("", &matches, Style::default(), width);
        rows.extend(paragraph("", &hook.handler, code(), width));
        rows.extend(paragraph("", &format!("From {}", hook.source), faint(), width));
        if let Some(why) = &hook.refusal {
            rows.extend(paragraph("", &format!("It does not count: {why}"), warning(), width));
        }
        rows
    }
}

impl Panel for HooksPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        self.list.handle_panel(event, ctx)
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(snapshot) => {
                return vec![Action::Effect(Effect::AskPanel(PanelRequest::Hooks { snapshot }))];
            }
            PanelData::Hooks(hooks) => {
                self.list.set(hooks.iter().enumerate().map(|(idx, hook)| item(idx, hook)).collect());
                self.hooks = hooks;
            }
            PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(hook) = self.list.opened().and_then(|idx| self.hooks.get(idx)) {
            let mut view = PanelView::new(hook.event, "Esc back");
            self.list.detail_view(&mut view, size, Self::rows(hook, size));
            return view;
        }
        let mut view = PanelView::new("Hooks", "Enter look · `loci hooks test` tries one · Esc close");
        view.head.extend(self.problem.iter().flat_map(|why| paragraph("", why, warning(), size.width)));
        self.list.list_view(&mut view, size, "There are no hooks");
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }

    fn is_typing(&self) -> bool {
        self.list.is_typing()
    }
}

fn item(idx: usize, hook: &HookRow) -> ListItem {
    let matcher = if hook.matcher.is_empty() { "*" } else { &hook.matcher };
    ListItem {
        // Two may say the same.
        title: format!("{}. {} {matcher}", idx + 1, hook.event),
        state: if hook.refusal.is_some() { "does not count".to_owned() } else { String::new() },
        is_bad: hook.refusal.is_some(),
        note: format!("{}  {}", hook.handler, hook.source),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Shown, snapshot};
    use super::*;
    use crate::keymap::Action as KeyAction;

    #[test]
    fn hooks_are_listed_with_what_they_run_and_whether_they_count() {
        for width in [20, 50, 80, 120] {
            let mut shown = Shown::new(HooksPanel::default(), width, 10);
            let snapshot = snapshot();
            let ask = PanelRequest::Hooks { snapshot: snapshot.clone() };
            assert_eq!(shown.receive(PanelData::Snapshot(snapshot)), [Action::Effect(Effect::AskPanel(ask))]);
            let hook = |event, refusal: Option<&str>| HookRow {
                event,
                matcher: "Bash".into(),
                handler: "command ./check\u{1b}[2J.sh 日本".into(),
                source: "project, .claude/settings.json:3".into(),
                refusal: refusal.map(str::to_owned),
            };
            shown
                .receive(PanelData::Hooks(vec![hook("PreToolUse", None), hook("Stop", Some("not trusted"))]));
            shown.assert_clean();
            assert!(shown.text().contains("❯ 1. PreToolUse"), "{width}: {}", shown.text());
            shown.type_text("stop");
            shown.action(KeyAction::SelectAccept);
            shown.assert_clean();
            let text = shown.text().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("not trusted") && text.contains("check"), "{width}: {text}");
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay);
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }
}
