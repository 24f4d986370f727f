//! Mode `auto`: what nobody's rule decides goes to the classifier, if there is one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_context::{EnvironmentContext, PromptParts};
use loci_core::entry::draft::Stamp;
use loci_core::hooks::HookConfig;
use loci_core::ids::{SessionId, ToolUseId};
use loci_core::message::{Block, Role};
use loci_core::permission::{Classified, Mode, RuleList, RuleOrigin, RuleSource, Rulebook};
use loci_core::session::{NewSession, SessionIdentity};
use loci_engine::{
    AgentsConfig, Answer, BackgroundConfig, Classifier, ClassifierCall, ClassifierFuture, ClientRequests,
    Command, CommandRegistry, CompactionConfig, EngineEvent, Grants, LoadedHistory, ModelConfig, Prompt,
    Session, SessionConfig, SessionSkills, TurnLimits,
};
use loci_llm::Client;
use loci_stdx::{Env, Store};
use loci_storage::layout::{ConfigHome, SessionTmp};
use loci_storage::sessions::SessionLog;
use loci_tools::Toolbox;
use serde_json::json;

/// Says the same of every call, and remembers what it was asked.
struct Always {
    said: Option<Classified>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Classifier for Always {
    fn classify(&self, call: ClassifierCall) -> ClassifierFuture {
        self.asked.lock().unwrap().push(call.input["command"].as_str().unwrap_or_default().to_owned());
        let said = self.said.clone();
        Box::pin(async move { said })
    }
}

/// What became of a turn.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    classified: Vec<String>,
    asked: usize,
    denied: usize,
    made: Vec<String>,
}

struct Case<'a> {
    mode: Mode,
    said: Option<Option<Classified>>,
    ask_rules: &'a [&'a str],
    commands: &'a [&'static str],
}

/// Lets the model run commands one after the other; every question is answered with yes.
async fn play(case: Case<'_>) -> Seen {
    let root = tempfile::tempdir().unwrap();
    let cwd = root.path().canonicalize().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let classifier = case.said.map(|said| {
        let classifier: Arc<dyn Classifier> = Arc::new(Always { said, asked: Arc::clone(&asked) });
        classifier
    });
    let mut book = Rulebook {
        mode: case.mode,
        dirs: vec![cwd.clone()],
        cwd: cwd.clone(),
        home: cwd.join("home"),
        ..Rulebook::default()
    };
    for rule in case.ask_rules {
        book.add(RuleList::Ask, rule, &RuleOrigin::new(RuleSource::Session, cwd.as_path()));
    }
    let commands: Vec<&'static str> = case.commands.to_vec();
    let client = Client::scripted(
        move |request| {
            let turn = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
            vec![match commands.get(turn) {
                Some(command) => {
                    let id = ToolUseId::new(format!("toolu_{turn}"));
                    Block::new_tool_use(&id, "Bash", &json!({"command": command}))
                }
                None => Block::new_text("Done."),
            }]
        },
        Duration::ZERO,
    );
    let (session, handle, mut events) =
        Session::new(SessionConfig { classifier, ..config(&cwd, book, client) });
    let engine = tokio::spawn(session.run());
    handle.send(Command::Prompt(Prompt::text("go")));
    let mut seen = Seen::default();
    while let Some(event) = events.recv().await {
        match event {
            EngineEvent::QuestionAsked(question) => {
                seen.asked += 1;
                let answer = Answer::Allow { input: None, updates: Vec::new() };
                handle.send(Command::Answer { question: question.id, answer });
            }
            EngineEvent::TurnEnded(report) => {
                seen.denied = report.denials.len();
                break;
            }
            _ => {}
        }
    }
    handle.send(Command::Close);
    engine.await.unwrap();
    seen.classified = asked.lock().unwrap().clone();
    let names =
        cwd.read_dir().unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    seen.made = names.filter(|name| name.len() == 1).collect();
    seen.made.sort();
    seen
}

