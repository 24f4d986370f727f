//! Sessions of Codex: listed, searched and imported, never written.

mod compressed;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use loci_core::conversation::Conversation;
use loci_core::entry::Entry;
use loci_core::message::BlockKind;
use loci_storage::foreign::{
    ImportError, ImportId, ImportOptions, ImportedSession, RolloutError, find_rollout, import_rollout,
    load_rollout,
};
use loci_storage::layout::Dialect;
use loci_storage::project::Project;
use loci_storage::search::{
    IndexUse, NoObserver, SearchFilter, SearchQuery, SearchResults, search_sessions, update_index,
};
use loci_storage::sessions::{list_rollouts, load_transcript};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::World;

/// The threads of the fixtures.
const TOOLS: &str = "01a1e2da-a003-7b72-b3ac-04414afcfe97";
const COMPACTED: &str = "01a1e2da-dfac-7992-b3a5-8f7b6a9bea9e";
const INTERRUPTED: &str = "01a1e2db-3cac-7a12-a400-5a903712e9cb";

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rollouts").join(name);
    fs::read_to_string(path).unwrap()
}

/// Puts a rollout where Codex would, about the project of the world.
fn put(world: &World, id: &str, text: &str) -> PathBuf {
    let text = text.replace("/home/dev/project", &world.cwd().display().to_string());
    world.write(&format!(".codex/sessions/2026/11/16/rollout-2026-11-16T05-00-00-{id}.jsonl"), text)
}

fn import(world: &World, id: &str, under: ImportId) -> Result<ImportedSession, ImportError> {
    let place = find_rollout(&world.home, world.cwd(), id)?.unwrap();
    import_rollout(&world.home, &world.env, &place, ImportOptions { version: "2.1.197", under })
}

/// What a session says, a line an entry.
fn render_entries(entries: &[std::sync::Arc<Entry>]) -> Vec<String> {
    let block = |block: &loci_core::message::Block| match block.kind() {
        BlockKind::Text => block.text().unwrap(),
        BlockKind::ToolUse => {
            format!("{} {}", block.tool_use().unwrap().name, block.tool_use().unwrap().input)
        }
        BlockKind::ToolResult => {
            let result = block.tool_result().unwrap();
            let text =
                result.content.as_str().unwrap_or_default().lines().last().unwrap_or_default().to_owned();
            format!("{}{text}", if result.is_error == Some(true) { "failed: " } else { "result: " })
        }
        other => format!("{other:?}"),
    };
    let entry = |entry: &std::sync::Arc<Entry>| {
        let blocks: Vec<String> = entry.blocks().iter().map(block).collect();
        format!("{}: {}", entry.head().type_name, blocks.join(" + "))
    };
    entries.iter().filter(|entry| entry.head().kind.is_chain()).map(entry).collect()
}

#[test]
fn rollouts_are_listed_with_the_project_they_are_about() {
    let world = World::new();
    put(&world, TOOLS, &fixture("tools.jsonl"));
    put(&world, INTERRUPTED, &fixture("interrupted.jsonl").replace("/home/dev/project", "/elsewhere"));
    world.write(".codex/session_index.jsonl", format!("{}\n", json!({"id": TOOLS, "thread_name": "Ports"})));
    let here = list_rollouts(&world.home, Some(&Project::directory(world.cwd()))).unwrap();
    let [session] = here.as_slice() else { panic!("{here:?}") };
    assert_eq!((session.place.id().as_str(), session.place.dialect()), (TOOLS, Dialect::Codex));
    let facts = &session.facts;
    assert_eq!(facts.first_prompt.as_deref(), Some("What does the README say?"));
    assert_eq!((facts.labels.title(), facts.messages.number()), (Some("Ports"), 11));
    assert_eq!(facts.last_activity.unwrap().to_string(), "2026-11-16T05:35:49.864Z");
    assert_eq!((facts.cwd.as_deref(), facts.cost_usd), (world.cwd().to_str(), None));
    assert_eq!(list_rollouts(&world.home, None).unwrap().len(), 2);
}

