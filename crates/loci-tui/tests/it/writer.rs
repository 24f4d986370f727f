//! The inline writer: each final row once, in order, whatever else happens.

use loci_tui::screen::{Frame, Size, Writer, WriterOptions, live_limit};
use loci_tui::text::{Row, Span, Style, cells, clusters};
use proptest::prelude::*;

use crate::virtual_terminal::VirtualTerminal;

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    /// A frame: rows that become final, how many rows the live region has, and whether it keeps its height.
    Frame { committed: Vec<String>, live: Vec<String>, keeps_height: bool },
    /// The first rows of the live region become final, as a paragraph does that was shown while it grew.
    CommitFromLive { n_rows: usize },
    /// Another size.
    Resize(Size),
}

/// Plays steps on a terminal and returns its lines, the rows that should be there, and the bytes.
fn play<T: VirtualTerminal>(
    size: Size,
    options: WriterOptions,
    steps: &[Step],
) -> (Vec<String>, Vec<String>) {
    let mut terminal = T::of(size);
    let options = WriterOptions { reflows: T::REFLOWS, ..options };
    let mut writer = Writer::new(size, options);
    let mut size = size;
    let mut expected: Vec<String> = Vec::new();
    let mut live: Vec<Row> = Vec::new();
    for step in steps {
        let mut frame = Frame { is_caret_visible: true, ..Frame::default() };
        match step {
            Step::Frame { committed, live: texts, keeps_height } => {
                frame.committed = committed.iter().map(|text| row(text, size)).collect();
                live = texts.iter().map(|text| row(text, size)).collect();
                frame.keeps_height = *keeps_height;
            }
            Step::CommitFromLive { n_rows } => {
                frame.committed = live.drain(..live.len().min(*n_rows)).collect();
            }
            Step::Resize(to) => {
                // One that leaves rows as they are cuts off what is beyond a smaller width.
                let width = if T::REFLOWS { to.width } else { to.width.max(size.width) };
                size = Size { width, ..*to };
                terminal.resize(size);
                let (row, column) = terminal.cursor();
                writer.report_cursor(row, column);
            }
        }
        let lines = frame.committed.iter().map(Row::text);
        if T::REFLOWS {
            expected.extend(lines.map(|line| line.trim_end().to_owned()));
        } else {
            expected.extend(lines.flat_map(|line| physical_rows(&line, usize::from(size.width))));
        }
        frame.live = live.clone();
        frame.caret = (!live.is_empty()).then(|| (live.len() - 1, 1));
        let bytes = writer.draw(&frame, size);
        assert_no_clears(&bytes);
        terminal.write(&bytes);
        assert!(writer.draw(&Frame { committed: Vec::new(), keeps_height: true, ..frame }, size).is_empty());
    }
    terminal.write(&writer.leave());
    while expected.last().is_some_and(String::is_empty) {
        expected.pop();
    }
    // A wide sign that did not fit at the end of a row leaves a blank there, which `avt` counts as text.
    let without_blanks = |lines: Vec<String>| lines.iter().map(|line| line.replace(' ', "")).collect();
    (without_blanks(terminal.lines()), without_blanks(expected))
}

/// The rows that a terminal makes of a line.
fn physical_rows(line: &str, width: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    for cluster in clusters(line) {
        let is_full = loci_tui::text::width(rows.last().unwrap()) + cells(cluster) > width;
        if is_full {
            rows.push(String::new());
        }
        rows.last_mut().unwrap().push_str(cluster);
    }
    rows.iter().map(|row| row.trim_end().to_owned()).collect()
}

fn row(text: &str, size: Size) -> Row {
    let mut row = Row::new(vec![Span::plain(text)]);
    if let Some((first, rest)) = text.split_once(' ') {
        let bold = Style { is_bold: true, ..Style::default() };
        row = Row::new(vec![Span::styled(first, bold), Span::plain(format!(" {rest}"))]);
    }
    row.is_overlong = row.width() > usize::from(size.width);
    row
}

pub(crate) fn assert_no_clears(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for forbidden in ["\x1b[2J", "\x1b[3J", "\x1b[H", "\x1bc", "\x1b[S", "\x1b[r", "\x1bM"] {
        assert!(!text.contains(forbidden), "{forbidden:?} in {text:?}");
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{0,6}( [a-z]{1,8}){0,3}",
        1 => "[a-z]{20,70}",
        1 => "(漢字|한글|wide|👍){1,8}",
        1 => Just(String::new()),
    ]
}

