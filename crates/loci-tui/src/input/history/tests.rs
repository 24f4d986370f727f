//! Recalling, searching, and what is on disk.

use std::sync::mpsc;
use std::time::Duration;

use loci_stdx::Env;
use loci_storage::config::InputHistory;
use loci_storage::layout::ConfigHome;

use super::*;
use crate::input::Editor;

fn draft(text: &str) -> Draft {
    match text.strip_prefix('!') {
        Some(command) => Draft::plain(InputMode::Shell, command),
        None => Draft::plain(InputMode::Prompt, text),
    }
}

fn prompt(text: &str) -> PastPrompt {
    past_prompt(draft(text), 1, Path::new("/project"), Some("session"))
}

fn show(draft: Option<Draft>) -> String {
    draft.map_or("nothing".to_owned(), |draft| {
        format!("{}{}", if draft.mode == InputMode::Shell { "!" } else { "" }, draft.display())
    })
}

#[test]
fn up_and_down_go_through_prompts_and_back_to_the_draft() {
    let mut history = PromptHistory::default();
    history.set_earlier(vec![prompt("older"), prompt("oldest")]);
    assert!(history.add(prompt("first")));
    assert!(history.add(prompt("!ls")));
    let mut input = draft("half a thou");
    let mut seen = Vec::new();
    for step in "uuuuudddddu".chars() {
        let found = if step == 'u' { history.previous(&input) } else { history.next(&input) };
        seen.push(show(found.clone()));
        input = found.unwrap_or(input);
    }
    let expected = [
        "!ls",
        "first",
        "older",
        "oldest",
        "nothing",
        "older",
        "first",
        "!ls",
        "half a thou",
        "nothing",
        "!ls",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn prompts_that_are_sent_twice_are_kept_once() {
    let mut history = PromptHistory::default();
    assert!(history.add(prompt("one")));
    assert!(!history.add(prompt("one")));
    assert!(!history.add(prompt("")));
    assert!(history.add(prompt("two")));
    assert!(history.add(prompt("one")));
    history.set_earlier(vec![prompt("two"), prompt("zero")]);
    let mut seen = Vec::new();
    let mut input = draft("");
    while let Some(found) = history.previous(&input) {
        seen.push(found.display());
        input = found;
    }
    assert_eq!(seen, ["one", "two", "one", "zero"]);
}

#[test]
fn what_was_changed_in_a_recalled_prompt_is_still_there() {
    let mut history = PromptHistory::default();
    history.add(prompt("one"));
    history.add(prompt("two"));
    history.previous(&draft("")).unwrap();
    assert_eq!(show(history.previous(&draft("two, changed"))), "one");
    assert_eq!(show(history.next(&draft("one"))), "two, changed");
    history.rest();
    assert_eq!(show(history.previous(&draft(""))), "two");
}

#[test]
fn shell_commands_are_completed_from_the_past() {
    let mut history = PromptHistory::default();
    for text in ["!git status", "!git push", "git stash is no command", "!ls"] {
        history.add(prompt(text));
    }
    assert_eq!(history.complete_shell_command("git").as_deref(), Some("git push"));
    assert_eq!(history.complete_shell_command("git s").as_deref(), Some("git status"));
    for typed in ["", "ls", "x"] {
        assert_eq!(history.complete_shell_command(typed), None, "{typed}");
    }
}

/// Types into a search, `^` for the next older match and `<` for Backspace, and says what is shown.
fn search(keys: &str, scope: SearchScope) -> String {
    let mut search = HistorySearch::new(draft("typed"), Path::new("/project"), Some("session"));
    let elsewhere = |text: &str| past_prompt(draft(text), 1, Path::new("/other"), Some("other"));
    let prompts = [
        prompt("Fix the Bug"),
        elsewhere("fix another bug"),
        prompt("Fix the Bug"),
        past_prompt(draft("fix more"), 1, Path::new("/project"), None),
        prompt("ÄRGER"),
    ];
    search.set_prompts(prompts.into());
    while search.scope() != scope {
        search.cycle_scope();
    }
    for key in keys.chars() {
        match key {
            '^' => search.older(),
            '<' => assert!(search.pop()),
            _ => search.push(key),
        }
    }
    search.current().map_or("nothing".to_owned(), |prompt| prompt.draft.display())
}

#[test]
fn search_finds_the_latest_and_goes_back() {
    let all = SearchScope::Everywhere;
    assert_eq!(search("fix", all), "Fix the Bug");
    assert_eq!(search("fix^", all), "fix another bug");
    assert_eq!(search("fix^^^", all), "fix more");
    assert_eq!(search("fix^^^^^", all), "fix more");
    assert_eq!(search("ärg", all), "ÄRGER");
    assert_eq!(search("zzz", all), "nothing");
    assert_eq!(search("fixz<", all), "Fix the Bug");
    assert_eq!(search("", all), "nothing");
    assert_eq!(search("fix^^", SearchScope::Project), "fix more");
    assert_eq!(search("fix^^", SearchScope::Session), "Fix the Bug");
}

#[test]
fn search_ends_with_the_match_or_with_what_was_there() {
    let begin = || {
        let mut search = HistorySearch::new(draft("typed"), Path::new("/project"), None);
        search.set_prompts([prompt("!make")].into());
        search.push('k');
        search
    };
    assert_eq!(show(Some(begin().accept())), "!make");
    assert_eq!(show(Some(begin().cancel())), "typed");
    let mut failed = begin();
    failed.push('x');
    assert_eq!(failed.row(60, &SearchStyles::default()).text(), "search all projects, no match: kx");
    assert_eq!(show(Some(failed.accept())), "typed");
    let row = begin().row(60, &SearchStyles::default());
    assert_eq!(
        row.spans.iter().map(|span| span.text.as_str()).collect::<Vec<_>>(),
        ["search all projects: k", "  ", "ma", "k", "e"]
    );
}

#[test]
fn search_keeps_its_match_while_more_is_read() {
    let mut search = HistorySearch::new(draft(""), Path::new("/project"), None);
    search.set_prompts([prompt("ab"), prompt("abc")].into());
    search.push('b');
    search.older();
    search.set_prompts([prompt("new b"), prompt("ab"), prompt("abc"), prompt("old b")].into());
    assert_eq!(search.current().unwrap().draft.display(), "abc");
}

/// A history file in a home of its own, and what its thread tells.
fn history_file(home: &Path) -> (HistoryFile, mpsc::Receiver<HistoryNews>) {
    let (sender, told) = mpsc::channel();
    let config = ConfigHome::from_env(&Env::for_test(home, home));
    let file =
        HistoryFile::start(InputHistory::new(&config), move |news| sender.send(news).unwrap()).unwrap();
    (file, told)
}

#[test]
fn prompts_come_back_from_disk_with_what_was_pasted() {
    let home = tempfile::tempdir().unwrap();
    let mut editor = Editor::default();
    editor.insert("see ");
    editor.paste(&"line\n".repeat(40));
    let sent = past_prompt(editor.take(), 1_767_323_045_000, Path::new("/project"), Some("s1"));
    let (file, _told) = history_file(home.path());
    file.append(&sent);
    file.append(&prompt("!ls"));
    drop(file);

    let written = std::fs::read_to_string(home.path().join(".claude/history.jsonl")).unwrap();
    let first = written.lines().next().unwrap();
    let pasted = "line\\n".repeat(40);
    assert_eq!(
        first,
        format!(
            r#"{{"display":"see [Pasted text #1 +40 lines]","pastedContents":{{"1":{{"id":1,"type":"text","content":"{pasted}"}}}},"timestamp":1767323045000,"project":"/project","sessionId":"s1"}}"#
        )
    );

    let (file, told) = history_file(home.path());
    file.load_project(PathBuf::from("/project"));
    let HistoryNews::Project(prompts) = told.recv_timeout(Duration::from_secs(60)).unwrap() else { panic!() };
    assert_eq!(show(Some(prompts[0].draft.clone())), "!ls");
    assert_eq!(prompts[1].draft.expanded(), sent.draft.expanded());
    file.load_everywhere();
    let HistoryNews::Everywhere { prompts, is_all } = told.recv_timeout(Duration::from_secs(60)).unwrap()
    else {
        panic!()
    };
    assert!(is_all && prompts.len() == 2);
}

#[test]
fn history_that_cannot_be_read_is_told() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join(".claude/history.jsonl")).unwrap();
    let (file, told) = history_file(home.path());
    file.load_everywhere();
    let HistoryNews::Failed(why) = told.recv_timeout(Duration::from_secs(60)).unwrap() else { panic!() };
    assert!(why.contains("history.jsonl"), "{why}");
}