pub(crate) fn config(cwd: &std::path::Path, rulebook: Rulebook, client: Client) -> SessionConfig {
    let id = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    SessionConfig {
        local_commands: None,
        output_style: "default".to_owned(),
        env: Env::for_test(cwd.join("home"), cwd),
        identity: SessionIdentity::new(NewSession {
            id: id.clone(),
            project_dir: cwd.join("sessions"),
            cwd: cwd.to_path_buf(),
            is_interactive: false,
            is_persistent: false,
        }),
        log: SessionLog::in_memory(),
        stamp: Stamp {
            session_id: id,
            cwd: cwd.display().to_string(),
            version: "1".to_owned(),
            git_branch: "HEAD".to_owned(),
            entrypoint: "test".to_owned(),
            slug: None,
            agent: None,
            agent_type: None,
        },
        history: LoadedHistory::default(),
        toolbox: Toolbox::builtin(),
        commands: Arc::new(Store::new(CommandRegistry::builtin())),
        rulebook,
        settings: serde_json::Value::Null,
        mirrors_transcript: false,
        keeps_prompt: false,
        settings_source: None,
        grants: Grants::default(),
        classifier: None,
        can_ask: true,
        client,
        model: ModelConfig::new("claude-sonnet-4-5"),
        limits: TurnLimits::default(),
        compaction: CompactionConfig::default(),
        hooks: HookConfig::default(),
        client_hooks: Vec::new(),
        client_requests: ClientRequests::none(),
        editor: None,
        mcp: None,
        mcp_tools: None,
        max_objections: 0,
        setup: None,
        start_source: "startup",
        turn_hooks: None,
        compaction_hooks: None,
        restore_sources: Vec::new(),
        skills: Arc::new(SessionSkills::none()),
        memory: None,
        plans: loci_engine::PlanConfig::default(),
        worktree: loci_storage::worktree::WorktreeOptions::default(),
        current_worktree: loci_engine::CurrentWorktree::default(),
        agents: AgentsConfig::default(),
        background: BackgroundConfig::default(),
        prompt: PromptParts {
            replacement: Some(String::new()),
            agent: None,
            style: None,
            preferences: None,
            appendix: None,
            memory_dir: None,
            surroundings: EnvironmentContext {
                cwd: cwd.display().to_string(),
                extra_dirs: Vec::new(),
                is_repository: false,
                platform: "test".to_owned(),
                model: "m".to_owned(),
            },
            git: None,
            excludes_dynamic: false,
            snapshot: Vec::new(),
            is_small: false,
        },
        instructions: loci_storage::config::Instructions::default(),
        lazy_instructions: None,
        read_instructions: None,
        file_history: None,
        child_env: vec![("PATH".to_owned(), path)],
        sandbox: None,
        sandbox_maker: None,
        tmp: SessionTmp::below(cwd.join("tmp")),
        home: ConfigHome::from_env(&Env::for_test(cwd.join("home"), cwd)),
        idle_notice: Duration::from_secs(60),
        memory_watch: None,
        started: Duration::ZERO,
        api_key_source: "none".to_owned(),
        plugins: Arc::default(),
    }
}

fn seen(classified: &[&str], asked: usize, denied: usize, made: &[&str]) -> Seen {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Seen { classified: owned(classified), asked, denied, made: owned(made) }
}

fn block() -> Option<Option<Classified>> {
    Some(Some(Classified::Block("not today".to_owned())))
}

fn pass() -> Option<Option<Classified>> {
    Some(Some(Classified::Pass(String::new())))
}

/// P-14.
#[tokio::test]
async fn without_a_classifier_auto_asks() {
    let case = Case { mode: Mode::Auto, said: None, ask_rules: &[], commands: &["ls", "touch a"] };
    assert_eq!(play(case).await, seen(&[], 1, 0, &["a"]));
}

#[tokio::test]
async fn call_runs_when_the_classifier_passes_it_and_not_when_it_blocks() {
    let commands = &["ls", "touch a"];
    let case = Case { mode: Mode::Auto, said: pass(), ask_rules: &[], commands };
    assert_eq!(play(case).await, seen(&["touch a"], 0, 0, &["a"]));
    let case = Case { mode: Mode::Auto, said: block(), ask_rules: &[], commands };
    assert_eq!(play(case).await, seen(&["touch a"], 0, 1, &[]));
    let case = Case { mode: Mode::Auto, said: Some(None), ask_rules: &[], commands };
    assert_eq!(play(case).await, seen(&["touch a"], 1, 0, &["a"]), "no answer is no yes");
}

/// P-14.
#[tokio::test]
async fn peoples_rules_are_answered_by_people() {
    let case = Case { mode: Mode::Auto, said: pass(), ask_rules: &["Bash(touch *)"], commands: &["touch a"] };
    assert_eq!(play(case).await, seen(&[], 1, 0, &["a"]));
    let case = Case { mode: Mode::Default, said: pass(), ask_rules: &[], commands: &["touch a"] };
    assert_eq!(play(case).await, seen(&[], 1, 0, &["a"]), "other modes do not know a classifier");
}

#[tokio::test]
async fn a_classifier_that_only_blocks_is_left_alone_until_a_person_says_yes() {
    let commands = &["touch a", "touch b", "touch c", "touch d", "touch e"];
    let case = Case { mode: Mode::Auto, said: block(), ask_rules: &[], commands };
    let expected = seen(&["touch a", "touch b", "touch c", "touch e"], 1, 4, &["d"]);
    assert_eq!(play(case).await, expected);
}
