//! Blocks as rows.

use expect_test::{Expect, expect};

use super::*;
use crate::block::{CallBlock, CallState, FileDiff};
use crate::theme::{Backdrop, ColorDepth};

fn ctx() -> RenderContext {
    RenderContext::new(60, Theme::new(ColorDepth::Ansi, Backdrop::Dark))
}

fn call(tool: &str, summary: &str, state: CallState, output: &str) -> CallBlock {
    CallBlock {
        tool: tool.to_owned(),
        summary: summary.to_owned(),
        agent: None,
        is_read_only: false,
        state,
        diff: None,
        output: output.to_owned(),
        plan: None,
    }
}

fn text_of(rows: &[Row]) -> String {
    rows.iter().map(|row| row.text() + "\n").collect()
}

#[expect(clippy::needless_pass_by_value, reason = "as `expect!` gives it")]
fn check(blocks: &[Block], ctx: &RenderContext, expected: Expect) {
    let rows: Vec<Row> = blocks.iter().flat_map(|block| render_block(block, ctx)).collect();
    expected.assert_eq(&text_of(&rows));
}

fn conversation() -> Vec<Block> {
    let output = (1..=9).map(|n| format!("line {n}\n")).collect::<String>();
    let diff = FileDiff {
        path: "src/a.rs".to_owned(),
        before: "fn a() {\n    let x = 1;\n}\n".to_owned(),
        after: "fn a() {\n    let x = 2;\n    let y = 3;\n}\n".to_owned(),
        first_line: 9,
    };
    vec![
        Block::Prompt { text: "please do\nthis".to_owned(), attachments: vec!["cat.png".to_owned()] },
        Block::Thinking { text: "hm, let me see".to_owned(), duration: Some(Duration::from_secs(75)) },
        Block::Answer { markdown: "I **will**.\n\n- one".to_owned() },
        Block::Call(call("Bash", "ls -l", CallState::Done, &output)),
        Block::Call(call("Bash", "false", CallState::Failed, "\u{1b}[31mno such file\u{1b}[0m\n")),
        Block::Call(call("Bash", "rm -rf /", CallState::Refused, "")),
        Block::Call(CallBlock { diff: Some(diff), ..call("Edit", "src/a.rs", CallState::Done, "ok") }),
        Block::Call(CallBlock {
            agent: Some("scout".to_owned()),
            ..call("Bash", "make", CallState::Running, &output)
        }),
        Block::Shell {
            command: "git status".to_owned(),
            output: "clean\n\tok\n".to_owned(),
            exit_code: Some(2),
        },
        Block::Notice { level: NoticeLevel::Warning, text: "disk is nearly full".to_owned() },
        Block::Notice { level: NoticeLevel::Error, text: "request failed\ntry again".to_owned() },
        Block::Notice { level: NoticeLevel::Info, text: "saved".to_owned() },
        Block::Compaction { text: "Conversation compacted".to_owned() },
        Block::TurnEnd { text: "Worked for 12s".to_owned() },
    ]
}

#[test]
fn row_of_a_call_keeps_the_name_of_its_file() {
    let ctx = RenderContext::new(60, Theme::new(ColorDepth::None, Backdrop::Dark));
    let dir = "packages/frontend/src/organisation/settings";
    let one = call("Write", &format!("{dir}/InvitationDialog.tsx"), CallState::Done, "");
    let rows = render_call(&one, &ctx);
    assert_eq!(rows[0].text(), "● Write(packages/frontend/src/…/InvitationDialog.tsx)");
    let reads = ["Members.tsx", "Invitation.tsx"].map(|name| CallBlock {
        is_read_only: true,
        ..call("Read", &format!("{dir}/{name}"), CallState::Done, "")
    });
    let rows = render_call_group(&reads.iter().collect::<Vec<_>>(), &ctx);
    assert!(rows[0].text().contains("Members.tsx") && rows[0].text().contains("Invitation.tsx"), "{rows:?}");
    assert!(rows[0].width() <= 60);
}

