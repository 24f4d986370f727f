//! `/rewind`: back to a prompt, with the conversation, the code, or both; or a summary in the place of all that came after it,
//! or before it.
//! What would change is shown first, and it can be undone.

use loci_app::renewal::SwitchTarget;
use loci_app::session_command::{RewindPoint, RewindPoints, RewindPreview, RewindRequest};
use loci_engine::{Command, SideTask};

use super::{
    Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, list_rows, mark_row,
};
use crate::app::Action;
use crate::dialog::{Choices, TextField};
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Color, Row, Span, Style, sanitize_line};

/// The most paths of a kind that are shown.
const MOST_PATHS: usize = 30;

/// Prompts to go back to, and what that would do.
#[derive(Debug)]
pub(crate) struct RewindPanel {
    session: String,
    points: Option<RewindPoints>,
    marked: usize,
    /// What is known of files, by prompt; the empty one is the undo.
    previews: Vec<(Option<String>, RewindPreview)>,
    /// The prompt whose files are being looked at.
    asked: Option<Option<String>>,
    stage: RewindView,
    problem: Option<String>,
}

#[derive(Debug)]
enum RewindView {
    List,
    /// What is to go back; the prompt is none for the undo.
    Choose {
        point: Option<RewindPoint>,
        choices: Choices,
        overwrites: bool,
        scroll: Scroll,
    },
    /// A summary is to take the place of what came after, or before; what it is to be about is typed.
    Focus {
        point: RewindPoint,
        part: SummarisedPart,
        focus: TextField,
    },
    /// The model writes it.
    Summarising {
        point: RewindPoint,
    },
}

/// What of the conversation a summary takes the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SummarisedPart {
    /// The prompt and all that came after it.
    After,
    /// All that came before it.
    Before,
}

/// What can go back, in the order of the answers.
const WHAT: [&str; 5] = [
    "Conversation and code",
    "Conversation only",
    "Code only",
    "Summarise from here",
    "Summarise up to here",
];
/// The answers that put a summary in the place of something.
const SUMMARIES: [(usize, SummarisedPart); 2] = [(3, SummarisedPart::After), (4, SummarisedPart::Before)];
/// What the summary is asked for by.
pub(crate) const SUMMARY_REQUEST: &str = "summary";
/// The most letters of the prompt that the model is told.
const MOST_QUOTED: usize = 2_000;

impl RewindPanel {
    /// Opens the list for the session at hand; returns what is to be found out.
    pub(crate) fn new(session: String) -> (Self, Vec<Action>) {
        let panel = Self {
            session,
            points: None,
            marked: 0,
            previews: Vec::new(),
            asked: None,
            stage: RewindView::List,
            problem: None,
        };
        (panel, vec![Action::AskPanel(PanelRequest::RewindPoints)])
    }

    /// Returns how many rows the list has: the undo comes first, where there is one.
    fn n_rows(&self) -> usize {
        self.points.as_ref().map_or(0, |points| points.points.len() + usize::from(points.can_undo))
    }

    /// Returns the prompt of a row; none for the undo.
    fn point(&self, idx: usize) -> Option<&RewindPoint> {
        let points = self.points.as_ref()?;
        points.points.get(idx.checked_sub(usize::from(points.can_undo))?)
    }

    fn key_of(&self, idx: usize) -> Option<String> {
        self.point(idx).map(|point| point.prompt.clone())
    }

    fn preview(&self, key: Option<&str>) -> Option<&RewindPreview> {
        self.previews.iter().find(|(known, _)| known.as_deref() == key).map(|(_, preview)| preview)
    }

    /// Asks what the marked rewind would do, one at a time.
    fn ask_preview(&mut self) -> Vec<Action> {
        let key = self.key_of(self.marked);
        // A branch that was left is gone on with; no file goes back for it.
        if self.point(self.marked).is_some_and(|point| point.leaf.is_some()) {
            return Vec::new();
        }
        if self.asked.is_some() || self.n_rows() == 0 || self.preview(key.as_deref()).is_some() {
            return Vec::new();
        }
        self.asked = Some(key.clone());
        vec![Action::AskPanel(PanelRequest::RewindPreview { prompt: key })]
    }