#[test]
fn last_rollout_file_of_a_thread_counts() {
    let world = World::new();
    let old = put(&world, TOOLS, &fixture("tools.jsonl"));
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    fs::File::options().append(true).open(&old).unwrap().set_modified(time).unwrap();
    let new = put(&world, &format!("{TOOLS}_{COMPACTED}"), &fixture("tools.jsonl"));
    let listed = list_rollouts(&world.home, None).unwrap();
    assert_eq!(listed.iter().map(|it| it.place.file()).collect::<Vec<_>>(), [new.as_path()]);
}

fn search(world: &World, text: &str, how: IndexUse) -> SearchResults {
    let filter = SearchFilter::default();
    let wish = SearchQuery { text: text.to_owned(), is_regex: false, filter, skip: 0, limit: 100 };
    search_sessions(&world.home, &wish, how, "test", &NoObserver).unwrap()
}

/// Invariant 10 of `docs/design/index.md`.
#[test]
fn rollouts_are_searched_like_sessions() {
    let world = World::new();
    put(&world, TOOLS, &fixture("tools.jsonl"));
    let voices = |found: &SearchResults| -> Vec<(&'static str, Option<String>)> {
        let mut voices: Vec<_> =
            found.hits.iter().map(|hit| (hit.passage.voice.name(), hit.passage.tool.clone())).collect();
        voices.sort();
        voices
    };
    let bash = || Some("Bash".to_owned());
    let expected = [("assistant", None), ("call", bash()), ("result", bash())];
    let scanned = search(&world, "staging port 48213", IndexUse::None);
    assert_eq!(voices(&scanned), expected);
    assert!(update_index(&world.home, "first", &NoObserver).unwrap());
    assert_eq!(search(&world, "staging port 48213", IndexUse::AsItIs), scanned);
    for words in ["AGENTS.md", "environment_context", "skills_instructions", "terse"] {
        assert_eq!(
            search(&world, words, IndexUse::AsItIs).n_found,
            0,
            "{words} is nothing that anybody said"
        );
    }
    import(&world, TOOLS, ImportId::Same).unwrap();
    let imported = search(&world, "staging port 48213", IndexUse::AsItIs);
    assert_eq!(voices(&imported), expected, "once, in the import");
    assert!(imported.hits.iter().all(|hit| hit.session.dialect() == Dialect::Own));
}

#[test]
fn an_import_is_a_session_like_any_other() {
    let world = World::new();
    let file = put(&world, TOOLS, &fixture("tools.jsonl"));
    let before = (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().modified().unwrap());
    let imported = import(&world, TOOLS, ImportId::Same).unwrap();
    assert_eq!((imported.place.id().as_str(), imported.cwd.as_path()), (TOOLS, world.cwd()));
    assert_eq!(imported.place.file(), world.home.session(world.cwd(), imported.place.id()).file());
    assert_eq!((fs::read(&file).unwrap(), fs::metadata(&file).unwrap().modified().unwrap()), before);
    let loaded = load_transcript(imported.place.file()).unwrap();
    let failing = "user: failed: ls: cannot access '/nowhere-at-all': No such file or directory";
    assert_eq!(
        render_entries(&loaded.entries),
        [
            "user: What does the README say?",
            "assistant: I will look at the file first.",
            "assistant: Bash {\"command\":\"cat README.md\"}",
            "user: result: # Hello",
            "assistant: Bash {\"command\":\"cd / && ls /nowhere-at-all\"}",
            "assistant: Bash {\"command\":\"echo staging port 48213\"}",
            failing,
            "user: result: staging port 48213",
            "assistant: The README says Hello, and the staging port is 48213.",
            "user: Thank you",
            "assistant: You are welcome.",
        ]
    );
    let conversation = Conversation::build(loaded.entries.clone());
    assert_eq!((conversation.path().len(), conversation.repairs().len()), (11, 0));
    assert_eq!(conversation.last_model(), None, "who resumes chooses the model");
    for entry in loaded.entries.iter().filter(|entry| entry.head().kind.is_chain()) {
        let origin: Value = entry.fields().read("importedFrom").unwrap();
        assert_eq!((&origin["agent"], &origin["session"]), (&json!("codex"), &json!(TOOLS)));
    }
}