#[test]
fn plan_that_was_approved_is_shown_whole_as_markdown() {
    let plan = Some("# Plan\n\n1. **Build**\n2. Test".to_owned());
    let block =
        Block::Call(CallBlock { plan, ..call("ExitPlanMode", "Plan", CallState::Done, "for the model") });
    check(
        std::slice::from_ref(&block),
        &ctx(),
        expect![[r#"
            ● ExitPlanMode(Plan)
              └ approved

              Plan

              1. Build
              2. Test
        "#]],
    );
    check(
        &[block],
        &RenderContext::screen_reader(),
        expect![[r#"
        tool: ExitPlanMode(Plan)
        approved

        Plan

        1. Build
        2. Test
    "#]],
    );
}

#[test]
fn answers_of_a_person_are_shown_whole() {
    let said = "The user has answered:\n- Which colour?\n  Answer: Blue\n- Which size?\n  Answer: large\nGo on with that in mind.";
    check(
        &[Block::Call(call("AskUserQuestion", "Which colour? · Which size?", CallState::Done, said))],
        &ctx(),
        expect![[r#"
            ● AskUserQuestion(Which colour? · Which size?)
              └ - Which colour?
                  Answer: Blue
                - Which size?
                  Answer: large
        "#]],
    );
}

#[test]
fn what_the_model_is_told_of_an_agent_is_not_shown_with_it() {
    let returned = |tool: &str, text: &str| Block::Call(call(tool, "look", CallState::Done, text));
    check(
        &[
            returned(
                "Agent",
                "Async agent launched.\nagentId: a1 (for SendMessage)\nThe agent works.\nMore.",
            ),
            returned("Agent", "Two callers.\nBoth in a.rs.\nagentId: a1\n<usage>\n</usage>"),
            returned("Agent", "One.\nTwo.\nThree.\nFour.\nFive."),
            returned("Bash", "1\nagentId: 2\n3"),
        ],
        &ctx(),
        expect![[r#"
            ● Agent(look)
              └ Async agent launched.
                … +3 lines (ctrl+o shows all)
            ● Agent(look)
              └ Two callers.
                Both in a.rs.
                … +3 lines (ctrl+o shows all)
            ● Agent(look)
              └ One.
                Two.
                Three.
                … +2 lines (ctrl+o shows all)
            ● Bash(look)
              └ 1
                agentId: 2
                3
        "#]],
    );
}

#[test]
fn blocks_are_short_unless_all_is_wanted() {
    check(
        &conversation(),
        &ctx(),
        expect![[r#"
            > please do
              this
              [cat.png]
            ✻ Thought for 1m 15s (ctrl+o shows it)
            I will.

            - one
            ● Bash(ls -l)
              └ line 1
                line 2
                line 3
                … +6 lines (ctrl+o shows all)
            ✗ Bash(false) failed
              └ no such file
            ○ Bash(rm -rf /) not run
            ● Edit(src/a.rs) +2 -1
             9   fn a() {
            10 -     let x = 1;
            10 +     let x = 2;
            11 +     let y = 3;
            12   }
            ⠋ scout · Bash(make)
              └ line 7
                line 8
                line 9
            ! git status
              clean
                      ok
              exit code 2
            Warning: disk is nearly full
            Error: request failed
            try again
            saved
            ✻ Conversation compacted
            Worked for 12s
        "#]],
    );
    check(
        &conversation(),
        &RenderContext { is_verbose: true, ..ctx() },
        expect![[r#"
        > please do
          this
          [cat.png]
        ✻ Thought for 1m 15s
          hm, let me see
        I will.

        - one
        ● Bash(ls -l)
          └ line 1
            line 2
            line 3
            line 4
            line 5
            line 6
            line 7
            line 8
            line 9
        ✗ Bash(false) failed
          └ no such file
        ○ Bash(rm -rf /) not run
        ● Edit(src/a.rs) +2 -1
         9   fn a() {
        10 -     let x = 1;
        10 +     let x = 2;
        11 +     let y = 3;
        12   }
        ⠋ scout · Bash(make)
          └ line 1
            line 2
            line 3
            line 4
            line 5
            line 6
            line 7
            line 8
            line 9
        ! git status
          clean
                  ok
          exit code 2
        Warning: disk is nearly full
        Error: request failed
        try again
        saved
        ✻ Conversation compacted
        Worked for 12s
    "#]],
    );
}

#[test]
fn screen_reader_gets_labels_and_no_decoration() {
    check(
        &conversation(),
        &RenderContext::screen_reader(),
        expect![[r#"
            you: please do
            this
              [cat.png]
            thinking: Thought for 1m 15s
            claude: I will.

            - one
            tool: Bash(ls -l)
            line 1
            line 2
            line 3
            … +6 lines (ctrl+o shows all)
            tool error: Bash(false)
            no such file
            tool: Bash(rm -rf /) not run
            tool: Edit(src/a.rs) +2 -1
             9   fn a() {
            10 -     let x = 1;
            10 +     let x = 2;
            11 +     let y = 3;
            12   }
            tool: scout · Bash(make)
            line 7
            line 8
            line 9
            you: ! git status
            clean
                    ok
            exit code 2
            warning: disk is nearly full
            error: request failed
            try again
            saved
            Conversation compacted
            turn ended: Worked for 12s
        "#]],
    );
}

#[test]
fn calls_that_only_look_are_told_in_one_line() {
    let read = |tool: &str, summary: &str, state| CallBlock {
        is_read_only: true,
        ..call(tool, summary, state, "1\n2\n3\n4\n5\n")
    };
    let calls = [
        read("Read", "a.rs", CallState::Done),
        read("Read", "b.rs", CallState::Done),
        read("Grep", "foo", CallState::Running),
    ];
    let all: Vec<&CallBlock> = calls.iter().collect();
    assert_eq!(text_of(&render_call_group(&all, &ctx())), "⠋ Read(a.rs, b.rs) · Grep(foo)\n");
    assert_eq!(text_of(&render_call_group(&all[..2], &ctx())), "● Read(a.rs, b.rs)\n");
    assert_eq!(text_of(&render_call_group(&all[..1], &ctx())), "● Read(a.rs)\n");
    assert!(calls.iter().all(is_groupable));
    assert!(!is_groupable(&read("Read", "x", CallState::Failed)));
}

#[test]
fn diff_marks_the_words_that_differ() {
    let diff = FileDiff {
        path: "a".to_owned(),
        before: "same\nthe quick fox\n".to_owned() + &"ctx\n".repeat(10) + "old end",
        after: "same\nthe slow fox\n".to_owned() + &"ctx\n".repeat(10) + "\u{1b}[2Jsomething else\n",
        first_line: 98,
    };
    let rows = render_diff(&diff, &ctx());
    expect![[r#"
         98   same
         99 - the quick fox
         99 + the slow fox
        100   ctx
        101   ctx
        102   ctx
            …
        107   ctx
        108   ctx
        109   ctx
        110 - old end
        110 + ␛[2Jsomething else
    "#]]
    .assert_eq(&text_of(&rows));
    let marked: Vec<&str> = rows
        .iter()
        .flat_map(|row| &row.spans)
        .filter(|span| span.style.is_underlined)
        .map(|span| span.text.as_str())
        .collect();
    assert_eq!(marked, ["quick", "slow"]);
    assert_eq!(diff_stat(&diff), DiffStat { n_added: 2, n_removed: 2 });
}

#[test]
fn escape_sequences_in_any_text_become_marks_or_go() {
    let evil = "a\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}31m\u{202e}b\r\u{8}".to_owned();
    let blocks = [
        Block::Prompt { text: evil.clone(), attachments: vec![evil.clone()] },
        Block::Answer {
            markdown: format!(
                "{evil} `{evil}` [{evil}](http://x/{evil})\n\n```{evil}\n{evil}\n```\n| {evil} |\n|--|\n| {evil} |"
            ),
        },
        Block::Thinking { text: evil.clone(), duration: None },
        Block::Call(CallBlock {
            agent: Some(evil.clone()),
            diff: Some(FileDiff {
                path: evil.clone(),
                before: evil.clone(),
                after: evil.clone() + "x",
                first_line: 1,
            }),
            ..call(&evil, &evil, CallState::Done, &evil)
        }),
        Block::Call(call(&evil, &evil, CallState::Failed, &evil)),
        Block::Shell { command: evil.clone(), output: evil.clone(), exit_code: None },
        Block::Notice { level: NoticeLevel::Error, text: evil.clone() },
        Block::Compaction { text: evil.clone() },
        Block::TurnEnd { text: evil.clone() },
        Block::Output { markdown: evil },
    ];
    for ctx in [ctx(), RenderContext { is_verbose: true, ..ctx() }, RenderContext::screen_reader()] {
        for block in &blocks {
            for row in render_block(block, &ctx) {
                assert!(!row.text().chars().any(crate::text::is_harmful_in_row), "{row:?}");
                for link in row.spans.iter().filter_map(|span| span.link.as_ref()) {
                    assert!(link.bytes().all(|byte| (0x21..0x7f).contains(&byte)), "{link:?}");
                }
            }
        }
    }
}
