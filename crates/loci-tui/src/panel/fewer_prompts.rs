//! `/fewer-permission-prompts`: rules learned from this session's answers; Space chooses, `s` saves those that are chosen.

use loci_app::commands::fewer_prompts::{LearnedRules, NO_RULES};
use loci_core::permission::Destination;
use loci_engine::Command;

use super::{
    ListMark, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, ask_snapshot, mark_row,
};
use crate::app::{Action, Effect, UiAction};
use crate::block::NoticeLevel;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, Style, sanitize_line};

/// What was learned, and what of it is chosen.
#[derive(Debug, Default)]
pub(crate) struct FewerPromptsPanel {
    learned: Option<LearnedRules>,
    chosen: Vec<bool>,
    mark: ListMark,
    problem: Option<String>,
    /// The rules that are being saved.
    saving: Vec<String>,
}

impl FewerPromptsPanel {
    /// Has the session take up what is chosen, and save it; whether it is saved is looked at afterwards.
    fn save(&mut self) -> PanelStep {
        let Some(learned) = &self.learned else { return PanelStep::Stay };
        let chosen = learned.rules.iter().zip(&self.chosen).filter(|(_, is_chosen)| **is_chosen);
        let rules: Vec<_> = chosen.map(|((rule, _), _)| rule).collect();
        if rules.is_empty() {
            return PanelStep::Stay;
        }
        let save = rules.iter().map(|rule| {
            Action::Effect(Effect::Send(Command::ChangePermission(rule.update(Destination::Local))))
        });
        // It is answered once the session has made the changes.
        let actions = save.chain([ask_snapshot()]).collect();
        self.saving = rules.iter().map(|rule| rule.text.clone()).collect();
        PanelStep::Act(actions)
    }

    /// Says what has become of the rules.
    fn result_notices(saved: &[String], missing: &[String]) -> Vec<Action> {
        let said = [
            (saved, NoticeLevel::Info, "Saved in your settings for this project"),
            (missing, NoticeLevel::Warning, "Not saved; it holds for this session at most"),
        ];
        let notices = said.into_iter().filter(|(rules, ..)| !rules.is_empty());
        let notices = notices.map(|(rules, level, text)| {
            Action::Ui(UiAction::Notice(level, format!("{text}: {}", rules.join(", "))))
        });
        std::iter::once(Action::Ui(UiAction::ClosePanel)).chain(notices).collect()
    }

    fn row(&self, learned: &LearnedRules, idx: usize) -> Row {
        let Some((rule, _)) = learned.rules.get(idx) else { return Row::default() };
        let mark = if self.chosen.get(idx) == Some(&true) { "[x] " } else { "[ ] " };
        Row::new(vec![
            Span::plain(mark),
            Span::plain(sanitize_line(&rule.text)),
            Span::styled(format!("  would have answered {}", rule.answered.len()), faint()),
        ])
    }
}