/// Invariant 11 of `docs/design/index.md`.
#[test]
fn importing_twice_is_noticed_and_nothing_is_listed_twice() {
    let world = World::new();
    put(&world, TOOLS, &fixture("tools.jsonl"));
    let first = import(&world, TOOLS, ImportId::Same).unwrap();
    let bytes = fs::read(first.place.file()).unwrap();
    let error = import(&world, TOOLS, ImportId::Same).unwrap_err();
    assert!(matches!(&error, ImportError::Again { place } if *place == first.place), "{error}");
    assert_eq!(fs::read(first.place.file()).unwrap(), bytes);
    assert_eq!(list_rollouts(&world.home, None).unwrap(), []);
    let second = import(&world, TOOLS, ImportId::New).unwrap();
    assert_ne!(second.place.id(), first.place.id());
    fs::remove_file(first.place.file()).unwrap();
    assert_eq!(list_rollouts(&world.home, None).unwrap().len(), 1, "what is gone can be imported again");
}

/// Invariant 11 of `docs/design/index.md`.
#[test]
fn of_many_imports_at_once_one_is_made() {
    let world = World::new();
    put(&world, TOOLS, &fixture("tools.jsonl"));
    let n_made = std::thread::scope(|scope| {
        let importing = || import(&world, TOOLS, ImportId::Same).is_ok();
        let imports: Vec<_> = (0..4).map(|_| scope.spawn(importing)).collect();
        imports.into_iter().map(|import| import.join().unwrap()).filter(|made| *made).count()
    });
    assert_eq!(n_made, 1);
    let file = world.home.session(world.cwd(), &loci_core::ids::SessionId::parse(TOOLS).unwrap());
    assert_eq!(
        load_transcript(file.file()).unwrap().entries.len(),
        13,
        "one mode, eleven messages, one pointer"
    );
}

#[test]
fn a_summary_stands_for_what_it_covers() {
    let world = World::new();
    put(&world, COMPACTED, &fixture("compacted.jsonl"));
    let imported = import(&world, COMPACTED, ImportId::Same).unwrap();
    let conversation = Conversation::build(load_transcript(imported.place.file()).unwrap().entries);
    let summary = "The conversation was compacted in Codex. The summary:\n\nelided:\nTwo.\n\n\
                   What the user said, word for word:\n\nRemember the word heron.\n\nAnd the word gull.";
    assert_eq!(
        render_entries(conversation.path()),
        [
            "system: ".to_owned(),
            format!("user: {summary}"),
            "user: Which words?".into(),
            "assistant: One.".into()
        ]
    );
}

#[test]
fn imported_interrupt_stays_an_interrupt() {
    let world = World::new();
    put(&world, INTERRUPTED, &fixture("interrupted.jsonl"));
    let place = find_rollout(&world.home, world.cwd(), INTERRUPTED).unwrap().unwrap();
    let (entries, n_skipped) = load_rollout(&world.home, &place).unwrap();
    assert_eq!(
        render_entries(&entries),
        [
            "user: Sleep a little",
            "assistant: Bash {\"command\":\"sleep 20\"}",
            "user: result: aborted by user",
            "user: [Request interrupted by user]",
            "user: Go on",
            "assistant: Slept.",
        ]
    );
    assert_eq!(n_skipped, 0);
}

fn item(payload: Value) -> String {
    format!(
        "{}\n",
        json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": "response_item", "payload": payload})
    )
}

