//! Tokens, commands, files and the menu, as data.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use loci_app::interface::file_suggestions::FileIndex;

use super::*;
use crate::input::{Draft, EditCommand};
use crate::text::Row;

/// Makes an input of a text with `|` for the caret, `!` before it for the shell.
fn editor(marked: &str) -> Editor {
    let (mode, marked) = match marked.strip_prefix('!') {
        Some(command) => (InputMode::Shell, command),
        None => (InputMode::Prompt, marked),
    };
    let mut editor = Editor::default();
    editor.set_draft(&Draft::plain(mode, &marked.replacen('|', "", 1)));
    let n_behind = marked[marked.find('|').expect("a caret") + 1..].chars().count();
    (0..n_behind)
        .for_each(|_| assert_ne!(editor.apply(EditCommand::Left), crate::input::EditOutcome::Nothing));
    editor
}

/// Completes what the caret is in by a choice, and shows the input.
fn complete(marked: &str, chosen: &str) -> String {
    let mut editor = editor(marked);
    let Some(token) = Token::at_caret(&editor, |name| name == "skill") else { return "no token".to_owned() };
    editor.replace_in_line(token.range.clone(), &token.replacement(chosen));
    format!("{:?} {:?}: {}|{}", token.kind, token.query, editor.before_caret(), editor.behind_caret())
}