impl Panel for FewerPromptsPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return PanelStep::Close;
        }
        if !self.saving.is_empty() {
            return PanelStep::Stay;
        }
        match (ctx.action, event) {
            (_, InputEvent::Key(key)) if key.code == KeyCode::Char(' ') => {
                if let Some(is_chosen) = self.chosen.get_mut(self.mark.at) {
                    *is_chosen = !*is_chosen;
                }
            }
            (_, InputEvent::Key(key)) if key.code == KeyCode::Char('s') => return self.save(),
            _ if self.mark.handle_event(self.chosen.len(), event, ctx.action) => {}
            (Some(KeyAction::SelectAccept), _) => return self.save(),
            _ => {}
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(_) if !self.saving.is_empty() => {
                let rules = self.saving.clone();
                return vec![Action::Effect(Effect::AskPanel(PanelRequest::SavedRules { rules }))];
            }
            PanelData::Snapshot(snapshot) => {
                return vec![Action::Effect(Effect::AskPanel(PanelRequest::LearnedRules { snapshot }))];
            }
            PanelData::LearnedRules(learned) => {
                self.chosen = vec![false; learned.rules.len()];
                self.learned = Some(learned);
            }
            PanelData::SavedRules { saved, missing } => return Self::result_notices(&saved, &missing),
            PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let has_rules = self.learned.as_ref().is_some_and(|learned| !learned.rules.is_empty());
        let hint = if has_rules { "Space choose · s save what is chosen · Esc close" } else { "Esc close" };
        let mut view = PanelView::new("Fewer questions", hint);
        let Some(learned) = &self.learned else {
            view.body = vec![line(self.problem.as_deref().unwrap_or("Reading…"), faint())];
            return view;
        };
        view.head.push(line(&learned.headline(), faint()));
        let width = size.width;
        if learned.rules.is_empty() {
            let text = match learned.n_asked {
                0 => "Nothing was asked in this session yet",
                _ => NO_RULES,
            };
            view.body = paragraph("", text, Style::default(), width);
            return view;
        }
        let mut detail = Vec::new();
        if let Some((rule, calls)) = learned.rules.get(self.mark.at) {
            detail.push(Row::default());
            let also = format!("It would also allow {}", rule.also_allows);
            detail.extend(paragraph("", &also, warning(), width));
            detail.extend(calls.iter().take(5).flat_map(|call| paragraph("  ", call, faint(), width)));
        }
        let room = view.room(size);
        let n_rules = learned.rules.len();
        let room_for_list = room.saturating_sub(detail.len().min(room / 2)).max(1);
        view.body = self
            .mark
            .rows(n_rules, room_for_list, |idx, is_marked| mark_row(self.row(learned, idx), is_marked));
        view.body.extend(detail);
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }
}

#[cfg(test)]
mod tests {
    use loci_core::permission::LearnedRule;

    use super::super::testing::{Shown, snapshot};
    use super::*;

    #[test]
    fn rules_are_chosen_with_what_else_they_allow_and_saved() {
        for (width, height) in [(20, 10), (50, 12), (80, 14), (120, 20)] {
            let mut shown = Shown::new(FewerPromptsPanel::default(), width, height);
            let snapshot = snapshot();
            let ask = PanelRequest::LearnedRules { snapshot: snapshot.clone() };
            assert_eq!(shown.receive(PanelData::Snapshot(snapshot)), [Action::Effect(Effect::AskPanel(ask))]);
            let rule = |text: &str| {
                let rule = LearnedRule {
                    text: text.into(),
                    answered: vec![0, 1],
                    also_allows: "every\u{1b}[2J command".into(),
                };
                (rule, vec!["Bash: a\u{1b}[2J".to_owned()])
            };
            let rules = vec![rule("Bash(gh pr *)"), rule("mcp__s__t")];
            shown.receive(PanelData::LearnedRules(LearnedRules { n_asked: 5, n_allowed: 4, rules }));
            shown.assert_clean();
            assert!(shown.text().contains("[ ] Bash(gh"), "{}", shown.text());
            let joined = shown.text().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains("also"), "{joined}");
            assert_eq!(shown.key(KeyCode::Char('s'), None), PanelStep::Stay, "nothing is chosen yet");
            shown.key(KeyCode::Char(' '), None);
            assert!(shown.text().contains("[x] Bash(gh"), "{}", shown.text());
            let PanelStep::Act(actions) = shown.key(KeyCode::Char('s'), None) else { panic!() };
            assert_eq!(actions.len(), 2, "{actions:?}");
            assert_eq!(shown.key(KeyCode::Char('s'), None), PanelStep::Stay, "once is enough");
            let rules = vec!["Bash(gh pr *)".to_owned()];
            let look = PanelRequest::SavedRules { rules: rules.clone() };
            let stands = PanelData::Snapshot(super::super::testing::snapshot());
            assert_eq!(
                shown.receive(stands),
                [Action::Effect(Effect::AskPanel(look))],
                "whether it is saved is looked at"
            );
            for (saved, missing, level) in [
                (rules.clone(), Vec::new(), NoticeLevel::Info),
                (Vec::new(), rules.clone(), NoticeLevel::Warning),
            ] {
                let told = shown.receive(PanelData::SavedRules { saved, missing });
                assert!(
                    matches!(&told[..], [Action::Ui(UiAction::ClosePanel), Action::Ui(UiAction::Notice(told, _))] if *told == level),
                    "{told:?}"
                );
            }
        }
    }
}