fn message_line(role: &str, text: &str) -> String {
    let kind = if role == "user" { "input_text" } else { "output_text" };
    item(json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
}

fn meta(more: Value) -> String {
    let mut payload =
        json!({"id": TOOLS, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/home/dev/project"});
    for (key, value) in more.as_object().unwrap() {
        payload[key] = value.clone();
    }
    format!(
        "{}\n",
        json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": "session_meta", "payload": payload})
    )
}

fn imported(world: &World, text: &str) -> Vec<String> {
    put(world, TOOLS, text);
    render_entries(
        &load_transcript(import(world, TOOLS, ImportId::Same).unwrap().place.file()).unwrap().entries,
    )
}

#[test]
fn rolled_back_turns_are_not_imported() {
    let rolled = |n: u32| {
        format!(
            "{}\n",
            json!({"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": n}})
        )
    };
    let turn = |n: u32| {
        [message_line("user", &format!("p{n}")), message_line("assistant", &format!("a{n}"))].concat()
    };
    for (lines, expected) in [
        ([turn(1), turn(2), rolled(1)].concat(), vec!["user: p1", "assistant: a1"]),
        (
            [turn(1), turn(2), rolled(1), turn(3)].concat(),
            vec!["user: p1", "assistant: a1", "user: p3", "assistant: a3"],
        ),
        ([turn(1), turn(2), rolled(2), turn(3)].concat(), vec!["user: p3", "assistant: a3"]),
        ([turn(1), turn(2), rolled(9), turn(3)].concat(), vec!["user: p3", "assistant: a3"]),
        ([turn(1), rolled(0)].concat(), vec!["user: p1", "assistant: a1"]),
    ] {
        assert_eq!(imported(&World::new(), &[meta(json!({})), lines.clone()].concat()), expected, "{lines}");
    }
}

/// Invariant 12 of `docs/design/index.md`.
#[test]
fn imported_calls_and_results_are_paired() {
    let call = |id: &str| {
        item(
            json!({"type": "function_call", "name": "exec_command", "arguments": "{\"cmd\":\"x\"}", "call_id": id}),
        )
    };
    let output = |id: &str| item(json!({"type": "function_call_output", "call_id": id, "output": "y"}));
    let text = [
        meta(json!({})),
        message_line("assistant", "I was here first."),
        call("a b"),
        output("nobody"),
        output("a b"),
        call("a_b"),
        message_line("user", "Stop"),
        call("a b"),
    ];
    let world = World::new();
    let told = imported(&world, &text.concat());
    let lost = "user: failed: No result was recorded in Codex; the command may have run.";
    let bash = "assistant: Bash {\"command\":\"x\"}";
    let begun = "user: This conversation was begun in Codex.";
    assert_eq!(
        told,
        [
            begun,
            "assistant: I was here first.",
            bash,
            "user: result: y",
            bash,
            lost,
            "user: Stop",
            bash,
            lost
        ]
    );
    let place = find_rollout(&world.home, world.cwd(), TOOLS).unwrap().unwrap();
    let again = ImportOptions { version: "2.1.197", under: ImportId::New };
    assert_eq!(import_rollout(&world.home, &world.env, &place, again).unwrap().n_left_out, 1);
}

/// A result that was lost must not cost what was said after it.
#[test]
fn missing_result_of_a_rollout_costs_only_itself() {
    let text = fixture("tools.jsonl");
    let kept: Vec<&str> =
        text.lines().enumerate().filter(|(idx, _)| *idx != 14).map(|(_, line)| line).collect();
    let world = World::new();
    put(&world, TOOLS, &kept.join("\n"));
    let place = import(&world, TOOLS, ImportId::Same).unwrap().place;
    let told = render_entries(Conversation::build(load_transcript(place.file()).unwrap().entries).path());
    assert_eq!(told.len(), 11);
    assert_eq!(told.last().unwrap(), "assistant: You are welcome.");
}

#[test]
fn a_rollout_goes_on_from_another() {
    let world = World::new();
    let base =
        [meta(json!({"id": COMPACTED})), message_line("user", "one"), message_line("assistant", "two")]
            .concat();
    let end = base.len() - message_line("assistant", "two").len();
    // The directory has the same length everywhere in this test, so offsets hold.
    let file = world
        .write(&format!(".codex/sessions/2026/11/16/rollout-2026-11-16T04-00-00-{COMPACTED}.jsonl"), &base);
    let going_on = meta(
        json!({"history_base": {"thread_id": COMPACTED, "end_ordinal_exclusive": 2, "end_byte_offset": end}}),
    );
    assert_eq!(
        imported(&world, &[going_on, message_line("assistant", "three")].concat()),
        ["user: one", "assistant: three"]
    );
    fs::remove_file(file).unwrap();
    let error = import(&world, TOOLS, ImportId::New).unwrap_err();
    assert!(matches!(error, ImportError::Rollout(RolloutError::NoBase { .. })), "{error}");
}

#[test]
fn import_error_names_the_reason() {
    let world = World::new();
    let file = |name: &str, text: &str| world.write(&format!("elsewhere/{name}"), text).display().to_string();
    let empty = file("rollout-a.jsonl", &meta(json!({})));
    let nothing = find_rollout(&world.home, world.cwd(), &empty).unwrap().unwrap();
    let wish = ImportOptions { version: "2.1.197", under: ImportId::Same };
    let error = import_rollout(&world.home, &world.env, &nothing, wish).unwrap_err();
    assert!(matches!(error, ImportError::Nothing { .. }), "{error}");
    for text in ["", "nonsense", "null\n", "{\"type\":\"user\"}\n", &message_line("user", "no meta")] {
        let path = file("x.jsonl", text);
        assert_eq!(find_rollout(&world.home, world.cwd(), &path).unwrap(), None, "{text}");
    }
    let anonymous = file("y.jsonl", &meta(json!({"id": "no uuid"})));
    let error = find_rollout(&world.home, world.cwd(), &anonymous).unwrap_err();
    assert!(matches!(error, RolloutError::NotARollout { .. }), "{error}");
    let torn = find_rollout(&world.home, world.cwd(), &file("x.jsonl.zst", "no frame")).unwrap_err();
    assert!(matches!(torn, RolloutError::Read { .. }), "{torn}");
    let missing = find_rollout(&world.home, world.cwd(), "missing.jsonl").unwrap_err();
    assert!(matches!(missing, RolloutError::Read { .. }), "{missing}");
    assert_eq!(find_rollout(&world.home, world.cwd(), COMPACTED).unwrap(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Cut anywhere and with lines lost, a rollout becomes a conversation in which every call has one result.
    /// Invariant 12 of `docs/design/index.md`.
    #[test]
    fn any_prefix_of_a_rollout_is_a_valid_conversation(cut in 700_usize..22_000, lost in proptest::collection::vec(1_usize..39, 0..6)) {
        let text = fixture("tools.jsonl");
        let cut = text.floor_char_boundary(cut.min(text.len()));
        let kept: Vec<&str> =
            text[..cut].lines().enumerate().filter(|(idx, _)| !lost.contains(idx)).map(|(_, line)| line).collect();
        let world = World::new();
        put(&world, TOOLS, &kept.join("\n"));
        let imported = match import(&world, TOOLS, ImportId::Same) {
            Err(ImportError::Nothing { .. }) => return Ok(()),
            imported => imported.unwrap(),
        };
        let conversation = Conversation::build(load_transcript(imported.place.file()).unwrap().entries);
        let mut open: HashMap<String, usize> = HashMap::new();
        for block in conversation.path().iter().flat_map(|entry| entry.blocks()) {
            if let Some(call) = block.tool_use() {
                open.insert(call.id.to_string(), 0);
            }
            if let Some(result) = block.tool_result() {
                *open.get_mut(result.tool_use_id.as_str()).unwrap() += 1;
            }
        }
        prop_assert!(open.values().all(|n_results| *n_results == 1), "{open:?}");
        prop_assert_eq!(conversation.path().len(), imported.n_entries);
    }
}
