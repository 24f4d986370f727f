//! `/skills`: every skill, where it comes from, what it costs, and how it may be used, which Space changes.

use loci_app::commands::short_tokens;
use loci_app::commands::skills::{SkillRow, next_visibility, visibility_word};
use loci_core::skill::SkillOverride;

use super::{
    ItemList, ListItem, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, ask_snapshot,
};
use crate::app::{Action, Effect};
use crate::key::{InputEvent, KeyCode};
use crate::keymap::Context;
use crate::layout::{faint, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Style};

/// The skills.
#[derive(Debug, Default)]
pub(crate) struct SkillsPanel {
    skills: Vec<SkillRow>,
    list: ItemList,
    /// Whether the most expensive come first.
    by_tokens: bool,
    note: Option<String>,
}

impl SkillsPanel {
    fn show(&mut self) {
        match self.by_tokens {
            true => self.skills.sort_by_key(|skill| std::cmp::Reverse(skill.tokens)),
            false => self.skills.sort_by(|left, right| left.name.cmp(&right.name)),
        }
        self.list.set(self.skills.iter().map(item).collect());
    }

    /// Lets the marked skill be used in another way.
    fn toggle(&mut self) -> PanelStep {
        let Some(skill) = self.list.marked().and_then(|idx| self.skills.get_mut(idx)) else {
            return PanelStep::Stay;
        };
        if !skill.can_change {
            self.note = Some("It comes and goes with its plugin: see /plugin".to_owned());
            return PanelStep::Stay;
        }
        skill.visibility = next_visibility(skill.visibility);
        let (name, visibility) = (skill.name.clone(), skill.visibility);
        self.note = Some("Writing it down…".to_owned());
        self.show();
        PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::SetSkillVisibility {
            name,
            visibility,
        }))])
    }

    fn rows(skill: &SkillRow, size: Size) -> Vec<Row> {
        let width = size.width;
        let mut rows = paragraph("", &skill.description, Style::default(), width);
        rows.push(Row::default());
        for text in [
            format!("Used by: {}", skill.who()),
            format!("Settings say: {}", visibility_word(skill.visibility)),
            format!("From: {}", skill.source),
            format!(
                "About {} tokens in every conversation, {} when it is used",
                skill.listed_tokens(),
                skill.tokens
            ),
        ] {
            rows.extend(paragraph("", &text, faint(), width));
        }
        rows.extend(skill.notes.iter().flat_map(|note| paragraph("! ", note, warning(), width)));
        rows
    }
}

impl Panel for SkillsPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        match event {
            InputEvent::Key(key) if key.code == KeyCode::Char(' ') => return self.toggle(),
            InputEvent::Key(key) if key.code == KeyCode::Tab => {
                self.by_tokens = !self.by_tokens;
                self.show();
                return PanelStep::Stay;
            }
            _ => {}
        }
        self.list.handle_panel(event, ctx)
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(snapshot) => {
                return vec![Action::Effect(Effect::AskPanel(PanelRequest::Skills { snapshot }))];
            }
            PanelData::Skills(skills) => {
                self.skills = skills;
                self.show();
            }
            PanelData::SkillChanged(outcome) => {
                let is_done = outcome.is_ok();
                self.note = Some(outcome.unwrap_or_else(|why| why));
                // What was not written down is not so.
                if !is_done {
                    return vec![ask_snapshot()];
                }
            }
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(skill) = self.list.opened().and_then(|idx| self.skills.get(idx)) {
            let mut view =
                PanelView::new(&format!("/{}", skill.name), "Space change how it may be used · Esc back");
            view.head.extend(self.note.iter().flat_map(|note| paragraph("", note, warning(), size.width)));
            self.list.detail_view(&mut view, size, Self::rows(skill, size));
            return view;
        }
        let total: u64 = self.skills.iter().map(SkillRow::listed_tokens).sum();
        let order = if self.by_tokens { "by name" } else { "by tokens" };
        let title = format!(
            "Skills · {} · about {} tokens in every conversation",
            self.skills.len(),
            short_tokens(total)
        );
        let hint = format!("Space on, name only, yours only, off · Enter look · Tab {order} · Esc close");
        let mut view = PanelView::new(&title, &hint);
        view.head.extend(self.note.iter().flat_map(|note| paragraph("", note, warning(), size.width)));
        self.list.list_view(&mut view, size, "There are no skills");
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }

    fn is_typing(&self) -> bool {
        self.list.is_typing()
    }
}