    fn handle_list(&mut self, ctx: &PanelContext) -> PanelStep {
        let last = self.n_rows().saturating_sub(1);
        match ctx.action {
            Some(KeyAction::SelectNext | KeyAction::MessageSelectorDown) => {
                self.marked = if self.marked >= last { 0 } else { self.marked + 1 };
            }
            Some(KeyAction::SelectPrevious | KeyAction::MessageSelectorUp) => {
                self.marked = self.marked.checked_sub(1).unwrap_or(last);
            }
            Some(KeyAction::MessageSelectorTop) => self.marked = 0,
            Some(KeyAction::MessageSelectorBottom) => self.marked = last,
            Some(KeyAction::SelectAccept | KeyAction::MessageSelectorSelect) if self.n_rows() > 0 => {
                let point = self.point(self.marked).cloned();
                if let Some(leaf) = point.as_ref().and_then(|point| point.leaf.clone()) {
                    let target = SwitchTarget {
                        session: self.session.clone(),
                        at: Some(leaf),
                        ..SwitchTarget::default()
                    };
                    return PanelStep::CloseWith(vec![Action::Switch(target)]);
                }
                let labels: Vec<String> = match point {
                    Some(_) => WHAT.iter().map(|what| (*what).to_owned()).collect(),
                    None => vec!["Undo the rewind".to_owned()],
                };
                let (choices, scroll) = (Choices::new(labels), Scroll::default());
                self.stage = RewindView::Choose { point, choices, overwrites: false, scroll };
            }
            _ => {}
        }
        PanelStep::Act(self.ask_preview())
    }

    fn handle_choose(&mut self, event: &InputEvent) -> PanelStep {
        let session = self.session.clone();
        let RewindView::Choose { point, choices, overwrites, scroll } = &mut self.stage else {
            return PanelStep::Stay;
        };
        let InputEvent::Key(key) = event else { return PanelStep::Stay };
        match key.code {
            KeyCode::Tab => *overwrites = !*overwrites,
            KeyCode::PageDown | KeyCode::PageUp => drop(scroll.handle(event)),
            _ => {
                let Some(idx) = choices.handle(*key) else { return PanelStep::Stay };
                if let Some((_, part)) = SUMMARIES.into_iter().find(|(at, _)| *at == idx)
                    && let Some(point) = point.take()
                {
                    self.stage = RewindView::Focus { point, part, focus: TextField::default() };
                    return PanelStep::Stay;
                }
                return PanelStep::CloseWith(rewind_actions(session, point.as_ref(), idx, *overwrites));
            }
        }
        PanelStep::Stay
    }