fn size(width: std::ops::Range<u16>, height: std::ops::Range<u16>) -> impl Strategy<Value = Size> {
    (width, height).prop_map(|(width, height)| Size { width, height })
}

fn frames(max_live: usize) -> impl Strategy<Value = Step> {
    let committed = prop::collection::vec(text(), 0..6);
    let live = prop::collection::vec(text(), 0..max_live);
    prop_oneof![
        4 => (committed, live, any::<bool>())
            .prop_map(|(committed, live, keeps_height)| Step::Frame { committed, live, keeps_height }),
        1 => (1usize..4).prop_map(|n_rows| Step::CommitFromLive { n_rows }),
    ]
}

fn options() -> impl Strategy<Value = WriterOptions> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(is_synchronized, inserts_rows, writes_whole_rows)| WriterOptions {
            is_synchronized,
            inserts_rows,
            writes_whole_rows,
            ..WriterOptions::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_final_row_is_there_once_and_in_order(
        size in size(8..60, 2..16),
        options in options(),
        steps in prop::collection::vec(frames(9), 1..20),
    ) {
        let (lines, expected) = play::<vt100::Parser>(size, options, &steps);
        prop_assert_eq!(&lines, &expected);
        let (lines, expected) = play::<avt::Terminal>(size, options, &steps);
        prop_assert_eq!(lines, expected);
    }

    // A live region that no longer fits on the screen leaves its top in the scrollback, where nobody can reach it; so
    // these sizes hold it.

    #[test]
    fn resize_of_a_terminal_that_wraps_rows_anew_loses_and_doubles_none(
        size_before in size(30..60, 18..24),
        options in options(),
        steps in prop::collection::vec(
            prop_oneof![4 => frames(4), 1 => size(30..60, 18..24).prop_map(Step::Resize)], 1..20),
    ) {
        // `avt` keeps blank rows at the bottom and scrolls others away for them: some stand above the live region here.
        let committed = (0..40).map(|n| format!("row {n}")).collect();
        let filled = Step::Frame { committed, live: Vec::new(), keeps_height: false };
        let steps: Vec<Step> = std::iter::once(filled).chain(steps).collect();
        let (lines, expected) = play::<avt::Terminal>(size_before, options, &steps);
        prop_assert_eq!(lines, expected);
    }

    #[test]
    fn resize_of_a_terminal_that_leaves_rows_as_they_are_loses_and_doubles_none(
        options in options(),
        steps in prop::collection::vec(
            prop_oneof![4 => frames(4), 1 => size(60..90, 14..24).prop_map(Step::Resize)], 1..20),
    ) {
        let (lines, expected) = play::<vt100::Parser>(Size { width: 60, height: 18 }, options, &steps);
        prop_assert_eq!(lines, expected);
    }
}

/// What happens to an answer that is streamed, and the size that the window gets while the frame is on its way to the terminal.
#[derive(Debug, Clone)]
struct LateStep {
    /// Words that are added.
    n_words: usize,
    /// Rows that become final, from the first that is not.
    n_committed: usize,
    resized: Option<Size>,
}

fn late_step() -> impl Strategy<Value = LateStep> {
    let resized = prop::option::weighted(0.4, size(30..90, 20..40));
    (1usize..12, 0usize..4, resized).prop_map(|(n_words, n_committed, resized)| LateStep {
        n_words,
        n_committed,
        resized,
    })
}

/// An answer of numbered words, shown while it grows: most of it becomes final where it stands.
struct NumberedAnswer {
    n_words: usize,
    /// The first word that is not final.
    first: usize,
}

impl NumberedAnswer {
    fn frame(&mut self, step: &LateStep, size: Size) -> Frame {
        self.n_words += step.n_words;
        let words: Vec<String> = (self.first..self.n_words).map(|n| format!("w{n:04}")).collect();
        let mut rows = words.chunks(usize::from(size.width) / 6).map(|words| Row::plain(words.join(" ")));
        let n_left = rows.len().saturating_sub(7);
        let committed: Vec<Row> = rows.by_ref().take(step.n_committed.max(n_left)).collect();
        self.first += committed.iter().map(|row| row.text().split(' ').count()).sum::<usize>();
        let live: Vec<Row> = rows.chain([Row::plain("> ")]).collect();
        let caret = Some((live.len() - 1, 2));
        Frame { committed, live, caret, is_caret_visible: true, ..Frame::default() }
    }
}

