//! Who wins when handlers disagree.

use serde_json::json;

use super::*;

fn deny(why: &str) -> HookAnswer {
    permission(HookPermission::Deny, why)
}

fn permission(word: HookPermission, why: &str) -> HookAnswer {
    HookAnswer { permission: Some((word, why.to_owned())), ..HookAnswer::default() }
}

fn merged(event: HookEvent, answers: &[HookAnswer]) -> HookDecision {
    HookDecision::merge(event, answers.iter().cloned().map(|answer| ("h", answer)))
}

#[test]
fn strictest_permission_wins_in_every_order() {
    use HookPermission::{Allow, Ask, Defer, Deny};
    let words = [Allow, Ask, Defer, Deny];
    for first in words {
        for second in words {
            for third in words {
                let answers = [first, second, third].map(|word| permission(word, &format!("{word:?}")));
                let strictest = [first, second, third].into_iter().max().unwrap();
                let decided = merged(HookEvent::PreToolUse, &answers).permission;
                assert_eq!(decided, Some((strictest, format!("{strictest:?}"))));
            }
        }
    }
    let first = merged(HookEvent::PreToolUse, &[deny("one"), deny("two")]);
    assert_eq!(first.permission.unwrap().1, "one");
}

#[test]
fn changed_input_counts_unless_the_call_is_denied() {
    let changed =
        |value| HookAnswer { input: Some(json!({"a": value})), ..permission(HookPermission::Allow, "") };
    assert_eq!(merged(HookEvent::PreToolUse, &[changed(1), changed(2)]).input, Some(json!({"a": 2})));
    assert_eq!(merged(HookEvent::PreToolUse, &[changed(1), deny("no")]).input, None);
}

#[test]
fn block_beats_every_allow_and_its_reasons_are_told_together() {
    let block = |why: &str| HookAnswer { block: Some(why.to_owned()), ..HookAnswer::default() };
    let decided = merged(HookEvent::Stop, &[block("a"), HookAnswer::default(), block("b")]);
    assert_eq!(decided.block.as_deref(), Some("a\nb"));
    let told = merged(HookEvent::SessionStart, &[block("a")]);
    assert_eq!((told.block, told.messages), (None, vec!["SessionStart hook [h]: a".to_owned()]));
    let ignored = merged(HookEvent::Notification, &[block("a")]);
    assert_eq!(ignored, HookDecision::default());
}

#[test]
fn stop_is_kept_beside_what_others_say() {
    let stop = HookAnswer { stop: Some("enough".to_owned()), ..HookAnswer::default() };
    let decided = merged(HookEvent::PreToolUse, &[permission(HookPermission::Allow, ""), stop.clone()]);
    assert_eq!(decided.stop.as_deref(), Some("enough"));
    for event in [HookEvent::SessionEnd, HookEvent::PreCompact, HookEvent::Notification] {
        assert_eq!(merged(event, std::slice::from_ref(&stop)).stop, None, "{event:?}");
    }
}

#[test]
fn failed_handler_costs_only_itself() {
    let failed = HookAnswer { error: Some("exit code 1".to_owned()), ..deny("lost") };
    let context =
        HookAnswer { context: Some("c".to_owned()), message: Some("m".to_owned()), ..HookAnswer::default() };
    let decided = merged(HookEvent::PreToolUse, &[failed, context]);
    assert_eq!(decided.permission, None);
    assert_eq!(decided.context, ["c"]);
    assert_eq!(decided.messages, ["PreToolUse hook [h]: exit code 1", "m"]);
}

#[test]
fn denial_in_the_place_of_a_person_beats_an_allowance() {
    let allow = || PermissionReply::Allow { input: None, updates: Vec::new() };
    let deny = || PermissionReply::Deny { message: "no".to_owned(), stops: false };
    for replies in [[allow(), deny()], [deny(), allow()]] {
        let answers = replies.map(|reply| HookAnswer { reply: Some(reply), ..HookAnswer::default() });
        assert_eq!(merged(HookEvent::PermissionRequest, &answers).reply, Some(deny()));
    }
}
