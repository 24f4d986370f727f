//! Small sessions, one rule each.

use super::*;

fn check(table: &str, expected: &str) {
    assert_eq!(show(&Conversation::build(session(table))), expected, "{table}");
}

#[test]
fn an_empty_session_has_no_path() {
    check("", "");
    check("pointer x", "");
    check("mode - -", "");
}

#[test]
fn linear_chain_is_the_path() {
    check("user u1 -\nassistant a1 u1\nuser u2 a1\nassistant a2 u2", "u1 a1 u2 a2");
}

#[test]
fn the_order_of_lines_does_not_matter() {
    check("assistant a1 t1\nuser u1 -\nattachment t1 u1", "u1 t1 a1");
}

#[test]
fn the_last_of_two_entries_with_one_uuid_counts() {
    check("user u1 -\nassistant a1 u1\nassistant a2 u1\nassistant a1 a2", "u1 a2 a1");
}

#[test]
fn sidechain_entries_are_not_on_the_path() {
    check("user u1 -\nuser s1 u1 side\nassistant a1 u1\nuser s2 - side", "u1 a1");
}

#[test]
fn links_pass_their_children_on() {
    check("user u1 -\nprogress p1 u1\nprogress p2 p1\nassistant a1 p2", "u1 a1");
    check("user u1 -\nfrom-the-future x1 u1\nassistant a1 x1", "u1 a1");
    check("user u1 -\nprogress p1 p2\nprogress p2 p1\nassistant a1 p1", "u1 a1");
}

const BRANCHES: &str = "user u1 -\nassistant a1 u1\nuser u2 a1\nassistant a2 u2\nuser u3 a1\nassistant a3 u3";

#[test]
fn the_branch_written_last_is_continued() {
    check(BRANCHES, "u1 a1 u3 a3");
    check(&format!("{BRANCHES}\npointer a1"), "u1 a1 u3 a3");
    check(&format!("{BRANCHES}\npointer nowhere"), "u1 a1 u3 a3");
}

#[test]
fn a_pointer_at_the_end_chooses_the_branch() {
    check(&format!("{BRANCHES}\npointer a2"), "u1 a1 u2 a2");
    check(&format!("{BRANCHES}\npointer u2"), "u1 a1 u2 | filler(u2)");
}

/// Invariant 7 of `docs/design/session-log.md`.
#[test]
fn pointer_to_the_leaf_of_a_branch_chooses_it_whatever_another_branch_said_later() {
    let table =
        "user u1 -\nassistant a1 u1\nuser u2 a1\nassistant a2 u2\npointer a2\nuser u3 a1\nassistant a3 u3";
    check(table, "u1 a1 u2 a2");
    // Whoever leaves a branch says so first.
    check(&table.replace("user u3", "pointer a1\nuser u3"), "u1 a1 u3 a3");
}

#[test]
fn pointer_into_a_branch_that_went_on_is_out_of_date() {
    let table =
        "user u1 -\nassistant a1 u1\nuser u2 a1\npointer u2\nassistant a2 u2\nuser u3 a1\nassistant a3 u3";
    check(table, "u1 a1 u3 a3");
    let before = "user u1 -\nassistant a1 u1\npointer u2\nuser u2 a1\nuser u3 a1\nassistant a3 u3";
    check(before, "u1 a1 u3 a3");
}

#[test]
fn pointer_to_an_entry_before_a_compaction_is_out_of_date() {
    let table = "user u1 -\nassistant a1 u1\npointer a1\nboundary b - logical=a1\nuser s b summary\nuser u2 s\nassistant a2 u2";
    check(table, "b s u2 a2");
}

#[test]
fn child_written_before_its_parent_is_on_the_path() {
    check("user u0 -\nassistant a0 u0\nassistant a1 t1\nuser u1 a0\nattachment t1 u1", "u0 a0 u1 t1 a1");
}

#[test]
fn a_lost_parent_is_replaced_by_the_message_before_it_in_time() {
    let table = "user u1 - at=00\nassistant a1 u1 at=10\nassistant dead u1 at=02\nuser u2 lost at=15";
    check(table, "u1 a1 u2 | filler(u2)");
}

#[test]
fn a_lost_parent_long_ago_does_not_cost_the_history() {
    check("user u1 - at=00\nassistant a1 u1 at=01\nuser u2 lost at=40\nassistant a2 u2", "u1 a1 u2 a2");
    check("user u1 -\nassistant a1 u1\nuser u2 lost\nassistant a2 u2\nuser u3 lost", "u1 a1 u3 | filler(u3)");
}