fn item(skill: &SkillRow) -> ListItem {
    let state = match skill.visibility {
        SkillOverride::On => skill.who(),
        SkillOverride::NameOnly => "name only",
        SkillOverride::UserInvocableOnly => "yours only",
        SkillOverride::Off => "off",
    };
    ListItem {
        title: format!("/{}", skill.name),
        state: state.to_owned(),
        is_bad: !skill.notes.is_empty(),
        note: match skill.tokens {
            1 => format!("1 token  {}", skill.description),
            n => format!("{} tokens  {}", short_tokens(n), skill.description),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Shown, snapshot};
    use super::*;
    use crate::keymap::Action as KeyAction;

    fn skill(name: &str, tokens: u64) -> SkillRow {
        SkillRow {
            name: name.into(),
            description: format!("does\u{1b}[2J {name} 日本"),
            source: "user ~/.claude/skills".into(),
            is_for_people: true,
            is_for_model: true,
            visibility: SkillOverride::On,
            can_change: name != "of-plugin",
            summary_tokens: (10, 3),
            tokens,
            notes: Vec::new(),
        }
    }

    #[test]
    fn skills_are_found_looked_at_and_turned_off() {
        for width in [20, 50, 80, 120] {
            let mut shown = Shown::new(SkillsPanel::default(), width, 10);
            assert!(shown.text().contains("Reading…"), "{}", shown.text());
            let snapshot = snapshot();
            let ask = PanelRequest::Skills { snapshot: snapshot.clone() };
            assert_eq!(shown.receive(PanelData::Snapshot(snapshot)), [Action::Effect(Effect::AskPanel(ask))]);
            let rows = (0..500).map(|n| skill(&format!("s{n:03}"), n)).chain([skill("of-plugin", 1)]);
            shown.receive(PanelData::Skills(rows.collect()));
            shown.assert_clean();
            shown.type_text("s123");
            assert!(shown.text().contains("❯ /s123"), "{width}: {}", shown.text());
            for visibility in [SkillOverride::NameOnly, SkillOverride::UserInvocableOnly] {
                let ask = PanelRequest::SetSkillVisibility { name: "s123".into(), visibility };
                assert_eq!(
                    shown.key(KeyCode::Char(' '), None),
                    PanelStep::Act(vec![Action::Effect(Effect::AskPanel(ask))]),
                    "{width}"
                );
            }
            assert_eq!(shown.receive(PanelData::SkillChanged(Err("no".into()))), [ask_snapshot()]);
            shown.action(KeyAction::SelectAccept);
            shown.assert_clean();
            assert!(
                shown.text().contains("yours only") || shown.text().contains("user-inv"),
                "{}",
                shown.text()
            );
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay);
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }

    #[test]
    fn what_space_changes_is_seen_in_who_uses_it_and_what_it_costs() {
        let mut shown = Shown::new(SkillsPanel::default(), 80, 14);
        shown.receive(PanelData::Skills(vec![skill("a", 1), skill("b", 1)]));
        assert!(shown.text().contains("about 20 tokens"), "{}", shown.text());
        for (total, state) in [(13, "name only"), (10, "yours only"), (10, "off"), (20, "you and the model")]
        {
            shown.key(KeyCode::Char(' '), None);
            let text = shown.text();
            assert!(text.contains(&format!("about {total} tokens")) && text.contains(state), "{text}");
        }
        shown.key(KeyCode::Char(' '), None);
        shown.key(KeyCode::Char(' '), None);
        let said = "Set `x` in a file whose path is so long that it takes more than a row of this window\nGit ignores it";
        shown.receive(PanelData::SkillChanged(Ok(said.to_owned())));
        assert!(shown.text().contains("window\nGit ignores it\n"), "{}", shown.text());
        shown.action(KeyAction::SelectAccept);
        let text = shown.text();
        assert!(text.contains("Used by: you\n") && text.contains("About 0 tokens in every"), "{text}");
    }

    #[test]
    fn most_expensive_come_first_and_skills_of_plugins_stay() {
        let mut shown = Shown::new(SkillsPanel::default(), 80, 10);
        shown.receive(PanelData::Skills(vec![skill("a", 1), skill("b", 900), skill("of-plugin", 1000)]));
        shown.key(KeyCode::Tab, None);
        assert!(shown.text().contains("❯ /a") || shown.text().contains("❯ /of-plugin"), "{}", shown.text());
        shown.key(KeyCode::Home, None);
        assert!(shown.text().contains("❯ /of-plugin"), "{}", shown.text());
        assert_eq!(shown.key(KeyCode::Char(' '), None), PanelStep::Stay);
        assert!(shown.text().contains("with its plugin"), "{}", shown.text());
    }
}