    fn handle_focus(&mut self, event: &InputEvent) -> PanelStep {
        let RewindView::Focus { point, part, focus } = &mut self.stage else { return PanelStep::Stay };
        match event {
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                let focus = Some(focus.text().trim().to_owned()).filter(|text| !text.is_empty());
                if *part == SummarisedPart::Before {
                    let keeps_from = point.prompt.clone();
                    return PanelStep::CloseWith(vec![Action::Compact { keeps_from, focus }]);
                }
                let prompt = loci_stdx::truncate_chars(&point.text, MOST_QUOTED).to_owned();
                let task = SideTask::SummaryFrom { prompt, focus };
                self.stage = RewindView::Summarising { point: point.clone() };
                self.problem = None;
                let request = SUMMARY_REQUEST.to_owned();
                return PanelStep::Act(vec![Action::Send(Command::AskOnTheSide { request, task })]);
            }
            InputEvent::Key(key) => drop(focus.handle(*key)),
            InputEvent::Paste(text) => focus.insert(text),
            _ => {}
        }
        PanelStep::Stay
    }

    /// Takes the summary: the conversation goes back, and goes on with it.
    fn take_summary(&mut self, outcome: Result<String, String>) -> Vec<Action> {
        let RewindView::Summarising { point } = &self.stage else { return Vec::new() };
        let text = match outcome {
            Ok(text) => text,
            Err(why) => {
                self.problem = Some(format!("There is no summary: {why}"));
                let (point, part) = (point.clone(), SummarisedPart::After);
                self.stage = RewindView::Focus { point, part, focus: TextField::default() };
                return Vec::new();
            }
        };
        let rewind = RewindRequest {
            prompt: Some(point.prompt.clone()),
            summary: Some(text),
            ..RewindRequest::default()
        };
        let session = self.session.clone();
        let target = SwitchTarget { session, rewind: Some(rewind), ..SwitchTarget::default() };
        vec![Action::ClosePanel, Action::SetPrompt(point.text.clone()), Action::Switch(target)]
    }

    fn summary_view(
        &self,
        point: &RewindPoint,
        part: SummarisedPart,
        focus: Option<&TextField>,
        size: Size,
    ) -> PanelView {
        let hint = match focus {
            Some(_) => "Enter summarise · Esc back",
            None => "Esc stop waiting",
        };
        let (title, about) = match part {
            SummarisedPart::After => (
                "Summarise from",
                "The messages from this prompt on give way to a summary; those before it and all files stay as they are",
            ),
            SummarisedPart::Before => (
                "Summarise up to",
                "The messages before this prompt give way to a summary; it, those after it and all files stay as they are",
            ),
        };
        let mut view = PanelView::new(&format!("{title}: {}", point.line), hint);
        if let Some(focus) = focus {
            view.push_field("Above all (optional): ", focus);
        }
        let text = match (&self.problem, focus) {
            (Some(problem), _) => problem,
            (None, Some(_)) => about,
            (None, None) => "The model writes the summary…",
        };
        let style = if self.problem.is_some() { warning() } else { faint() };
        view.body = paragraph("", text, style, size.width);
        view
    }

    fn list_view(&self, size: Size) -> PanelView {
        let hint = "Enter choose what goes back · Esc close";
        let mut view = PanelView::new("Rewind: go back to before a prompt", hint);
        let marked = self.key_of(self.marked);
        let about = match self.point(self.marked).is_some_and(|point| point.leaf.is_some()) {
            true => "A branch that was left: Enter goes on with it; files stay as they are".to_owned(),
            false => self.summary(marked.as_deref()),
        };
        view.head.push(line(&about, faint()));
        let room = view.room(size);
        view.body = list_rows(self.n_rows(), self.marked, room, |idx, is_marked| {
            let row = match self.point(idx) {
                Some(point) => point_row(point, size.width),
                None => line("Undo the last rewind", Style::default()),
            };
            mark_row(row, is_marked)
        });
        if let Some(problem) = &self.problem {
            view.body = vec![line(problem, warning())];
        } else if self.points.is_none() {
            view.body = vec![line("Reading the session…", faint())];
        } else if self.n_rows() == 0 {
            view.body = vec![line("Nothing was asked yet", faint())];
        }
        view
    }

    /// Says what would change, in a line.
    fn summary(&self, key: Option<&str>) -> String {
        match self.preview(key) {
            None if self.n_rows() == 0 => String::new(),
            None => "Looking at files…".to_owned(),
            Some(RewindPreview { problem: Some(_), .. }) => {
                "Files were not kept there; the conversation can go back".to_owned()
            }
            Some(preview) if preview.files.is_empty() && preview.conflicts.is_empty() => {
                "No file would change".to_owned()
            }
            Some(preview) => {
                let files = loci_stdx::counted(preview.files.len() as u64, "file", "files");
                let conflicts = match preview.conflicts.len() {
                    0 => String::new(),
                    n => format!(" · {n} changed by someone else"),
                };
                format!(
                    "{files} would change: +{} -{} lines{conflicts}",
                    preview.insertions, preview.deletions
                )
            }
        }
    }

    fn preview_rows(&self, key: Option<&str>, overwrites: bool, width: u16) -> Vec<Row> {
        let Some(preview) = self.preview(key) else { return vec![line("Looking at files…", faint())] };
        let mut rows = vec![line(&self.summary(key), Style::default())];
        if let Some(problem) = &preview.problem {
            rows.extend(paragraph("  ", problem, faint(), width));
        }
        for (path, action) in preview.files.iter().take(MOST_PATHS) {
            rows.push(line(&format!("  {action:<8}{path}"), Style::default()));
        }
        push_more(&mut rows, preview.files.len());
        let what = if overwrites { "brought back" } else { "left" };
        for (path, why) in preview.conflicts.iter().take(MOST_PATHS) {
            rows.push(line(&format!("  {what}: {path} ({why})"), warning()));
        }
        push_more(&mut rows, preview.conflicts.len());
        for path in preview.ignored.iter().take(MOST_PATHS) {
            rows.push(line(&format!("  not touched, git ignores it: {path}"), faint()));
        }
        push_more(&mut rows, preview.ignored.len());
        rows
    }
}