#[test]
fn an_orphan_does_not_hang_from_its_own_child() {
    check("assistant a1 u1 at=01\nuser u1 lost at=01", "u1 a1");
    check("user u1 u1", "u1 | filler(u1)");
}

#[test]
fn a_circle_of_parents_ends() {
    check("user u1 a1\nassistant a1 u1", "u1 a1");
    check("user x -\nuser u1 u2\nassistant a1 u1\nuser u2 a1", "x u1 a1 u2 | filler(u2)");
}

#[test]
fn a_boundary_starts_the_conversation() {
    let table =
        "user u1 -\nassistant a1 u1\nboundary b - logical=a1\nuser s b summary\nuser u2 s\nassistant a2 u2";
    check(table, "b s u2 a2");
}

#[test]
fn boundary_without_summary_keeps_the_history() {
    let table = "user u1 -\nassistant a1 u1\nboundary b - logical=a1";
    check(table, "u1 a1");
    check(&format!("{table}\nuser u2 b\nassistant a2 u2"), "u1 a1 u2 a2");
    check("user u1 -\nassistant a1 u1\nboundary b -\nuser u2 b\nassistant a2 u2", "u1 a1 u2 a2");
}

const COMPACTED: &str = "user u1 -
    assistant a1 u1
    user u2 a1
    assistant a2 u2
    user u3 a2
    pointer u3
    boundary b - logical=u3 segment=a2,u3
    user s b summary";

#[test]
fn preserved_entries_follow_the_summary() {
    let table = format!("{COMPACTED}\nattachment f s\nassistant a3 f");
    check(&table, "b s a2 u3 f a3");
    let listed = table.replace("segment=a2,u3", "listed=a2,u3");
    check(&listed, "b s a2 u3 f a3");
    let lost_head = table.replace("    assistant a2 u2\n", "");
    check(&lost_head, "b s u3 f a3");
}

#[test]
fn a_crash_right_after_the_summary_keeps_the_preserved_entries() {
    check(COMPACTED, "b s a2 u3 | filler(u3)");
    check(&COMPACTED.replace("pointer u3\n", ""), "b s a2 u3 | filler(u3)");
}

#[test]
fn preserved_entries_may_be_preserved_again() {
    let table = format!(
        "{COMPACTED}\nassistant a3 s\nuser u4 a3\nboundary b2 - logical=u4 segment=u3,u4\nuser s2 b2 summary\nassistant a4 s2"
    );
    check(&table, "b2 s2 u3 a3 u4 a4");
}

#[test]
fn the_results_of_a_parallel_batch_are_gathered() {
    let table = "user u1 -
        assistant k u1 msg=m thinking
        assistant c1 k msg=m call=t1
        assistant c2 c1 msg=m call=t2
        assistant c3 c2 msg=m call=t3
        user r3 c3 result=t3
        attachment h3 r3
        user r2 c2 result=t2
        user r1 c1 result=t1
        assistant a2 r1";
    check(table, "u1 k c1 c2 c3 r3 h3 r2 r1 a2");
}

#[test]
fn responses_sharing_one_message_id_stay_on_the_path() {
    let table = "user u1 -
        assistant c1 u1 msg=m call=t
        user r1 c1 result=t
        assistant c2 r1 msg=m call=t
        user r2 c2 result=t
        assistant a2 r2 msg=m";
    check(table, "u1 c1 r1 c2 r2 a2");
}

#[test]
fn a_call_has_one_result() {
    let table = "user u1 -\nassistant c1 u1 call=t1\nuser r1 c1 result=t1\nuser again r1 result=t1\nassistant a2 again";
    check(table, "u1 c1 r1 a2");
    check(
        "user u1 -\nassistant c1 u1 call=t1\nuser x c1 result=t1\nuser r1 c1 result=t1\nassistant a2 r1",
        "u1 c1 r1 a2",
    );
}

#[test]
fn open_calls_at_the_end_are_closed() {
    check(
        "user u1 -\nassistant c1 u1 msg=m call=t1\nassistant c2 c1 msg=m call=t2\nuser r1 c1 result=t1",
        "u1 c1 c2 r1 | close t2(c2) continue filler",
    );
    check(
        "user u1 -\nassistant c1 u1 call=t1\nassistant e c1 error",
        "u1 c1 e | close t1(c1) continue filler",
    );
}

