use loci_core::tool::{CallEffects, ToolFacts};
use serde_json::json;

use super::*;
use crate::{Host, ToolCall, ToolFuture, Workspace};

#[test]
fn facts_of_the_built_in_tools() {
    let tools = Toolbox::builtin();
    let with = |has: fn(&ToolFacts) -> bool| {
        let names = tools.descriptors().filter(|tool| has(&tool.facts)).map(|tool| tool.name.as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(with(|facts| facts.is_clearable), "Bash Edit Glob Grep Read Write WebFetch WebSearch");
    assert_eq!(with(|facts| facts.keeps_files), "Edit NotebookEdit Write");
    assert_eq!(with(|facts| facts.is_bare), "Bash Edit Read");
    assert_eq!(with(|facts| facts.needs_person), "AskUserQuestion EnterPlanMode ExitPlanMode");
    assert_eq!(
        with(|facts| facts.needs_conversation),
        "Agent ListAgents Recall SendMessage EnterWorktree ExitWorktree CronCreate CronDelete CronList ScheduleWakeup \
         WebFetch WebSearch"
    );
    assert_eq!(
        with(|facts| facts.is_deferrable),
        "ListAgents NotebookEdit SendMessage TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TodoWrite \
         EnterWorktree ExitWorktree CronCreate CronDelete CronList ScheduleWakeup WebFetch WebSearch"
    );
    assert_eq!(with(|facts| facts.read_argument.is_some()), "Read");
    assert_eq!(
        with(|facts| facts.main_argument.is_some()),
        "Agent Bash Edit Glob Grep Read Write WebFetch WebSearch Monitor"
    );
}

/// A fact that names an argument which the schema does not have would be silently without effect.
#[test]
fn arguments_named_by_facts_are_in_the_schema() {
    for tool in Toolbox::builtin().descriptors() {
        let main = tool.facts.main_argument;
        let others = main.iter().flat_map(|main| main.others).map(|(name, _)| *name);
        let named = main.iter().map(|main| main.name).chain(others).chain(tool.facts.read_argument);
        for name in named {
            assert!(tool.input_schema["properties"].get(name).is_some(), "{} has no {name}", tool.name);
        }
    }
}

#[test]
fn facts_of_a_tool_that_was_taken_out_stay_known() {
    let mut tools = Toolbox::builtin();
    tools.retain(|tool| tool.name == "Bash");
    assert!(tools.find("Read").is_none() && tools.facts().facts("Read").is_clearable);
}

#[test]
fn schema_defaults_are_filled_in_before_given_input() {
    let tools = Toolbox::builtin();
    let kept = |json: &Value| tools.with_defaults(Block::from_value(json).unwrap()).to_value().to_string();
    for (name, input, expected) in [
        ("Edit", json!({"file_path": "/a"}), r#"{"replace_all":false,"file_path":"/a"}"#),
        ("Edit", json!({"file_path": "/a", "replace_all": true}), r#"{"file_path":"/a","replace_all":true}"#),
        ("NotebookEdit", json!({}), r#"{"edit_mode":"replace"}"#),
        ("Read", json!({"file_path": "/a"}), r#"{"file_path":"/a"}"#),
        ("Unknown", json!({"a": 1}), r#"{"a":1}"#),
        ("Edit", json!("not an object"), r#""not an object""#),
    ] {
        let call = json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input, "caller": {"type": "direct"}});
        let expected = format!(
            r#"{{"type":"tool_use","id":"toolu_1","name":"{name}","input":{expected},"caller":{{"type":"direct"}}}}"#
        );
        assert_eq!(kept(&call), expected);
    }
    let text = json!({"type": "text", "text": "hi"});
    assert_eq!(kept(&text), text.to_string());
}

/// A tool that came later, such as one of a server.
struct Late(ToolDescriptor);

impl Late {
    fn shared(name: &str, description: &str, input_schema: Value) -> Arc<dyn Tool> {
        Arc::new(Self(ToolDescriptor {
            name: name.to_owned(),
            aliases: &[],
            description: description.to_owned(),
            input_schema,
            max_result_chars: None,
            facts: ToolFacts::default(),
        }))
    }

    fn plain(name: &str) -> Arc<dyn Tool> {
        Self::shared(name, "Does it.", json!({"type": "object"}))
    }
}

impl Tool for Late {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.0
    }

    fn effects(&self, _: &Value, _: &Workspace) -> CallEffects {
        CallEffects::unknown("a test")
    }

    fn is_concurrency_safe(&self, _: &Value) -> bool {
        false
    }

    fn run<'a>(&'a self, _: ToolCall, _: &'a dyn Host) -> ToolFuture<'a> {
        unreachable!("it is only looked up")
    }
}

fn names<'a>(descriptors: impl Iterator<Item = &'a ToolDescriptor>) -> String {
    descriptors.map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn appended_tools_come_behind_those_that_were_offered_first() {
    let mut tools = Toolbox::new([Late::plain("b"), Late::plain("a")]);
    tools.append(Late::plain("c")).unwrap();
    tools.append(Late::plain("Aa")).unwrap();
    assert_eq!(names(tools.descriptors()), "b a c Aa");
    assert!(tools.find("c").is_some() && tools.input_check("c").unwrap().check(&json!({})).is_ok());
    assert_eq!(tools.append(Late::plain("a")), Err(AppendError::Taken("a".to_owned())));
    let mut builtin = Toolbox::builtin();
    assert_eq!(builtin.append(Late::plain("KillShell")), Err(AppendError::Taken("KillShell".to_owned())));
}

#[test]
fn retired_tool_keeps_its_place_and_is_not_found_until_it_is_dropped() {
    let mut tools = Toolbox::new([Late::plain("a"), Late::plain("b")]);
    let earlier = tools.clone();
    assert!(tools.retire("a") && !tools.retire("a") && !tools.retire("other"));
    assert_eq!((names(tools.descriptors()), names(tools.available())), ("a b".into(), "b".into()));
    assert!(
        tools.find("a").is_none() && tools.find_shared("a").is_none() && tools.input_check("a").is_none()
    );
    assert!(tools.is_retired("a") && !tools.is_retired("b") && !tools.is_retired("other"));
    assert!(earlier.find("a").is_some(), "whoever runs a call has a toolbox of its own");
    assert!(tools.drop_retired() && !tools.drop_retired());
    assert_eq!(names(tools.descriptors()), "b");
    assert!(!tools.is_retired("a"));
}

#[test]
fn retired_tool_comes_back_only_as_it_was() {
    let mut tools = Toolbox::new([Late::plain("a"), Late::plain("b")]);
    tools.retire("a");
    let changed = || Late::shared("a", "Does something else.", json!({"type": "object"}));
    assert_eq!(tools.append(changed()), Err(AppendError::Changed("a".to_owned())));
    tools.append(Late::plain("a")).unwrap();
    assert_eq!((names(tools.descriptors()), names(tools.available())), ("a b".into(), "a b".into()));
    tools.retire("a");
    tools.drop_retired();
    tools.append(changed()).unwrap();
    assert_eq!(names(tools.descriptors()), "b a");
}

#[test]
fn bad_schema_of_a_late_tool_is_an_error_of_that_tool_alone() {
    let mut tools = Toolbox::new([Late::plain("a")]);
    for schema in
        [json!({"type": "object", "properties": {"x": {"type": 3}}}), json!({"type": "string"}), json!(1)]
    {
        let error = tools.append(Late::shared("bad", "Does it.", schema)).unwrap_err();
        assert!(matches!(&error, AppendError::Schema { name, .. } if name == "bad"), "{error}");
    }
    tools.append(Late::plain("good")).unwrap();
    assert_eq!(names(tools.descriptors()), "a good");
}
