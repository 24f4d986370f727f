//! Documents as rows, in whole and in parts.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::render::highlight::START_PATIENCE;
use crate::theme::{Backdrop, ColorDepth, Theme};

fn ctx(width: usize) -> RenderContext {
    RenderContext::new(width, Theme::new(ColorDepth::Ansi, Backdrop::Dark))
}

fn text_of(rows: &[Row]) -> String {
    rows.iter().map(|row| row.text() + "\n").collect()
}

/// Shows rows with looks: `*bold*`, `/italic/`, `_underlined_`, `-struck-`, and colours as `{n:...}`.
fn looks_of(rows: &[Row]) -> String {
    let mut out = String::new();
    for row in rows {
        for span in &row.spans {
            let style = span.style;
            let mut text = span.text.clone();
            for (is_on, mark) in [
                (style.is_bold, '*'),
                (style.is_italic, '/'),
                (style.is_underlined, '_'),
                (style.is_struck, '-'),
            ] {
                if is_on {
                    text = format!("{mark}{text}{mark}");
                }
            }
            if let crate::text::Color::Ansi(n) = style.fg {
                text = format!("{{{n}:{text}}}");
            }
            if let Some(link) = &span.link {
                text = format!("{text}<{link}>");
            }
            out.push_str(&text);
        }
        out.push('\n');
    }
    out
}

#[expect(clippy::needless_pass_by_value, reason = "as `expect!` gives it")]
fn check(source: &str, width: usize, expected: Expect) {
    expected.assert_eq(&text_of(&render_markdown(source, &ctx(width))));
}

#[expect(clippy::needless_pass_by_value, reason = "as `expect!` gives it")]
fn check_looks(source: &str, expected: Expect) {
    expected.assert_eq(&looks_of(&render_markdown(source, &ctx(80))));
}