/// Plays frames of which some are carried out for another size than they were made for; returns how often each word is there.
fn play_late(steps: &[LateStep]) -> (String, Vec<usize>) {
    let mut real = Size { width: 60, height: 30 };
    let mut terminal = <avt::Terminal as VirtualTerminal>::of(real);
    let mut writer = Writer::new(real, WriterOptions::default());
    writer.track_frames(true);
    let mut answer = NumberedAnswer { n_words: 0, first: 0 };
    // Something above, as in any terminal: this one keeps blank rows at the bottom.
    let filled = LateStep { n_words: 400, n_committed: 39, resized: None };
    for step in std::iter::once(&filled).chain(steps) {
        let known = real;
        let bytes = writer.draw(&answer.frame(step, known), known);
        if let Some(size) = step.resized {
            real = size;
            VirtualTerminal::resize(&mut terminal, real);
        }
        terminal.write(&bytes);
        if !bytes.is_empty() {
            assert_eq!(writer.answer_frame(real), real == known);
        }
        if real != known {
            let (row, column) = VirtualTerminal::cursor(&terminal);
            writer.report_cursor(row, column);
        }
    }
    let last = LateStep { n_words: 1, n_committed: usize::MAX, resized: None };
    terminal.write(&writer.draw(&answer.frame(&last, real), real));
    terminal.write(&writer.leave());
    let lines = terminal.lines().join("\n");
    let counts = (0..answer.n_words).map(|n| lines.matches(&format!("w{n:04}")).count()).collect();
    (lines, counts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frame_that_meets_a_resize_loses_no_final_row(steps in prop::collection::vec(late_step(), 1..30)) {
        let (lines, counts) = play_late(&steps);
        let lost: Vec<usize> = (0..counts.len()).filter(|word| counts[*word] == 0).collect();
        prop_assert!(lost.is_empty(), "{lost:?} in\n{lines}");
    }
}

#[test]
fn live_region_at_the_top_of_the_screen_is_not_erased_from_the_first_cell() {
    // tmux takes that for clearing the screen, and keeps what was on it: a second live region in the scrollback.
    let (size, lower) = (Size { width: 40, height: 20 }, Size { width: 40, height: 6 });
    let live: Vec<Row> = (0..9).map(|n| Row::plain(format!("row {n}"))).collect();
    let frame = Frame { live, caret: Some((8, 2)), is_caret_visible: true, ..Frame::default() };
    let mut writer = Writer::new(size, WriterOptions::default());
    writer.draw(&frame, size);
    writer.report_cursor(5, 2);
    let bytes = String::from_utf8(writer.draw(&frame, lower)).unwrap();
    assert!(bytes.contains("\x1b[5A\x1b[2K\x1b[2G\x1b[J\r"), "{bytes:?}");
    let bytes = String::from_utf8(writer.leave()).unwrap();
    assert!(bytes.contains("\x1b[2K\x1b[2G\x1b[J\r"), "{bytes:?}");
}

#[test]
fn frame_that_meets_another_window_doubles_nothing() {
    for size in [(60, 22), (60, 38), (80, 30), (40, 30), (33, 22), (88, 38)] {
        let size = Size { width: size.0, height: size.1 };
        let step = |n_words, n_committed, resized| LateStep { n_words, n_committed, resized };
        let steps = [step(12, 1, None), step(25, 2, Some(size)), step(9, 0, None), step(30, 3, None)];
        let (lines, counts) = play_late(&steps);
        assert!(counts.iter().all(|count| *count == 1), "{size:?}: {counts:?} in\n{lines}");
    }
}

#[test]
fn rows_that_a_late_frame_leaves_half_joined_are_found_again() {
    // Words, rows that become final, and the window that the frame meets.
    type Steps = &'static [(usize, usize, Option<(u16, u16)>)];
    let cases: [Steps; 4] = [
        // What was written at 58 columns wraps onto the prompt, of which a blank is left; at 59 that is one row, or two.
        &[(1, 0, None), (9, 0, Some((58, 20))), (1, 0, Some((59, 20)))],
        // The second half of a wrapped row was taken away, and rows came in below the first, which ends with a blank.
        &[(4, 0, Some((59, 20))), (3, 0, Some((48, 20))), (1, 0, Some((47, 20)))],
        // The second half was erased, and written anew.
        &[
            (6, 0, Some((78, 20))),
            (1, 0, None),
            (1, 1, Some((39, 20))),
            (1, 0, Some((30, 20))),
            (1, 0, Some((54, 20))),
        ],
        &[
            (1, 1, None),
            (9, 1, Some((30, 20))),
            (6, 0, Some((59, 20))),
            (4, 2, Some((59, 21))),
            (1, 0, Some((42, 20))),
            (1, 0, Some((41, 20))),
        ],
    ];
    for steps in cases {
        let steps: Vec<LateStep> = steps
            .iter()
            .map(|(n_words, n_committed, resized)| LateStep {
                n_words: *n_words,
                n_committed: *n_committed,
                resized: resized.map(|(width, height)| Size { width, height }),
            })
            .collect();
        let (lines, counts) = play_late(&steps);
        assert!(counts.iter().all(|count| *count > 0), "{steps:?}: {counts:?} in\n{lines}");
    }
}

#[test]
fn live_limit_is_half_the_screen_and_leaves_room_on_small_ones() {
    for (height, expected) in [(40, 20), (24, 12), (10, 5), (6, 5), (5, 5), (3, 3), (1, 1)] {
        assert_eq!(live_limit(height), expected, "{height}");
    }
}

/// A writer beside the terminal it writes to.
struct Drawn {
    writer: Writer,
    terminal: vt100::Parser,
    size: Size,
}

impl Drawn {
    fn new(width: u16, height: u16) -> Self {
        let size = Size { width, height };
        let writer = Writer::new(size, WriterOptions::default());
        Self { writer, terminal: VirtualTerminal::of(size), size }
    }

    /// Draws and returns the bytes.
    fn draw(&mut self, committed: &[&str], live: &[&str], keeps_height: bool) -> String {
        let rows = |texts: &[&str]| texts.iter().map(|text| Row::plain(*text)).collect::<Vec<_>>();
        let frame = Frame {
            committed: rows(committed),
            live: rows(live),
            caret: live.last().map(|last| (live.len() - 1, u16::try_from(last.len()).unwrap())),
            is_caret_visible: true,
            keeps_height,
            ..Frame::default()
        };
        let bytes = self.writer.draw(&frame, self.size);
        self.terminal.write(&bytes);
        String::from_utf8(bytes).unwrap()
    }

    fn screen(&self) -> Vec<String> {
        VirtualTerminal::screen(&self.terminal)
    }
}

#[test]
fn spinner_tick_writes_a_few_bytes_and_a_key_its_letter() {
    let mut drawn = Drawn::new(80, 24);
    drawn.draw(&["history"], &["⠋ Working… 10s", "────────────", "> hello"], false);
    let tick = drawn.draw(&[], &["⠙ Working… 11s", "────────────", "> hello"], false);
    assert_eq!(tick, "\x1b[?25l\x1b[2A\r⠙\x1b[13G1\n\n\x1b[8G\x1b[?25h");
    assert_eq!(drawn.draw(&[], &["⠙ Working… 11s", "────────────", "> hello!"], false), "!");
    assert_eq!(drawn.screen(), ["history", "⠙ Working… 11s", "────────────", "> hello!"]);
    assert_eq!(drawn.terminal.cursor(), (3, 8));
}

#[test]
fn row_that_becomes_final_where_it_stands_costs_nothing() {
    let mut drawn = Drawn::new(80, 24);
    drawn.draw(&[], &["one", "two", "> "], false);
    assert_eq!(drawn.draw(&["one", "two"], &["> "], false), "");
    let bytes = drawn.draw(&["three"], &["> "], false);
    assert_eq!(bytes, "\x1b[?25l\rthree\r\n> \x1b[?25h");
    assert_eq!(drawn.screen(), ["one", "two", "three", ">"]);
}

#[test]
fn new_row_above_a_long_tail_moves_the_tail() {
    let tail = ["a status row of the live region, unchanged", "another row that does not change", "> "];
    let mut drawn = Drawn::new(80, 6);
    drawn.draw(&["1", "2", "3"], &tail, false);
    let bytes = drawn.draw(&["4"], &tail, false);
    assert!(bytes.contains("\x1b[L") && bytes.len() < 50, "{bytes:?}");
    assert_eq!(drawn.screen(), ["2", "3", "4", tail[0], tail[1], ">"]);
    assert_eq!(drawn.terminal.lines(), ["1", "2", "3", "4", tail[0], tail[1], ">"]);
}

#[test]
fn live_region_keeps_its_height_within_a_turn_and_shrinks_after() {
    let mut drawn = Drawn::new(40, 12);
    drawn.draw(&["history"], &["partial answer", "running", "> "], false);
    drawn.draw(&[], &["> "], true);
    assert_eq!(drawn.screen(), ["history", "", "", ">"]);
    drawn.draw(&["answer"], &["> "], true);
    assert_eq!(drawn.screen(), ["history", "answer", "", ">"]);
    drawn.draw(&[], &["> "], false);
    assert_eq!(drawn.screen(), ["history", "answer", ">"]);
}

#[test]
fn live_region_is_cut_at_its_top_to_half_the_screen() {
    let mut drawn = Drawn::new(40, 12);
    let rows: Vec<String> = (0..20).map(|n| format!("row {n}")).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    drawn.draw(&["history"], &rows, false);
    assert_eq!(drawn.screen(), ["history", "row 14", "row 15", "row 16", "row 17", "row 18", "row 19"]);
    assert_eq!(drawn.terminal.cursor(), (6, 6));
}

#[test]
fn synchronized_frame_has_its_marks_and_an_empty_one_no_bytes() {
    let size = Size { width: 40, height: 10 };
    let options = WriterOptions { is_synchronized: true, ..WriterOptions::default() };
    let mut writer = Writer::new(size, options);
    let frame = Frame { live: vec![Row::plain("a"), Row::plain("b")], ..Frame::default() };
    let bytes = String::from_utf8(writer.draw(&frame, size)).unwrap();
    assert_eq!(bytes, "\x1b[?2026h\x1b[?25la\r\nb\r\x1b[?2026l");
    assert_eq!(writer.draw(&frame, size), b"");
    let bytes = String::from_utf8(writer.leave()).unwrap();
    assert_eq!(bytes, "\x1b[?2026h\x1b[A\x1b[2K\x1b[2G\x1b[J\r\x1b[?25h\x1b[?2026l");
}

#[test]
fn live_region_starts_below_what_another_program_wrote() {
    for (written, expected) in
        [("done\r\n", vec!["done", ">"]), ("no end", vec!["no end", ">"]), ("", vec![">"])]
    {
        let mut drawn = Drawn::new(40, 10);
        let left = drawn.writer.leave();
        drawn.terminal.write(&left);
        drawn.terminal.write(written.as_bytes());
        let started = drawn.writer.start_below(drawn.size);
        drawn.terminal.write(&started);
        drawn.draw(&[], &["> "], false);
        assert_eq!(drawn.screen(), expected, "{written:?}");
    }
}

#[test]
fn scroll_away_empties_the_screen_and_keeps_the_scrollback() {
    let mut drawn = Drawn::new(40, 5);
    drawn.draw(&["1", "2", "3"], &["> "], false);
    let bytes = drawn.writer.scroll_away();
    drawn.terminal.write(&bytes);
    drawn.draw(&[], &["> "], false);
    assert_eq!(drawn.screen(), [">"]);
    assert_eq!(drawn.terminal.lines()[..3], ["1", "2", "3"]);
}

#[test]
fn full_screen_writes_what_differs_and_cuts_to_its_size() {
    let size = Size { width: 10, height: 4 };
    let mut terminal: vt100::Parser = VirtualTerminal::of(size);
    let mut screen = loci_tui::screen::FullScreen::new(WriterOptions::default());
    let rows = |texts: &[&str]| texts.iter().map(|text| Row::plain(*text)).collect::<Vec<_>>();
    terminal.write(&screen.draw(&rows(&["one", "two", "three", "four", "five"]), None, size));
    terminal.write(&screen.draw(&rows(&["one", "2", "longer than ten"]), Some((1, 1)), size));
    assert_eq!(VirtualTerminal::screen(&terminal), ["one", "2", "longer th…"]);
    assert_eq!(terminal.cursor(), (1, 1));
    let same = screen.draw(&rows(&["one", "2", "longer than ten"]), Some((1, 1)), size);
    assert_eq!(same, b"");
    let without_caret = screen.draw(&rows(&["one", "2", "longer than ten"]), None, size);
    assert_eq!(without_caret, b"\x1b[?25l");
    let smaller = Size { width: 4, height: 2 };
    VirtualTerminal::resize(&mut terminal, smaller);
    terminal.write(&screen.draw(&rows(&["one", "2"]), None, smaller));
    assert_eq!(VirtualTerminal::screen(&terminal), ["one", "2"]);
}