#[test]
fn calls_left_open_further_up_are_left_out() {
    check(
        "user u1 -\nassistant c1 u1 msg=m call=t1\nassistant a1 u1 msg=m\nuser u2 a1\nassistant a2 u2",
        "u1 a1 u2 a2",
    );
    check("user u1 -\nassistant c1 u1 call=t1\nuser u2 c1\nassistant a2 u2", "u1 u2 a2");
    check("user u1 -\nuser r lost result=t9\nassistant a1 r", "u1 a1");
    check(
        "user u1 -\nassistant c1 u1 msg=m call=t1\nattachment f c1\nassistant c2 f msg=m call=t2",
        "u1 f c2 | close t2(c2) continue filler",
    );
}

#[test]
fn a_block_is_left_out_of_an_entry_that_holds_more() {
    let mixed = parse(&json!({
        "type": "assistant", "uuid": "a1", "parentUuid": "u1",
        "message": {"role": "assistant", "id": "m", "content": [
            {"type": "text", "text": "x", "n": 1.50},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}},
        ]},
    }));
    let entries = vec![
        Arc::new(entry("user u1 -")),
        Arc::new(mixed),
        Arc::new(entry("user u2 a1")),
        Arc::new(entry("assistant a2 u2")),
    ];
    let conversation = Conversation::build(entries);
    assert_eq!(show(&conversation), "u1 a1 u2 a2");
    assert!(conversation.path()[1].line().contains(r#""content":[{"type":"text","text":"x","n":1.5}]"#));
}

#[test]
fn the_chain_ends_with_an_answer() {
    check("user u1 -", "u1 | filler(u1)");
    check("user u1 -\nattachment t u1", "u1 t | continue(t) filler");
    check("user u1 -\nassistant c u1 call=t\nuser r c result=t", "u1 c r | continue(r) filler");
    check("user u1 -\nassistant a1 u1\nsystem d a1", "u1 a1 d");
    check("user u1 -\nsystem d u1", "u1 d | filler(u1)");
    check("user u1 -\nassistant e u1 error", "u1 e");
    check("user u1 -\nassistant k u1 thinking", "u1 k | filler(u1)");
    check("user u1 -\nassistant k u1 thinking\nattachment t k", "u1 k t | continue(t) filler");
}

/// The newest reference records its system prompt behind the answer.
#[test]
fn answer_with_attachments_behind_it_is_finished() {
    check("user u1 -\nassistant a1 u1\nattachment t a1", "u1 a1 t");
    check("user u1 -\nassistant a1 u1\nattachment t a1\nattachment s t\nsystem d s", "u1 a1 t s d");
    check("user u1 -\nassistant e u1 error\nattachment t e", "u1 e t");
    check("user u1 -\nattachment t u1\nattachment s t", "u1 t s | continue(s) filler");
    check(
        "user u1 -\nassistant c u1 call=t\nuser r c result=t\nattachment h r",
        "u1 c r h | continue(h) filler",
    );
    check("user u1 -\nassistant c u1 call=t\nattachment h c", "u1 c h | close t(c) continue filler");
}

#[test]
fn repairs_make_the_path_sound() {
    for table in [
        "user u1 -",
        "user u1 -\nattachment t u1",
        "user u1 -\nassistant k u1 thinking",
        "user u1 -\nassistant c1 u1 msg=m call=t1\nassistant c2 c1 msg=m call=t2",
        "user u1 -\nassistant c1 u1 msg=m call=t1\nassistant c2 c1 msg=m call=t2\nuser r1 c1 result=t1\nattachment h r1",
    ] {
        let mended = Conversation::build(repaired(session(table)));
        assert_eq!(mended.repairs(), [], "{table}\n{}", show(&mended));
    }
}

#[test]
fn closed_call_result_says_it_may_have_run() {
    let entries = repaired(session("user u1 -\nassistant c1 u1 call=t1"));
    let result = entries[2].blocks()[0].tool_result().unwrap();
    assert_eq!((result.tool_use_id.as_str(), result.is_error), ("t1", Some(true)));
    assert!(result.content.as_str().unwrap().contains("may or may not have run"));
}

#[test]
fn a_conversation_can_be_built_up_to_an_entry() {
    let conversation = Conversation::build_at(session(BRANCHES), &"a2".into()).unwrap();
    assert_eq!(show(&conversation), "u1 a1 u2 a2");
    assert_eq!(conversation.leaf().unwrap().as_str(), "a2");
    assert!(Conversation::build_at(session(BRANCHES), &"x".into()).is_none());
}
