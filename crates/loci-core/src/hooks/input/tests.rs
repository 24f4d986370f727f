//! The payloads against those recorded from the reference.

use super::*;

/// Every recorded payload, by the name of its file.
const RECORDED: &[(&str, &str)] = &[
    ("ConfigChange", include_str!("../../../../../fixtures/hooks/ConfigChange.json")),
    ("CwdChanged", include_str!("../../../../../fixtures/hooks/CwdChanged.json")),
    ("Elicitation", include_str!("../../../../../fixtures/hooks/Elicitation.json")),
    ("ElicitationResult", include_str!("../../../../../fixtures/hooks/ElicitationResult.json")),
    ("FileChanged", include_str!("../../../../../fixtures/hooks/FileChanged.json")),
    ("InstructionsLoaded", include_str!("../../../../../fixtures/hooks/InstructionsLoaded.json")),
    ("MessageDisplay", include_str!("../../../../../fixtures/hooks/MessageDisplay.json")),
    ("Notification", include_str!("../../../../../fixtures/hooks/Notification.json")),
    ("PermissionDenied", include_str!("../../../../../fixtures/hooks/PermissionDenied.json")),
    ("PermissionRequest", include_str!("../../../../../fixtures/hooks/PermissionRequest.json")),
    ("PostCompact", include_str!("../../../../../fixtures/hooks/PostCompact.json")),
    ("PostToolBatch", include_str!("../../../../../fixtures/hooks/PostToolBatch.json")),
    ("PostToolUse.Bash", include_str!("../../../../../fixtures/hooks/PostToolUse.Bash.json")),
    ("PostToolUse.Edit", include_str!("../../../../../fixtures/hooks/PostToolUse.Edit.json")),
    ("PostToolUse.MCP", include_str!("../../../../../fixtures/hooks/PostToolUse.MCP.json")),
    ("PostToolUse.Read", include_str!("../../../../../fixtures/hooks/PostToolUse.Read.json")),
    ("PostToolUse.Write", include_str!("../../../../../fixtures/hooks/PostToolUse.Write.json")),
    ("PostToolUseFailure", include_str!("../../../../../fixtures/hooks/PostToolUseFailure.json")),
    ("PreCompact", include_str!("../../../../../fixtures/hooks/PreCompact.json")),
    ("PreToolUse", include_str!("../../../../../fixtures/hooks/PreToolUse.json")),
    ("SessionEnd", include_str!("../../../../../fixtures/hooks/SessionEnd.json")),
    ("SessionStart", include_str!("../../../../../fixtures/hooks/SessionStart.json")),
    ("SessionStart.compact", include_str!("../../../../../fixtures/hooks/SessionStart.compact.json")),
    ("Setup", include_str!("../../../../../fixtures/hooks/Setup.json")),
    ("Stop", include_str!("../../../../../fixtures/hooks/Stop.json")),
    ("StopFailure", include_str!("../../../../../fixtures/hooks/StopFailure.json")),
    ("SubagentStart", include_str!("../../../../../fixtures/hooks/SubagentStart.json")),
    ("SubagentStop", include_str!("../../../../../fixtures/hooks/SubagentStop.json")),
    ("TaskCompleted", include_str!("../../../../../fixtures/hooks/TaskCompleted.json")),
    ("TaskCreated", include_str!("../../../../../fixtures/hooks/TaskCreated.json")),
    ("UserPromptExpansion", include_str!("../../../../../fixtures/hooks/UserPromptExpansion.json")),
    ("UserPromptSubmit", include_str!("../../../../../fixtures/hooks/UserPromptSubmit.json")),
    ("WorktreeCreate", include_str!("../../../../../fixtures/hooks/WorktreeCreate.json")),
    ("WorktreeRemove", include_str!("../../../../../fixtures/hooks/WorktreeRemove.json")),
];

#[test]
fn recorded_payloads_are_written_back_key_for_key() {
    for (name, text) in RECORDED {
        let recorded: Value = serde_json::from_str(text).unwrap();
        let input: HookInput = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        // Compared as text: the order of keys counts.
        assert_eq!(input.to_json(), recorded.to_string(), "{name}");
        assert_eq!(Some(input.event.event()), HookEvent::parse(name.split('.').next().unwrap()), "{name}");
    }
}

#[test]
fn every_event_has_an_example_that_names_it_and_can_be_read_back() {
    let tool = || ToolFields { tool_name: "Bash".to_owned(), tool_input: json!({"command": "true"}) };
    for event in HookEvent::ALL {
        let input = example(event, CommonInput::default(), tool(), None);
        assert_eq!(input.event.event(), event);
        assert_eq!(input.to_value()["hook_event_name"], event.name());
        assert_eq!(serde_json::from_str::<HookInput>(&input.to_json()).unwrap(), input);
        let has_subject = input.matcher_subject().is_some();
        let is_agents = matches!(event, HookEvent::SubagentStart | HookEvent::SubagentStop);
        assert_eq!(has_subject, event.facts().has_matcher && !is_agents, "{event:?}");
    }
}

#[test]
fn hook_name_has_what_the_matcher_is_compared_with() {
    for (name, expected) in [
        ("PreToolUse", "PreToolUse:Read"),
        ("SessionStart", "SessionStart:startup"),
        ("UserPromptSubmit", "UserPromptSubmit"),
        ("SubagentStop", "SubagentStop:general-purpose"),
        ("FileChanged", "FileChanged:notes.md"),
        ("Stop", "Stop"),
    ] {
        let text = RECORDED.iter().find(|(file, _)| *file == name).unwrap().1;
        let input: HookInput = serde_json::from_str(text).unwrap();
        assert_eq!(input.hook_name(), expected);
    }
}