fn push_more(rows: &mut Vec<Row>, n: usize) {
    if let Some(n @ 1..) = n.checked_sub(MOST_PATHS) {
        rows.push(line(&format!("  … {n} more"), faint()));
    }
}

/// Returns what carries out an answer.
fn rewind_actions(session: String, point: Option<&RewindPoint>, idx: usize, overwrites: bool) -> Vec<Action> {
    let prompt = point.map(|point| point.prompt.clone());
    let request = |takes_files| RewindRequest {
        prompt: prompt.clone(),
        takes_files,
        overwrites,
        ..RewindRequest::default()
    };
    let switch = |takes_files| {
        let rewind = Some(request(takes_files));
        Action::Switch(SwitchTarget { session: session.clone(), rewind, ..SwitchTarget::default() })
    };
    let text = point.map(|point| Action::SetPrompt(point.text.clone()));
    match (idx, point) {
        (_, None) => vec![switch(true)],
        (0, Some(_)) => text.into_iter().chain([switch(true)]).collect(),
        (1, Some(_)) => text.into_iter().chain([switch(false)]).collect(),
        (_, Some(_)) => vec![Action::AskPanel(PanelRequest::RewindFiles(request(true)))],
    }
}

impl Panel for RewindPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        match self.stage {
            RewindView::List if ctx.is_cancel() => PanelStep::Close,
            RewindView::List => self.handle_list(ctx),
            RewindView::Choose { .. } | RewindView::Focus { .. } | RewindView::Summarising { .. }
                if ctx.is_cancel() =>
            {
                (self.stage, self.problem) = (RewindView::List, None);
                PanelStep::Stay
            }
            RewindView::Choose { .. } => self.handle_choose(event),
            RewindView::Focus { .. } => self.handle_focus(event),
            RewindView::Summarising { .. } => PanelStep::Stay,
        }
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::RewindPoints(points) => {
                // The newest prompt is marked, not the undo above it.
                self.marked = usize::from(points.can_undo && !points.points.is_empty());
                self.points = Some(points);
                self.ask_preview()
            }
            PanelData::RewindPreview { prompt, preview } => {
                self.asked = None;
                self.previews.push((prompt, preview));
                self.ask_preview()
            }
            PanelData::SideAnswer { request, outcome } if request == SUMMARY_REQUEST => {
                self.take_summary(outcome)
            }
            PanelData::Failed(why) => {
                self.problem = Some(why);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn is_awaiting(&self, request: &str) -> bool {
        request == SUMMARY_REQUEST
    }

    fn is_typing(&self) -> bool {
        matches!(self.stage, RewindView::Focus { .. })
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let (point, choices, overwrites, scroll) = match &self.stage {
            RewindView::List => return self.list_view(size),
            RewindView::Focus { point, part, focus } => {
                return self.summary_view(point, *part, Some(focus), size);
            }
            RewindView::Summarising { point } => {
                return self.summary_view(point, SummarisedPart::After, None, size);
            }
            RewindView::Choose { point, choices, overwrites, scroll } => (point, choices, overwrites, scroll),
        };
        let title = match point {
            Some(point) => format!("Back to before: {}", point.line),
            None => "Undo the last rewind".to_owned(),
        };
        let key = point.as_ref().map(|point| point.prompt.as_str());
        let has_conflicts = self.preview(key).is_some_and(|preview| !preview.conflicts.is_empty());
        let hint = match has_conflicts {
            true => "Enter go · Tab files that someone else changed, too · PgDn more · Esc back",
            false => "Enter go · PgDn more · Esc back",
        };
        let mut view = PanelView::new(&title, hint);
        let (foot, focus) = choices.rows(size.width);
        let room = view.room(size);
        let n_foot = foot.len();
        if room <= n_foot {
            let first = focus.min(n_foot.saturating_sub(room));
            view.body = foot.into_iter().skip(first).take(room).collect();
            return view;
        }
        view.body = foot;
        view.body.push(Row::default());
        let rows = self.preview_rows(key, *overwrites, size.width);
        view.body.extend(scroll.rows(rows, (room - n_foot).saturating_sub(1)));
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::MessageSelector, Context::Select, Context::Global]
    }
}

