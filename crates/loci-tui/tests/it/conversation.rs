//! A conversation as it is streamed, through the writer, on virtual terminals: what scrolled off and what is on the screen
//! is the rendering of the conversation, each row once, whatever was typed and however the window changed.

use std::fmt::Write as _;
use std::time::Duration;

use loci_tui::block::{Block, CallBlock, CallState, FileDiff, NoticeLevel};
use loci_tui::render::{RenderContext, StreamingMarkdown, has_gap, render_block};
use loci_tui::screen::{Frame, Size, Writer, WriterOptions, live_limit};
use loci_tui::text::{Row, Span};
use loci_tui::theme::{Backdrop, ColorDepth, Role, Theme, spinner};
use proptest::prelude::*;

use crate::virtual_terminal::VirtualTerminal;
use crate::writer::assert_no_clears;

/// What can happen.
#[derive(Debug, Clone)]
enum Step {
    Delta(String),
    EndAnswer,
    Block(Block),
    Key(char),
    Tick,
    Resize(Size),
}

/// A conversation that is drawn as it goes.
pub(crate) struct ConversationScreen {
    writer: Writer,
    size: Size,
    ctx: RenderContext,
    /// What was said; the last one is open while `answer` is.
    blocks: Vec<Block>,
    answer: Option<StreamingMarkdown>,
    pending: Vec<Row>,
    input: String,
    pub(crate) n_bytes: usize,
}

impl ConversationScreen {
    pub(crate) fn new(size: Size, options: WriterOptions) -> Self {
        let theme = Theme::new(ColorDepth::Ansi, Backdrop::Dark);
        Self {
            writer: Writer::new(size, options),
            size,
            ctx: RenderContext::new(usize::from(size.width), theme),
            blocks: Vec::new(),
            answer: None,
            pending: Vec::new(),
            input: String::new(),
            n_bytes: 0,
        }
    }

    pub(crate) fn push_block(&mut self, block: Block) {
        self.end_answer();
        self.begin(block.clone());
        self.pending.extend(render_block(&block, &self.ctx));
    }

    /// Adds a block, with the blank row before it.
    fn begin(&mut self, block: Block) {
        if self.blocks.last().is_some_and(|last| has_gap(last, &block)) {
            self.pending.push(Row::default());
        }
        self.blocks.push(block);
    }

    pub(crate) fn push_delta(&mut self, delta: &str) {
        if self.answer.is_none() {
            self.begin(Block::Answer { markdown: String::new() });
            self.answer = Some(StreamingMarkdown::default());
        }
        if let (Some(answer), Some(Block::Answer { markdown })) = (&mut self.answer, self.blocks.last_mut()) {
            answer.push(delta);
            markdown.push_str(delta);
        }
    }

    pub(crate) fn end_answer(&mut self) {
        if let Some(mut answer) = self.answer.take() {
            answer.finish();
            self.pending.extend(answer.take_committed(&self.ctx));
        }
    }

    /// Returns the bytes of the next frame.
    pub(crate) fn draw(&mut self) -> Vec<u8> {
        let mut frame =
            Frame { is_caret_visible: true, keeps_height: self.answer.is_some(), ..Frame::default() };
        let tail = self.tail();
        if let Some(answer) = &mut self.answer {
            let room = live_limit(self.size.height).saturating_sub(tail.len());
            self.pending.extend(answer.take_committed(&self.ctx));
            self.pending.extend(answer.take_overflow(room, &self.ctx));
            frame.live = answer.live(&self.ctx);
        }
        frame.committed = std::mem::take(&mut self.pending);
        frame.live.extend(tail);
        frame.caret = Some((frame.live.len() - 2, u16::try_from(2 + self.input.len()).unwrap()));
        let bytes = self.writer.draw(&frame, self.size);
        assert_no_clears(&bytes);
        self.n_bytes += bytes.len();
        bytes
    }

    fn tail(&self) -> Vec<Row> {
        let style = |role| self.ctx.theme.style(role);
        let spinner = spinner(self.ctx.now, false);
        let rule = "─".repeat(usize::from(self.size.width));
        vec![
            Row::default(),
            Row::new(vec![
                Span::styled(spinner, style(Role::Accent)),
                Span::plain(format!(" Working… {}s", self.ctx.now.as_secs())),
            ]),
            Row::new(vec![Span::styled(rule, style(Role::Faint))]),
            Row::new(vec![Span::styled("> ", style(Role::Accent)), Span::plain(self.input.clone())]),
            Row::new(vec![Span::styled("? for help", style(Role::Faint))]),
        ]
    }

