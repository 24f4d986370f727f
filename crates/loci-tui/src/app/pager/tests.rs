use std::time::Duration;

use loci_core::stream::{Delta, StreamEvent};

use super::*;
use crate::app::block_log::BlockLog;
use crate::app::conversation::Conversation;
use crate::block::Block;
use crate::theme::{Backdrop, ColorDepth, Theme};

/// A pager over blocks, on a screen.
struct Paged {
    pager: Pager,
    log: BlockLog,
    conversation: Conversation,
    size: Size,
}

impl Paged {
    fn new(n_turns: usize, width: u16, height: u16) -> Self {
        let mut log = BlockLog::default();
        for idx in 0..n_turns {
            log.push(Block::Prompt { text: format!("prompt {idx}"), attachments: Vec::new() });
            log.push(Block::Answer {
                markdown: format!("answer {idx} with 日本語 and words\n\nsecond {idx}"),
            });
        }
        let size = Size { width, height };
        let mut it = Self { pager: Pager::new(), log, conversation: Conversation::default(), size };
        it.text();
        it
    }

    fn ctx(&self) -> RenderContext {
        let theme = Theme::new(ColorDepth::Ansi, Backdrop::Dark);
        RenderContext { is_verbose: true, ..RenderContext::new(usize::from(self.size.width), theme) }
    }

    fn text(&mut self) -> String {
        let ctx = self.ctx();
        let source = PagerSource::of_log(&self.log, &self.conversation);
        let rows = self.pager.view(&source, &ctx, self.size).rows;
        assert_eq!(rows.len(), usize::from(self.size.height));
        let texts: Vec<String> = rows.iter().map(Row::text).collect();
        assert!(rows.iter().all(|row| row.width() <= usize::from(self.size.width)), "{texts:#?}");
        texts.join("\n")
    }

    fn press(&mut self, keys: &str) -> PagerStep {
        let ctx = self.ctx();
        let source = PagerSource::of_log(&self.log, &self.conversation);
        let mut step = PagerStep::Stay;
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            step = self.pager.handle(&InputEvent::Key(Key::plain(code)), None, &source, &ctx);
        }
        step
    }
}

#[test]
fn pager_opens_at_the_end_and_pages_through_everything() {
    for width in [20, 50, 80] {
        let mut it = Paged::new(100, width, 12);
        assert!(it.text().contains("second 99"), "{}", it.text());
        it.press("g");
        assert!(it.text().contains("prompt 0"), "{}", it.text());
        let mut seen = it.text();
        for _ in 0..200 {
            it.press(" ");
            seen.push_str(&it.text());
        }
        for idx in 0..100 {
            assert!(seen.contains(&format!("prompt {idx}")), "{width}: {idx}");
        }
        let is_at_end = it.text().contains("100%") || width < 40;
        assert!(it.text().contains("second 99") && is_at_end, "{}", it.text());
        for _ in 0..200 {
            it.press("b");
        }
        assert!(it.text().contains("prompt 0"), "{}", it.text());
    }
}

#[test]
fn search_goes_on_and_back_and_marks_what_it_found() {
    let mut it = Paged::new(100, 60, 12);
    it.press("g/SECOND 4\n");
    assert!(it.text().contains("second 4"), "{}", it.text());
    it.press("n");
    assert!(it.text().contains("second 40"), "{}", it.text());
    it.press("n");
    assert!(it.text().contains("second 41"), "{}", it.text());
    it.press("NN");
    assert!(it.text().contains("second 4\n") || it.text().contains("second 4"), "{}", it.text());
    it.press("N");
    assert!(it.text().contains("second 49") && it.text().contains("from the end"), "{}", it.text());
    it.press("n");
    assert!(it.text().contains("second 4") && it.text().contains("from the beginning"), "{}", it.text());
    it.press("/nowhere\n");
    assert!(it.text().contains("Not found") && !it.text().contains("Ctrl+E"), "{}", it.text());
    it.log.leave_out(1);
    it.press("/nowhere\n");
    assert!(it.text().contains("Not found in what is shown here · Ctrl+E reads all"), "{}", it.text());
}