/// A prompt in a row: when, where in the tree, what, and what its turn changed.
fn point_row(point: &RewindPoint, columns: u16) -> Row {
    let mut spans = Vec::new();
    if columns >= 40 {
        spans.push(Span::styled(format!("{}  ", sanitize_line(&point.time)), faint()));
    }
    if point.depth > 0 {
        spans.push(Span::styled("├ ", faint()));
    }
    let style = if point.depth > 0 { faint() } else { Style::default() };
    if point.n_files > 0 {
        let colored = |n: u8| Style { fg: Color::Ansi(n), ..Style::default() };
        spans.push(Span::styled(format!("+{}", point.added), colored(2)));
        spans.push(Span::styled(format!(" -{} ", point.removed), colored(1)));
    }
    spans.push(Span::styled(sanitize_line(&point.line), style));
    if point.n_files > 0 {
        let files = if point.n_files == 1 { "file" } else { "files" };
        spans.push(Span::styled(format!("  {} {files}", point.n_files), faint()));
    }
    Row::new(spans)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Shown;
    use super::*;

    fn point(idx: usize) -> RewindPoint {
        RewindPoint {
            prompt: format!("p{idx}"),
            text: format!("prompt {idx}\nmore"),
            line: format!("prompt {idx} 日本\u{1b}[2J"),
            time: "2026-01-01 10:00".to_owned(),
            n_files: 2,
            added: 14,
            removed: 3,
            ..RewindPoint::default()
        }
    }

    fn preview() -> RewindPreview {
        RewindPreview {
            files: vec![("src/a\u{7}.rs".into(), "restore"), ("made".into(), "remove")],
            conflicts: vec![("mine".into(), "it was changed since")],
            ignored: vec!["target/x".into()],
            insertions: 4,
            deletions: 2,
            problem: None,
        }
    }

    fn shown(width: u16, height: u16, can_undo: bool) -> Shown<RewindPanel> {
        let (panel, actions) = RewindPanel::new("s".into());
        assert_eq!(actions, [Action::AskPanel(PanelRequest::RewindPoints)]);
        let mut shown = Shown::new(panel, width, height);
        let points = RewindPoints { points: (0..3).rev().map(point).collect(), can_undo };
        let actions = shown.receive(PanelData::RewindPoints(points));
        let ask = PanelRequest::RewindPreview { prompt: Some("p2".into()) };
        assert_eq!(actions, [Action::AskPanel(ask)], "the newest prompt is looked at");
        shown.receive(PanelData::RewindPreview { prompt: Some("p2".into()), preview: preview() });
        shown
    }

    #[test]
    fn list_shows_what_would_change_and_the_choice_does_it() {
        for width in [40, 80, 120] {
            let mut shown = shown(width, 16, false);
            shown.assert_clean();
            assert!(shown.text().contains("2 files would change: +4 -2"), "{}", shown.text());
            shown.action(KeyAction::SelectAccept);
            shown.assert_clean();
            for text in ["Conversation and code", "remove  made", "left: mine", "git ignores it"] {
                assert!(shown.text().contains(text), "{text}: {}", shown.text());
            }
            shown.key(KeyCode::Tab, None);
            assert!(shown.text().contains("brought back: mine"), "{}", shown.text());
            let PanelStep::CloseWith(actions) = shown.key(KeyCode::Char('1'), None) else { panic!("chosen") };
            let rewind = Some(RewindRequest {
                prompt: Some("p2".into()),
                takes_files: true,
                overwrites: true,
                summary: None,
            });
            let target = SwitchTarget { session: "s".into(), rewind, ..SwitchTarget::default() };
            assert_eq!(actions, [Action::SetPrompt("prompt 2\nmore".into()), Action::Switch(target)]);
        }
    }

    #[test]
    fn code_alone_goes_back_without_leaving_the_session() {
        let mut shown = shown(80, 16, false);
        shown.action(KeyAction::SelectAccept);
        let PanelStep::CloseWith(actions) = shown.key(KeyCode::Char('3'), None) else { panic!("chosen") };
        let request =
            RewindRequest { prompt: Some("p2".into()), takes_files: true, ..RewindRequest::default() };
        assert_eq!(actions, [Action::AskPanel(PanelRequest::RewindFiles(request))]);
    }

    #[test]
    fn undo_stands_above_the_prompts() {
        let mut shown = shown(80, 16, true);
        shown.action(KeyAction::SelectPrevious);
        assert!(shown.text().contains("❯ Undo the last rewind"), "{}", shown.text());
        shown.action(KeyAction::SelectAccept);
        let PanelStep::CloseWith(actions) = shown.key(KeyCode::Enter, None) else { panic!("chosen") };
        let rewind = Some(RewindRequest { takes_files: true, ..RewindRequest::default() });
        let target = SwitchTarget { session: "s".into(), rewind, ..SwitchTarget::default() };
        assert_eq!(actions, [Action::Switch(target)]);
    }

    #[test]
    fn summary_takes_the_place_of_what_came_after() {
        for (width, height) in [(20, 5), (80, 16), (120, 30)] {
            let mut shown = shown(width, height, false);
            shown.action(KeyAction::SelectAccept);
            assert_eq!(shown.key(KeyCode::Char('4'), None), PanelStep::Stay);
            shown.type_text("the 日本 port");
            shown.assert_clean();
            let task = |focus: Option<&str>| SideTask::SummaryFrom {
                prompt: "prompt 2\nmore".into(),
                focus: focus.map(str::to_owned),
            };
            let ask = |focus| {
                let (request, task) = (SUMMARY_REQUEST.to_owned(), task(focus));
                PanelStep::Act(vec![Action::Send(Command::AskOnTheSide { request, task })])
            };
            assert_eq!(shown.key(KeyCode::Enter, None), ask(Some("the 日本 port")));
            assert!(shown.panel.is_awaiting(SUMMARY_REQUEST));
            let answer = |outcome: Result<&str, &str>| PanelData::SideAnswer {
                request: SUMMARY_REQUEST.to_owned(),
                outcome: outcome.map(str::to_owned).map_err(str::to_owned),
            };
            assert_eq!(shown.receive(answer(Err("overloaded"))), []);
            assert!(height < 10 || shown.text().contains("overloaded"), "{}", shown.text());
            assert_eq!(shown.key(KeyCode::Enter, None), ask(None), "it can be asked again");
            let rewind = Some(RewindRequest {
                prompt: Some("p2".into()),
                summary: Some("short".into()),
                ..RewindRequest::default()
            });
            let target = SwitchTarget { session: "s".into(), rewind, ..SwitchTarget::default() };
            let expected =
                [Action::ClosePanel, Action::SetPrompt("prompt 2\nmore".into()), Action::Switch(target)];
            assert_eq!(shown.receive(answer(Ok("short"))), expected);
        }
    }

    #[test]
    fn summary_takes_the_place_of_what_came_before() {
        for (width, height) in [(20, 6), (80, 16)] {
            let mut shown = shown(width, height, false);
            shown.action(KeyAction::SelectAccept);
            assert_eq!(shown.key(KeyCode::Char('5'), None), PanelStep::Stay);
            assert!(height < 10 || shown.text().contains("Summarise up to: "), "{}", shown.text());
            shown.type_text("the port");
            shown.assert_clean();
            let (keeps_from, focus) = ("p2".to_owned(), Some("the port".to_owned()));
            let compact = PanelStep::CloseWith(vec![Action::Compact { keeps_from, focus }]);
            assert_eq!(shown.key(KeyCode::Enter, None), compact);
        }
    }

    #[test]
    fn tiny_window_shows_the_answers() {
        let mut shown = shown(20, 4, false);
        assert!(shown.text().contains('❯'), "{}", shown.text());
        shown.action(KeyAction::SelectAccept);
        assert!(shown.text().contains("❯ 1."), "{}", shown.text());
    }

    #[test]
    fn prompts_show_what_their_turns_changed_and_branches_that_were_left_are_gone_on_with() {
        for width in [20, 50, 80, 120] {
            let (panel, _) = RewindPanel::new("s".into());
            let mut shown = Shown::new(panel, width, 10);
            let left = RewindPoint { depth: 1, leaf: Some("end".into()), ..point(7) };
            let points = vec![point(9), left, point(5)];
            shown.receive(PanelData::RewindPoints(RewindPoints { points, can_undo: false }));
            shown.assert_clean();
            let text = shown.text();
            assert!(text.contains("+14 -3") && text.contains('├'), "{width}: {text}");
            shown.action(KeyAction::SelectNext);
            let target =
                SwitchTarget { session: "s".into(), at: Some("end".into()), ..SwitchTarget::default() };
            let switched = shown.action(KeyAction::SelectAccept);
            assert_eq!(switched, PanelStep::CloseWith(vec![Action::Switch(target)]));
        }
    }
}