    fn step(&mut self, step: &Step, terminal: &mut impl VirtualTerminal) {
        match step {
            Step::Delta(delta) => self.push_delta(delta),
            Step::EndAnswer => self.end_answer(),
            Step::Block(block) => self.push_block(block.clone()),
            Step::Key(c) if self.input.len() < 12 => self.input.push(*c),
            Step::Key(_) => self.input.clear(),
            Step::Tick => self.ctx.now += Duration::from_millis(100),
            Step::Resize(size) => {
                self.size = *size;
                self.ctx.width = usize::from(size.width);
                terminal.resize(*size);
                let (row, column) = terminal.cursor();
                self.writer.report_cursor(row, column);
            }
        }
    }

    /// The rows of the whole conversation, rendered anew.
    fn expected(&self) -> Vec<String> {
        let mut rows: Vec<Row> = Vec::new();
        for (idx, block) in self.blocks.iter().enumerate() {
            if idx > 0 && has_gap(&self.blocks[idx - 1], block) {
                rows.push(Row::default());
            }
            rows.extend(render_block(block, &self.ctx));
        }
        let mut lines: Vec<String> = rows.iter().map(|row| row.text().trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    fn finish(&mut self) -> Vec<u8> {
        self.end_answer();
        let mut bytes = self.draw();
        bytes.extend(self.writer.leave());
        bytes
    }
}

fn block() -> impl Strategy<Value = Block> {
    let text = "[a-z]{1,8}( [a-z]{1,8}){0,9}";
    prop_oneof![
        text.prop_map(|text| Block::Prompt { text, attachments: Vec::new() }),
        text.prop_map(|text| Block::Notice { level: NoticeLevel::Warning, text }),
        text.prop_map(|text| Block::TurnEnd { text }),
        (text, "([a-z ]{0,30}\n){0,3}").prop_map(|(summary, output)| Block::Call(CallBlock {
            tool: "Bash".to_owned(),
            // What is cut to the width would differ between widths.
            summary: summary.chars().take(8).collect(),
            agent: None,
            is_read_only: false,
            state: CallState::Done,
            diff: None,
            output: output.lines().map(|line| line.chars().take(8).collect::<String>() + "\n").collect(),
            plan: None
        })),
    ]
}

fn delta() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z]{1,9} ",
        1 => Just("\n".to_owned()),
        2 => Just("\n\n".to_owned()),
        1 => "[a-z]{20,70} ",
        2 => prop::sample::select(vec![
            "**bold** ", "*", "`code` ", "`", "- item ", "1. one\n", "```\n", "```\nlet a = 1;\n", "# Head\n", "> quote ",
            "漢字かな交じり文 ", "👍 ", "שלום ", "a\u{202e}b ", "\u{1b}[31mred ", "[x](https://example.com) ",
        ]).prop_map(str::to_owned),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => delta().prop_map(Step::Delta),
        1 => Just(Step::EndAnswer),
        2 => block().prop_map(Step::Block),
        3 => "[a-z]".prop_map(|key| Step::Key(key.chars().next().unwrap())),
        2 => Just(Step::Tick),
    ]
}

