//! `/usage`, `/status`, `/doctor`: what the command says, as a text that scrolls.

use loci_app::commands::ReportTopic;

use super::{Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll};
use crate::app::{Action, Effect};
use crate::key::InputEvent;
use crate::keymap::Context;
use crate::layout::{faint, line};
use crate::render::{RenderContext, render_markdown};
use crate::screen::Size;

/// A report about the session.
#[derive(Debug)]
pub(crate) struct ReportPanel {
    topic: ReportTopic,
    /// What is said, or why nothing is; nothing, until that is known.
    markdown: Option<String>,
    scroll: Scroll,
}

impl ReportPanel {
    /// Shows a report once it is there.
    pub(crate) fn new(topic: ReportTopic) -> Self {
        Self { topic, markdown: None, scroll: Scroll::default() }
    }
}

impl Panel for ReportPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        self.scroll.handle_panel(event, ctx)
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(snapshot) => {
                return vec![Action::Effect(Effect::AskPanel(PanelRequest::Report {
                    topic: self.topic,
                    snapshot,
                }))];
            }
            PanelData::Report { topic, markdown } if topic == self.topic => self.markdown = Some(markdown),
            PanelData::Failed(why) => self.markdown = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        let title = match self.topic {
            ReportTopic::Usage => "Usage",
            ReportTopic::Status => "Status",
            ReportTopic::Agents => "Agents",
            ReportTopic::Stats => "Statistics",
            ReportTopic::Doctor => "Doctor",
        };
        let mut view = PanelView::new(title, "↑↓ scroll · r read again · Esc close");
        let rows = report_rows(self.markdown.as_deref(), ctx);
        let room = view.room(size);
        view.body = self.scroll.rows(rows, room);
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }
}

/// Returns the rows of a report without its heading, which is the panel's title.
pub(super) fn report_rows(markdown: Option<&str>, ctx: &RenderContext) -> Vec<crate::text::Row> {
    let Some(markdown) = markdown else { return vec![line("Reading…", faint())] };
    let text = match markdown.strip_prefix("## ") {
        Some(rest) => rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start_matches('\n'),
        None => markdown,
    };
    render_markdown(text, ctx)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Shown, snapshot};
    use super::*;

    #[test]
    fn report_is_read_off_the_thread_and_shown_at_any_width() {
        for (width, height) in [(20, 5), (50, 12), (120, 30)] {
            let mut shown = Shown::new(ReportPanel::new(ReportTopic::Usage), width, height);
            assert!(shown.text().contains("Reading…"), "{}", shown.text());
            let snapshot = snapshot();
            let ask = PanelRequest::Report { topic: ReportTopic::Usage, snapshot: snapshot.clone() };
            assert_eq!(shown.receive(PanelData::Snapshot(snapshot)), [Action::Effect(Effect::AskPanel(ask))]);
            let markdown = "## Usage\n\n- Total cost: $1\u{1b}[31m\n- 日本\u{202e}語\n".to_owned();
            shown.receive(PanelData::Report { topic: ReportTopic::Usage, markdown });
            shown.assert_clean();
            assert!(shown.text().contains("Total cost"), "{}", shown.text());
            assert!(!shown.text().contains("## Usage"), "{}", shown.text());
        }
    }
}