#[test]
fn search_from_the_end_finds_what_was_said_before() {
    let mut it = Paged::new(100, 60, 12);
    it.press("/prompt 7\n");
    assert!(it.text().contains("> prompt 7\n") && it.text().contains("from the beginning"), "{}", it.text());
    // One place alone is found again and again.
    it.press("/prompt 42\nn");
    assert!(it.text().contains("> prompt 42"), "{}", it.text());
    // What is in sight counts, what is above it does not.
    it.press("g}}}}/answer\n");
    it.press("{");
    assert!(it.text().contains("> prompt 4\n"), "{}", it.text());
}

#[test]
fn keys_of_the_pager_are_readable_in_a_narrow_window_and_the_way_out_stays() {
    for (width, height) in [(20, 6), (40, 12), (80, 24), (120, 40)] {
        let mut it = Paged::new(3, width, height);
        let status = it.text();
        assert!(status.lines().last().unwrap().ends_with("q close"), "{width}: {status}");
        it.press("?");
        let mut seen = it.text();
        let down = InputEvent::Key(Key::plain(KeyCode::PageDown));
        for _ in 0..12 {
            let (ctx, source) = (it.ctx(), PagerSource::of_log(&it.log, &it.conversation));
            it.pager.handle(&down, None, &source, &ctx);
            seen.push_str(&it.text());
        }
        for expected in ["Ctrl+E", "open what is show", "close"] {
            assert!(seen.contains(expected), "{width} {expected}: {seen}");
        }
        it.press("x");
        assert!(it.text().contains("transcript") || width < 30, "{}", it.text());
    }
}

#[test]
fn braces_jump_between_prompts() {
    let mut it = Paged::new(50, 60, 9);
    it.press("g}}");
    let first = |text: String| text.lines().find(|line| !line.is_empty()).unwrap().to_owned();
    assert_eq!(first(it.text()), "> prompt 2");
    it.press("{");
    assert_eq!(first(it.text()), "> prompt 1");
}

#[test]
fn streaming_answer_appears_at_the_end_of_the_pager() {
    let mut it = Paged::new(3, 60, 10);
    let delta = |text: &str| StreamEvent::Delta { index: 0, delta: Delta::Text(text.to_owned()) };
    let kind = "text".to_owned();
    it.conversation.stream(&StreamEvent::BlockStarted { index: 0, kind, name: None }, Duration::ZERO);
    for text in ["Now ", "this\n\n- and", " that"] {
        it.conversation.stream(&delta(text), Duration::ZERO);
    }
    assert!(it.text().contains("Now this") && it.text().contains("and that"), "{}", it.text());
    it.press("k");
    it.conversation.stream(&delta("\n\nMore\n\nand more"), Duration::ZERO);
    assert!(!it.text().contains("and more"), "whoever reads is not pulled away: {}", it.text());
    it.press("G");
    assert!(it.text().contains("and more"), "{}", it.text());
}

#[test]
fn keys_ask_for_what_the_application_does() {
    let mut it = Paged::new(3, 60, 10);
    assert_eq!(it.press("["), PagerStep::Dump);
    assert_eq!(it.press("v"), PagerStep::OpenInEditor);
    it.press("?");
    assert!(it.text().contains("half a page"), "{}", it.text());
    it.press("x");
    assert!(!it.text().contains("half a page"), "{}", it.text());
}

#[test]
fn cost_of_a_key_does_not_depend_on_the_length() {
    let made = |n_turns: usize| {
        let mut it = Paged::new(n_turns, 60, 12);
        it.press("kkk");
        it.text();
        it.pager.list.n_cached()
    };
    assert_eq!(made(4_000), made(40), "only blocks in sight are made into rows");
}

#[test]
fn tiny_screens_do_not_break() {
    for (width, height) in [(20, 5), (5, 2), (1, 1)] {
        let mut it = Paged::new(5, width, height);
        it.press("kjgG/x\nn{}");
        it.text();
    }
}