fn options() -> impl Strategy<Value = WriterOptions> {
    (any::<bool>(), any::<bool>()).prop_map(|(is_synchronized, inserts_rows)| WriterOptions {
        is_synchronized,
        inserts_rows,
        ..WriterOptions::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scrollback_and_screen_are_the_rendering_of_the_conversation(
        width in 16u16..100,
        height in 8u16..30,
        options in options(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let size = Size { width, height };
        let mut stage = ConversationScreen::new(size, options);
        let mut vt100 = <vt100::Parser as VirtualTerminal>::of(size);
        let mut avt = <avt::Terminal as VirtualTerminal>::of(size);
        for step in &steps {
            stage.step(step, &mut avt);
            let bytes = stage.draw();
            vt100.write(&bytes);
            avt.write(&bytes);
            prop_assert_eq!(VirtualTerminal::cursor(&vt100), VirtualTerminal::cursor(&avt));
            prop_assert_eq!(VirtualTerminal::screen(&vt100), VirtualTerminal::screen(&avt));
        }
        avt.write(&stage.finish());
        // A blank that a wide sign left at the end of a row is text for `avt`.
        let joined = |lines: Vec<String>| lines.iter().map(|line| line.replace(' ', "")).collect::<Vec<_>>();
        prop_assert_eq!(joined(avt.lines()), joined(stage.expected()));
    }

    #[test]
    fn resizes_and_keys_while_streaming_lose_and_double_nothing(
        options in options(),
        steps in prop::collection::vec(
            prop_oneof![
                9 => step(),
                1 => (30u16..90, 24u16..40).prop_map(|(width, height)| Step::Resize(Size { width, height })),
            ], 1..120),
    ) {
        let size = Size { width: 60, height: 30 };
        let mut stage = ConversationScreen::new(size, options);
        let mut terminal = <avt::Terminal as VirtualTerminal>::of(size);
        // Something above, as in any terminal: this one scrolls rows away for blank ones below.
        let above = (0..60).map(|n| format!("line {n}\n\n")).collect::<String>();
        stage.push_block(Block::Output { markdown: above });
        terminal.write(&stage.draw());
        for step in &steps {
            stage.step(step, &mut terminal);
            terminal.write(&stage.draw());
        }
        terminal.write(&stage.finish());
        // Rows were wrapped for the widths of their times: the words are the same, each once and in order.
        let words = |lines: Vec<String>| lines.concat().replace([' ', '│'], "");
        prop_assert_eq!(words(terminal.lines()), words(stage.expected()));
    }
}

#[test]
fn resize_of_a_row_with_blanks_at_its_end_loses_no_row_above() {
    let size = Size { width: 60, height: 30 };
    let mut stage = ConversationScreen::new(size, WriterOptions::default());
    let mut terminal = <avt::Terminal as VirtualTerminal>::of(size);
    let above = (0..60).map(|n| format!("line {n}\n\n")).collect::<String>();
    stage.push_block(Block::Output { markdown: above });
    terminal.write(&stage.draw());
    // As wide as the window becomes, and a blank.
    stage.push_delta("first\n```\n");
    stage.push_delta(&format!("{} ", "x".repeat(39)));
    terminal.write(&stage.draw());
    stage.step(&Step::Resize(Size { width: 41, height: 37 }), &mut terminal);
    terminal.write(&stage.draw());
    terminal.write(&stage.finish());
    assert_eq!(terminal.lines(), stage.expected());
}

/// An answer of about 100 kB, of the kinds of text that models write.
fn long_answer() -> String {
    let mut out = String::new();
    let sentence =
        "The parser keeps its state between calls, so that a **delta** costs what its `block` costs. ";
    let mut n = 0;
    while out.len() < 100_000 {
        n += 1;
        write!(out, "## Part {n}\n\n{}\n\n", sentence.repeat(4).trim_end()).unwrap();
        for item in 1..=4 {
            writeln!(out, "{item}. Item {item} says something about `thing_{item}` and goes on for a while")
                .unwrap();
        }
        out.push_str("\n```rust\nfn main() {\n    let total: u64 = values.iter().sum();\n    println!(\"{total}\");\n}\n```\n\n");
    }
    out
}

#[test]
fn streamed_character_costs_at_most_two_bytes_and_no_clear() {
    let answer = long_answer();
    let n_chars = answer.chars().count();
    // 10 kB/s at 60 frames/s, as the peers were measured, and half of that.
    for per_frame in [167, 84] {
        let options = WriterOptions { is_synchronized: true, ..WriterOptions::default() };
        let size = Size { width: 120, height: 40 };
        let mut stage = ConversationScreen::new(size, options);
        let mut terminal = <vt100::Parser as VirtualTerminal>::of(size);
        let chars: Vec<char> = answer.chars().collect();
        for (idx, delta) in chars.chunks(per_frame).enumerate() {
            stage.push_delta(&delta.iter().collect::<String>());
            // The spinner turns ten times a second.
            stage.ctx.now = Duration::from_millis(idx as u64 / 6 * 100);
            let bytes = stage.draw();
            terminal.write(&bytes);
        }
        let ratio = stage.n_bytes as f64 / n_chars as f64;
        println!("{per_frame} characters a frame: {ratio:.2} bytes a character");
        assert!(ratio <= 2.0, "{per_frame} characters a frame: {ratio:.2} bytes a character");
        terminal.write(&stage.finish());
        assert_eq!(terminal.lines(), stage.expected());
    }
}

/// One block of each kind, with wide signs, emoji, bidi and a word longer than a row.
fn one_of_each() -> Vec<Block> {
    let call = |tool: &str, summary: &str, state, output: &str| CallBlock {
        tool: tool.to_owned(),
        summary: summary.to_owned(),
        agent: None,
        is_read_only: false,
        state,
        diff: None,
        output: output.to_owned(),
        plan: None,
    };
    let diff = FileDiff {
        path: "src/greeting.rs".to_owned(),
        before: "fn greet() {\n    println!(\"hello\");\n}\n".to_owned(),
        after: "fn greet() {\n    println!(\"こんにちは\");\n    done();\n}\n".to_owned(),
        first_line: 41,
    };
    let markdown = "# 見出し Heading\n\nText with **bold**, `code`, 漢字 and 👍, right-to-left שלום and an override a\u{202e}b.\n\n\
        1. First item, long enough to be wrapped on small screens\n   - nested 項目\n2. [link](https://example.com/docs)\n\n\
        | Name | Meaning | n |\n|---|---|--:|\n| alpha | the first | 1 |\n| 漢字 | wide signs | 22 |\n\n\
        ```rust\nfn main() { println!(\"a line of code that is longer than a small screen\"); }\n```\n\n\
        > quoted text that goes on\n\nhttps://example.com/a/very/long/path/that/does/not/fit/into/small/screens end\n\n---\nDone.";
    vec![
        Block::Prompt {
            text: "日本語で説明して please\nsecond line".to_owned(),
            attachments: vec!["図.png".to_owned()],
        },
        Block::Thinking { text: "let me see".to_owned(), duration: Some(Duration::from_secs(12)) },
        Block::Answer { markdown: markdown.to_owned() },
        Block::Call(call(
            "Bash",
            "cargo test --workspace",
            CallState::Done,
            "ok 1\nok 2\nok 3\nok 4\nok 5\n",
        )),
        Block::Call(call(
            "Bash",
            "cat 存在しないファイル",
            CallState::Failed,
            "\u{1b}[31mcat: no such file\u{1b}[0m",
        )),
        Block::Call(CallBlock { diff: Some(diff), ..call("Edit", "src/greeting.rs", CallState::Done, "") }),
        Block::Shell {
            command: "git status".to_owned(),
            output: "On branch main\n\u{1b}]0;title\u{7}\tclean\n".to_owned(),
            exit_code: Some(1),
        },
        Block::Notice { level: NoticeLevel::Error, text: "The request failed: try again in 5 s".to_owned() },
        Block::Compaction { text: "Conversation compacted".to_owned() },
        Block::Output { markdown: "**Cost** 0.12".to_owned() },
        Block::TurnEnd { text: "Worked for 12s".to_owned() },
    ]
}

#[test]
fn every_block_kind_on_screens_of_several_widths() {
    for width in [20, 50, 80, 120] {
        let size = Size { width, height: 24 };
        let mut stage = ConversationScreen::new(size, WriterOptions::default());
        let mut terminal = <vt100::Parser as VirtualTerminal>::of(size);
        let mut other = <avt::Terminal as VirtualTerminal>::of(size);
        for block in one_of_each() {
            stage.push_block(block);
            let bytes = stage.draw();
            terminal.write(&bytes);
            other.write(&bytes);
            assert_eq!(
                VirtualTerminal::screen(&terminal),
                VirtualTerminal::screen(&other),
                "two terminals agree"
            );
            assert_eq!(VirtualTerminal::cursor(&terminal), VirtualTerminal::cursor(&other));
        }
        let lines = terminal.lines();
        let file = format!("{}/tests/it/screens/{width}.txt", env!("CARGO_MANIFEST_DIR"));
        expect_test::expect_file![file].assert_eq(&(lines.join("\n") + "\n"));
        assert!(lines.iter().all(|line| loci_tui::text::width(line) <= usize::from(width)));
    }
}