#[test]
fn token_at_the_caret_is_found_and_replaced() {
    let table = [
        ("/|", "clear", r#"Command "": /clear |"#),
        ("/cl|", "clear", r#"Command "cl": /clear |"#),
        ("/cl|ea", "clear", r#"Command "cl": /clear |"#),
        ("/clear |", "x", "no token"),
        ("fix /cl|", "clear", "no token"),
        ("/skill /ot|", "other", r#"Command "ot": /skill /other |"#),
        ("/add-dir /ho|", "x", "no token"),
        ("/home/x|", "x", "no token"),
        ("first\n/cl|", "clear", "no token"),
        ("see @|", "src/", r#"Mention "": see @src/|"#),
        ("see @sr| now", "src/main.rs", r#"Mention "sr": see @src/main.rs | now"#),
        ("see @src/ma|in.rs#L10-20 now", "src/mail.rs", r#"Mention "src/ma": see @src/mail.rs#L10-20 | now"#),
        ("see @src/main.rs#L1|", "x", "no token"),
        ("(@sr|", "src/", r#"Mention "sr": (@src/|"#),
        ("me@sr|", "x", "no token"),
        ("@a b|", "x", "no token"),
        ("see @my|", "my file.txt", r#"Mention "my": see @"my file.txt" |"#),
        ("see @my|", "my dir/", r#"Mention "my": see @"my dir/|"#),
        (r#"see @"my fi|"#, "my file.txt", r#"Mention "my fi": see @"my file.txt" |"#),
        (r#"see @"my fi|le" now"#, "my file.txt", r#"Mention "my fi": see @"my file.txt" | now"#),
        (r#"@"a b" c|"#, "x", "no token"),
        ("/cmd @sr|", "src/", r#"Mention "sr": /cmd @src/|"#),
        ("!cat ./sr|", "./src/", r#"ShellPath "./sr": cat ./src/|"#),
        ("!cat x=~/a|", "~/a b", r#"ShellPath "~/a": cat x=~/a\ b |"#),
        (r"!cat ./my\ f|", "./my file", r#"ShellPath "./my f": cat ./my\ file |"#),
        ("!cat @sr|", "x", "no token"),
        ("!git st|", "x", "no token"),
    ];
    for (marked, chosen, expected) in table {
        assert_eq!(complete(marked, chosen), expected, "{marked}");
    }
}

fn commands() -> Vec<CommandItem> {
    let item = |name: &str, aliases: &[&str]| CommandItem {
        name: name.to_owned(),
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        ..CommandItem::default()
    };
    vec![
        item("add-dir", &[]),
        item("clear", &["reset", "new"]),
        item("compact", &[]),
        item("config", &[]),
        item("context", &[]),
        item("cd", &[]),
        item("front:comp", &[]),
        item("mcp__server__ask", &[]),
        item("resume", &["continue"]),
        item("mcp", &[]),
        CommandItem { is_hidden: true, ..item("heapdump", &[]) },
    ]
}

#[test]
fn commands_fit_by_name_alias_and_word_and_typos_choose_nothing() {
    let table = [
        ("adddir", "add-dir!"),
        ("add-", "add-dir!"),
        ("dir", "add-dir!"),
        ("new", "clear!"),
        ("NEW", "clear!"),
        ("c", "cd clear config compact context resume front:comp!"),
        ("comp", "compact front:comp!"),
        ("ask", "mcp__server__ask!"),
        ("mcp", "mcp mcp__server__ask!"),
        ("mcp__", "mcp__server__ask mcp!"),
        ("MCP__s", "mcp__server__ask!"),
        ("cont", "context resume!"),
        ("claer", "clear"),
        ("compcat", "compact"),
        ("heap", ""),
        ("heapdump", "heapdump!"),
        ("zzzz", ""),
        ("x", ""),
    ];
    let commands = commands();
    for (typed, expected) in table {
        let found = match_commands(&commands, typed);
        let names: Vec<&str> = found.places.iter().map(|place| commands[*place].name.as_str()).collect();
        assert_eq!(
            format!("{}{}", names.join(" "), if found.is_sure { "!" } else { "" }),
            expected,
            "{typed}"
        );
    }
    let all = match_commands(&commands, "");
    assert_eq!(all.places, (0..10).collect::<Vec<_>>());
}

#[test]
fn best_path_comes_first() {
    let paths = [
        "README.md",
        "crates/loci-tui/src/input/editor.rs",
        "crates/loci-tui/src/input/editor/tests.rs",
        "crates/loci-tui/src/lib.rs",
        "docs/editor-notes.md",
        "src/",
        "src/main.rs",
        "src/makeIndex.ts",
        "tests/it/main.rs",
        "vendor/edit/or.rs",
        "Ärger/straße.txt",
    ];
    let index = FileIndex::from_paths(&paths);
    let first = |query: &str| index.search(query, 3).first().copied().unwrap_or("nothing");
    for (query, expected) in [
        ("editor", "crates/loci-tui/src/input/editor.rs"),
        ("editor.rs", "crates/loci-tui/src/input/editor.rs"),
        ("readme", "README.md"),
        ("main", "src/main.rs"),
        ("it/main", "tests/it/main.rs"),
        ("mi", "src/makeIndex.ts"),
        ("src", "src/"),
        ("tuilib", "crates/loci-tui/src/lib.rs"),
        ("straße", "Ärger/straße.txt"),
        ("zzz", "nothing"),
    ] {
        assert_eq!(first(query), expected, "{query}");
    }
    assert_eq!(index.search("", 9), ["src/", "README.md"]);
    assert_eq!(index.search("rs", 2).len(), 2);
}

/// Makes files below a directory.
fn make(root: &Path, files: &[(&str, &str)]) {
    for (path, content) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[test]
fn index_leaves_out_what_git_ignores() {
    let root = tempfile::tempdir().unwrap();
    make(
        root.path(),
        &[
            (".gitignore", "target\n*.log\n"),
            (".git/config", ""),
            (".github/ci.yml", ""),
            ("src/main.rs", ""),
            ("src/.gitignore", "gen/\n"),
            ("src/gen/out.rs", ""),
            ("target/debug/x", ""),
            ("a.log", ""),
        ],
    );
    let index = FileIndex::build(root.path(), IgnoredFiles::LeftOut);
    let mut found = index.search("", 99);
    found.extend(index.search("rs", 99));
    assert_eq!(found, [".github/", "src/", ".gitignore", "src/main.rs"]);
    let all = FileIndex::build(root.path(), IgnoredFiles::Offered);
    assert_eq!(all.search("a.log", 1), ["a.log"]);
    assert!(!all.search("config", 9).contains(&".git/config"), "git's own files are nobody's");
}

/// A completer over a directory, and its answers.
fn completer(root: &Path, source: FileSource) -> (FileCompleter, mpsc::Receiver<FileAnswer>) {
    let (sender, answers) = mpsc::channel();
    let tell = move |answer| {
        // A test may be over before the last answer.
        sender.send(answer).ok();
    };
    let vars = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("OWN".to_owned(), "mine".to_owned())];
    let helper = SuggestionHelper { vars, ..SuggestionHelper::default() };
    (FileCompleter::start(root.to_owned(), root.join("home"), helper, source, tell).unwrap(), answers)
}

/// Waits for an answer to this query that has this first path.
fn wait_for(answers: &mpsc::Receiver<FileAnswer>, query: &str, expected: &str) {
    loop {
        let answer = answers.recv_timeout(Duration::from_secs(60)).expect("an answer");
        if answer.query == query && answer.found.first().is_some_and(|(path, _)| path == expected) {
            return;
        }
    }
}

#[test]
fn files_are_found_and_new_ones_with_the_next_mention() {
    let root = tempfile::tempdir().unwrap();
    make(root.path(), &[("src/main.rs", "")]);
    let (completer, answers) = completer(root.path(), FileSource::Project(IgnoredFiles::LeftOut));
    completer.ask(TokenKind::Mention, "");
    wait_for(&answers, "", "src/");
    completer.ask(TokenKind::Mention, "mai");
    wait_for(&answers, "mai", "src/main.rs");
    make(root.path(), &[("src/brandnew.rs", "")]);
    completer.ask(TokenKind::Mention, "");
    completer.ask(TokenKind::Mention, "brandnew");
    wait_for(&answers, "brandnew", "src/brandnew.rs");
}

#[test]
fn typed_paths_are_listed_and_mentions_are_offered() {
    let root = tempfile::tempdir().unwrap();
    make(
        root.path(),
        &[("home/notes.md", ""), ("sub/File.txt", ""), ("sub/.hidden", ""), ("sub/fold/x", "")],
    );
    let (completer, answers) = completer(root.path(), FileSource::Project(IgnoredFiles::LeftOut));
    let ask = |kind, query: &str| {
        completer.ask(kind, query);
        let answer = answers.recv_timeout(Duration::from_secs(60)).unwrap();
        answer.found.into_iter().map(|(path, _)| path).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ask(TokenKind::ShellPath, "sub/f"), "sub/fold/ sub/File.txt");
    assert_eq!(ask(TokenKind::ShellPath, "./sub/"), "./sub/fold/ ./sub/File.txt");
    assert_eq!(ask(TokenKind::ShellPath, "sub/.h"), "sub/.hidden");
    assert_eq!(ask(TokenKind::Directory, "s"), "sub/");
    assert_eq!(ask(TokenKind::Directory, "sub/"), "sub/fold/", "files are none");
    assert_eq!(ask(TokenKind::Mention, "~/no"), "~/notes.md");
    assert_eq!(ask(TokenKind::Mention, "../nosuch/"), "");
    let absolute = format!("{}/sub/fi", root.path().display());
    assert_eq!(ask(TokenKind::Mention, &absolute), format!("{}/sub/File.txt", root.path().display()));

    let mention = |name: &str, detail: &str| Mention { name: name.to_owned(), detail: detail.to_owned() };
    completer.set_mentions(vec![
        mention("agent-reviewer", "agent"),
        mention("session:0b5e", "Mend the port · 3 h ago"),
    ]);
    completer.ask(TokenKind::Mention, "review");
    wait_for(&answers, "review", "agent-reviewer");
    // A session is found by its kind, its title and its id.
    for query in ["session", "session:port", "session:mendport", "port", "0b5e"] {
        completer.ask(TokenKind::Mention, query);
        wait_for(&answers, query, "session:0b5e");
    }
}

#[test]
fn file_comes_before_sessions_whose_titles_have_its_letters() {
    let root = tempfile::tempdir().unwrap();
    make(root.path(), &[("src/main.rs", ""), ("src/port.rs", ""), ("agents.md", "")]);
    let (completer, answers) = completer(root.path(), FileSource::Project(IgnoredFiles::LeftOut));
    let mention = |name: &str, detail: &str| Mention { name: name.to_owned(), detail: detail.to_owned() };
    let others = (0..40).map(|n| mention(&format!("session:{n:04}"), "revise it, or view it · 3 m ago"));
    let first = [mention("agent-reviewer", "agent"), mention("session:0b5e", "Mend the port · 3 m ago")];
    completer.set_mentions(others.chain(first).collect());
    completer.ask(TokenKind::Mention, "main");
    wait_for(&answers, "main", "src/main.rs");
    // What is asked first may be answered twice: before the files were read anew, and behind that.
    let last_answer = |query: &str| {
        completer.ask(TokenKind::Mention, query);
        let answers = std::iter::from_fn(|| answers.recv_timeout(Duration::from_secs(60)).ok());
        let mut answers = answers.filter(|answer| answer.query == query && !answer.found.is_empty());
        let found = answers.next().expect("an answer").found;
        found.into_iter().map(|(path, _)| path).collect::<Vec<_>>().join(" ")
    };
    for (query, expected) in [
        ("ma", "src/main.rs"),
        ("port", "src/port.rs session:0b5e"),
        ("session:0b5e", "session:0b5e"),
        ("revie", "agent-reviewer"),
        ("agent", "agent-reviewer agents.md"),
        ("ag", "agents.md agent-reviewer"),
        ("aget", "agents.md agent-reviewer"),
    ] {
        assert_eq!(last_answer(query), expected, "{query}");
    }
}

#[test]
fn command_of_the_person_suggests_files() {
    let root = tempfile::tempdir().unwrap();
    let ask = |command: &str| {
        let (completer, answers) = completer(root.path(), FileSource::Command(command.into()));
        completer.ask(TokenKind::Mention, "que\"ry");
        answers.recv_timeout(Duration::from_secs(60)).unwrap()
    };
    let echoed = ask("cat; echo; echo second");
    assert_eq!(echoed.found[0].0, r#"{"query":"que\"ry"}"#);
    assert_eq!((echoed.found[1].0.as_str(), echoed.failure), ("second", None));
    assert_eq!(ask("seq 100").found.len(), 15);
    let vars = ask("echo $OWN; echo home:$HOME; [ -d \"$CLAUDE_PROJECT_DIR\" ] && echo project");
    let vars: Vec<&str> = vars.found.iter().map(|(line, _)| line.as_str()).collect();
    assert_eq!(vars, ["mine", "home:", "project"], "its environment is the one that it is given");
    let failed = ask("exit 3");
    assert!(failed.found.is_empty() && failed.failure.unwrap().contains("exit status: 3"));
}

fn menu(n_items: usize, selects_first: bool) -> Menu {
    let item = |number| MenuItem {
        label: format!("/c{number}"),
        detail: format!("does {number}"),
        value: format!("c{number}"),
    };
    Menu::new((0..n_items).map(item).collect(), selects_first)
}

fn menu_rows(menu: &mut Menu, width: usize, height: usize) -> Vec<String> {
    menu.rows(width, height, &MenuStyles::default()).iter().map(Row::text).collect()
}

#[test]
fn menu_scrolls_with_what_is_chosen() {
    let mut menu = menu(5, true);
    assert_eq!(menu_rows(&mut menu, 30, 3), ["> /c0  does 0", "  /c1  does 1", "  /c2  does 2"]);
    (0..3).for_each(|_| menu.next());
    assert_eq!(menu_rows(&mut menu, 30, 3), ["  /c1  does 1", "  /c2  does 2", "> /c3  does 3"]);
    menu.previous();
    assert_eq!(menu_rows(&mut menu, 30, 2), ["  /c1  does 1", "> /c2  does 2"]);
    (0..3).for_each(|_| menu.previous());
    assert_eq!(menu.selected().unwrap().value, "c4");
    menu.next();
    assert_eq!(menu.selected().unwrap().value, "c0");
    assert_eq!(menu_rows(&mut menu, 8, 1), ["> /c0  …"]);
}

#[test]
fn menu_without_a_choice_leaves_enter_to_the_text() {
    let mut menu = menu(3, false);
    assert_eq!(menu.selected(), None);
    assert_eq!(menu.accepted().unwrap().value, "c0");
    assert_eq!(menu_rows(&mut menu, 30, 1), ["  /c0  does 0"]);
    menu.previous();
    assert_eq!(menu.selected().unwrap().value, "c2");
    let empty = &mut Menu::default();
    empty.next();
    empty.previous();
    assert!(empty.is_empty() && empty.accepted().is_none() && menu_rows(empty, 9, 9).is_empty());
}

#[test]
fn chosen_item_stays_chosen_when_others_come() {
    let mut chosen = menu(3, true);
    chosen.next();
    chosen.replace_items(vec![
        MenuItem { label: "new".to_owned(), detail: String::new(), value: "new".to_owned() },
        MenuItem { label: "/c1".to_owned(), detail: String::new(), value: "c1".to_owned() },
    ]);
    assert_eq!(chosen.selected().unwrap().value, "c1");
    let mut first = menu(3, true);
    first.replace_items(vec![MenuItem {
        label: "x".to_owned(),
        detail: String::new(),
        value: "x".to_owned(),
    }]);
    assert_eq!(first.selected().unwrap().value, "x");
    first.replace_items(Vec::new());
    assert_eq!(first.selected(), None);
}

#[test]
fn foreign_names_reach_the_rows_without_control_characters() {
    let item = MenuItem { label: "a\x1b[31mb".to_owned(), detail: "c\nd".to_owned(), value: String::new() };
    let rows = menu_rows(&mut Menu::new(vec![item], true), 60, 3);
    assert!(!rows[0].chars().any(char::is_control), "{rows:?}");
}