#[test]
fn blocks_keep_the_spacing_of_their_source() {
    check(
        "# Title\nText one\ngoes on.\n\n\nText two.\n## Sub ##\n***\nend",
        40,
        expect![[r#"
            Title
            Text one
            goes on.

            Text two.

            Sub
            ────────────────────────────────────────
            end
        "#]],
    );
}

#[test]
fn lists_nest_and_count() {
    check(
        "Steps:\n\n1. one\n1. two\n   goes on here and is long enough to wrap\n   - nested\n     - deeper\n3. three\n\n- [ ] open\n- [x] done\n\n- loose\n\n- list\n-\n- after empty\n",
        30,
        expect![[r#"
            Steps:

            1. one
            2. two
               goes on here and is long
               enough to wrap
               - nested
                 - deeper
            3. three

            - [ ] open
            - [x] done

            - loose

            - list
            - 
            - after empty
        "#]],
    );
}

#[test]
fn code_is_indented_by_two_columns_and_never_wrapped() {
    check(
        "Run:\n```rust\nfn main() {\n\tprintln!(\"a long line that is wider than the screen\");\n\n}\n```\n1. In a list:\n   ```\n   code\n     more\n   ```\n   after\n\n    indented\n\n    code\n~~~\nopen",
        24,
        expect![[r#"
            Run:
              fn main() {
                  println!("a long line that is wider than the screen");
  
              }
            1. In a list:
               code
                 more
               after

               indented

               code
              open
        "#]],
    );
}

#[test]
fn quotes_have_a_bar_and_go_on_lazily() {
    check(
        "> quoted text that wraps around\nlazy line\n>\n> - item\n> second\n\nafter",
        20,
        expect![[r#"
        │ quoted text that
        │ wraps around
        │ lazy line

        │ - item
        │   second

        after
    "#]],
    );
}

#[test]
fn tables_fit_or_become_records() {
    let source = "| Name | What it does | N |\n|:--|:--|--:|\n| `alpha` | The first of all letters | 1 |\n| beta | 漢字 and emoji 👍 | 20 |\n\nafter";
    check(
        source,
        60,
        expect![[r#"
        Name   What it does               N
        ─────  ────────────────────────  ──
        alpha  The first of all letters   1
        beta   漢字 and emoji 👍         20

        after
    "#]],
    );
    check(
        source,
        30,
        expect![[r#"
        Name   What it does          N
        ─────  ───────────────────  ──
        alpha  The first of all      1
               letters
        beta   漢字 and emoji 👍    20

        after
    "#]],
    );
    check(
        source,
        14,
        expect![[r#"
        Name: alpha
        What it does:
        The first of
        all letters
        N: 1

        Name: beta
        What it does:
        漢字 and emoji
        👍
        N: 20

        after
    "#]],
    );
}

#[test]
fn html_and_link_definitions_are_shown_as_text() {
    check(
        "<details>\n<summary>More</summary>\n\ntext with <b>tag</b> and a < b\n\n[1]: http://example.com\n\n<!-- note -->",
        40,
        expect![[r#"
            <details>
            <summary>More</summary>

            text with <b>tag</b> and a < b

            [1]: http://example.com

            <!-- note -->
        "#]],
    );
}

#[test]
fn inline_marks_become_looks() {
    check_looks(
        "A **bold** and *slanted* and ***both*** and ~~gone~~ and `code *x*` and \\*escaped\\* snake_case_name 2 * 3 * 4 &amp; ok",
        expect![[r#"
            A *bold* and /slanted/ and /*both*/ and -gone- and {6:code *x*} and *escaped* snake_case_name
            2 * 3 * 4 & ok
        "#]],
    );
    check_looks(
        "[text](https://example.com/a) <https://x.org> see https://y.org/p(1). ![a cat](cat.png) [bad](javascript:x) [mail](mailto:a@b.c)",
        expect![[r#"
            {4:_text_}<https://example.com/a> {4:_https://x.org_}<https://x.org> see {4:_https://y.org/p(1)_}<https://y.org/p(1)>. [image: a cat] {4:_bad_} (javascript:x)
            {4:_mail_}<mailto:a@b.c>
        "#]],
    );
    check_looks(
        "# A **b** `c`\n> quoted *word*",
        expect![[r#"
        {5:*A b *}{6:c}
        │ /quoted word/
    "#]],
    );
}

#[test]
fn addresses_are_written_out_where_links_are_not_carried() {
    let ctx = RenderContext { has_hyperlinks: false, ..ctx(80) };
    let rows = render_markdown("[text](https://example.com) and <https://x.org>", &ctx);
    assert_eq!(text_of(&rows), "text (https://example.com) and https://x.org\n");
}

#[test]
fn screen_reader_gets_tables_as_sentences() {
    let ctx = RenderContext { is_screen_reader: true, width: usize::MAX, ..ctx(80) };
    let rows = render_markdown("| A | B |\n|--|--|\n| 1 | 2 |\n\n```\ncode\n```\n> q", &ctx);
    assert_eq!(text_of(&rows), "A: 1\nB: 2\n\ncode\n> q\n");
}

#[test]
fn open_marks_are_shown_as_they_will_most_likely_end() {
    for (text, expected) in [
        ("some **bold te", "some **bold te**"),
        ("some **bold ", "some **bold**"),
        ("some **", "some"),
        ("some **bold*", "some **bold**"),
        ("a `code", "a `code`"),
        ("a ``", "a"),
        ("*a **b", "*a **b***"),
        ("done **b** and *i* x", "done **b** and *i* x"),
        ("~~gone", "~~gone~~"),
        ("[label", "label"),
        ("[label](http://exa", "[label](http://exa)"),
        ("[label]", "[label]"),
        ("snake_case and 2 * 3", "snake_case and 2 * 3"),
        ("\\*no", "\\*no"),
        ("漢字 **太", "漢字 **太**"),
        ("**", ""),
    ] {
        assert_eq!(inline::complete(text), expected, "{text:?}");
    }
}

#[test]
fn live_rows_hide_marks_that_are_not_whole() {
    let live = |source: &str| {
        let mut markdown = StreamingMarkdown::default();
        markdown.push(source);
        markdown.take_committed(&ctx(40));
        looks_of(&markdown.live(&ctx(40)))
    };
    assert_eq!(live("text **bold"), "text *bold*\n");
    assert_eq!(live("done\n\n``"), "");
    assert_eq!(live("done\n\n```rust\nfn ma"), "\n  fn ma\n");
    assert_eq!(live("done\n\n```rust\nfn main() {}\n``"), "");
    assert_eq!(live("# He"), "{5:*He*}\n");
    assert_eq!(live("- a\n-"), "- a\n");
    assert_eq!(live("| a | b |\n|--|--|\n| 1 | 2"), "*a*  *b*\n─  ─\n1  2\n");
}

#[test]
fn rows_become_final_when_nothing_can_change_them() {
    let mut markdown = StreamingMarkdown::default();
    let mut taken = |delta: &str| {
        markdown.push(delta);
        text_of(&markdown.take_committed(&ctx(40)))
    };
    assert_eq!(taken("para one\nstill one"), "");
    assert_eq!(taken("\n\n"), "para one\nstill one\n");
    assert_eq!(taken("```\nline 1\nline"), "\n  line 1\n");
    assert_eq!(taken(" 2\n```\n"), "  line 2\n");
    assert_eq!(taken("- one\n- tw"), "");
    assert_eq!(taken("o\n- "), "- one\n");
    assert_eq!(taken("three\n\n| a |\n|--|\n| 1 |\n"), "- two\n- three\n");
    assert_eq!(taken("\n"), "\na\n─\n1\n");
}

#[test]
fn long_paragraph_is_taken_in_parts() {
    let mut markdown = StreamingMarkdown::default();
    let ctx = ctx(20);
    let source = "- word ".to_owned() + &"some words ".repeat(30) + "**open " + &"bold ".repeat(30);
    let mut rows = Vec::new();
    for delta in source.split_inclusive(' ') {
        markdown.push(delta);
        rows.extend(markdown.take_committed(&ctx));
        rows.extend(markdown.take_overflow(3, &ctx));
    }
    // Up to the mark that is open, but for what the live region shows.
    assert!(rows.len() > 15, "{}", rows.len());
    markdown.push("**");
    markdown.finish();
    rows.extend(markdown.take_committed(&ctx));
    assert_eq!(rows, render_markdown(&(source + "**"), &ctx));
}

#[test]
fn paragraph_without_end_is_cut() {
    let source = "word ".repeat(20_000);
    let mut markdown = StreamingMarkdown::default();
    markdown.push(&source);
    assert!(markdown.line.len() <= LONGEST_PARAGRAPH);
    markdown.finish();
    let rows = markdown.take_committed(&ctx(100));
    let n_words: usize = rows.iter().map(|row| row.text().split_whitespace().count()).sum();
    assert_eq!(n_words, 20_000);
}

#[test]
fn code_waits_for_its_colours_and_not_longer() {
    let mut markdown = StreamingMarkdown::with_highlighter(Highlighter::default());
    let source = "```rust\nfn a() {\n\tb(\"\u{1b}[2J\");\n}\n```\n";
    markdown.push(source);
    let mut rows = markdown.take_committed(&ctx(40));
    assert_eq!(rows.len() + markdown.live(&ctx(40)).len(), 3, "what waits is live");
    let later = RenderContext { now: START_PATIENCE, ..ctx(40) };
    rows.extend(markdown.take_committed(&later));
    assert_eq!(text_of(&rows), text_of(&render_markdown(source, &ctx(40))));
    markdown.push("```rust\nlet a = 1;\n");
    markdown.finish();
    let mut rows = markdown.take_committed(&later);
    let last = RenderContext { now: START_PATIENCE + START_PATIENCE, ..ctx(40) };
    assert!(!markdown.awaits_colors(last.now) && markdown.deadline(last.now).is_none());
    rows.extend(markdown.take_committed(&last));
    assert_eq!(text_of(&rows), "  let a = 1;\n");
}

#[test]
fn code_has_the_colours_that_are_ready() {
    let highlighter = Highlighter::default();
    let mut markdown = StreamingMarkdown::with_highlighter(highlighter.clone());
    markdown.push("```rust\nlet a = 1;\n");
    // Time stands still here, so the line waits for the worker.
    let rows = std::iter::repeat_with(|| {
        std::thread::yield_now();
        markdown.take_committed(&ctx(40))
    });
    let rows = rows.take(20_000_000).find(|rows| !rows.is_empty()).unwrap();
    assert_eq!(looks_of(&rows), "  {5:let} a = {3:1};\n");
    let source = "```rust\nlet a = 1;\n```\n```rust\nlet b = 1;\n```\n";
    let again = RenderContext { highlighter: Some(highlighter), ..ctx(30) };
    let rows = render_markdown(source, &again);
    assert_eq!(
        looks_of(&rows),
        "  {5:let} a = {3:1};\n  let b = 1;\n",
        "what was coloured before is, at any width"
    );
}

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z]{1,9}".prop_map(|word| word),
        4 => Just(" ".to_owned()),
        3 => Just("\n".to_owned()),
        2 => Just("\n\n".to_owned()),
        3 => prop::sample::select(vec![
            "**", "*", "_", "`", "```\n", "```rust\n", "~~", "[", "](http://x.y)", "](", ")", "- ", "1. ", "> ", "# ",
            "| a | b |\n|---|---|\n", "| 1 | 2 |\n", "|", "---\n", "===\n", "    ", "\t", "<b>", "<div>\n", "\\", "漢字",
            "👨‍👩‍👧", "\u{1b}[2J", "\u{202e}", "https://example.com/path ", "&amp;", "!", "\r\n",
        ]).prop_map(str::to_owned),
    ]
}

#[test]
fn line_without_words_at_the_end_is_no_row_however_the_text_was_cut() {
    for source in ["aaaa\n [](http://x.y)", "aaaa\n[](http://x.y)\n[](http://x.y)"] {
        let ctx = ctx(10);
        for cut in 1..8 {
            let mut markdown = StreamingMarkdown::default();
            let mut rows = Vec::new();
            for part in source.as_bytes().chunks(cut) {
                markdown.push(std::str::from_utf8(part).unwrap());
                rows.extend(markdown.take_committed(&ctx));
                rows.extend(markdown.take_overflow(0, &ctx));
            }
            markdown.finish();
            rows.extend(markdown.take_committed(&ctx));
            assert_eq!(rows, render_markdown(source, &ctx), "{source:?} by {cut}");
            assert_eq!(rows.len(), 1, "{source:?} by {cut}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_do_not_depend_on_how_the_text_was_cut(
        fragments in prop::collection::vec(fragment(), 0..60),
        cuts in prop::collection::vec(1usize..7, 1..20),
        width in 10usize..60,
        max_live in 0usize..6,
    ) {
        let source = fragments.concat();
        let ctx = ctx(width);
        let mut markdown = StreamingMarkdown::default();
        let mut rows = Vec::new();
        let mut rest = source.as_str();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (delta, after) = rest.split_at(rest.ceil_char_boundary((*cut).min(rest.len())));
            rest = after;
            markdown.push(delta);
            rows.extend(markdown.take_committed(&ctx));
            rows.extend(markdown.take_overflow(max_live, &ctx));
            for row in markdown.live(&ctx) {
                prop_assert!(!row.text().chars().any(crate::text::is_harmful_in_row), "{row:?}");
            }
        }
        markdown.finish();
        rows.extend(markdown.take_committed(&ctx));
        let expected = render_markdown(&source, &ctx);
        prop_assert_eq!(&rows, &expected, "{:?}", source);
        for row in expected {
            prop_assert!(!row.text().chars().any(crate::text::is_harmful_in_row), "{row:?}");
            prop_assert_eq!(row.is_overlong, row.width() > width, "{:?}", row);
        }
    }
}
