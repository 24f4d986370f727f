//! Measures what a permission decision costs with a thousand rules; `cargo xtask bench permissions` runs it.
//!
//! The rules are of all kinds and none of them matches early: nearly all of every list is looked at for each call.
//! "Decision" is the permission engine alone. "With effects" adds what comes before it: parsing the command twice,
//! and following the links of its paths on the disk.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measurement prints, and fails loudly"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use loci_core::permission::{Call, RuleList, RuleOrigin, RuleSource, Rulebook, Verdict, decide};
use loci_settings::Scope;
use loci_tools::{Toolbox, Workspace};
use serde_json::{Value, json};

const N_RULES: usize = 1_000;
const N_RUNS: usize = 2_000;

fn main() {
    let dir = tempfile::tempdir().expect("make a directory");
    let project = dir.path().canonicalize().expect("resolve it");
    std::fs::create_dir_all(project.join("src/deep")).expect("fill it");
    std::fs::write(project.join("src/deep/file.rs"), "x").expect("fill it");
    let book = rulebook(&project);
    let file = project.join("src/deep/file.rs");
    let n_rules = book.allow.len() + book.ask.len() + book.deny.len();
    println!("| call, {n_rules} rules | verdict | decision, median | 99th | with effects, median | 99th |");
    println!("|---|---|---:|---:|---:|---:|");
    for (tool, input) in [
        ("Read", json!({"file_path": file})),
        ("Edit", json!({"file_path": file, "old_string": "a", "new_string": "b"})),
        ("Bash", json!({"command": "git status"})),
        ("Bash", json!({"command": "program-199 --flag src/deep/file.rs"})),
        ("Bash", json!({"command": "cd src && cat deep/file.rs | grep -n x | head -5 && make test"})),
        ("Bash", json!({"command": "for f in a b c; do sudo env A=1 bash -c \"rm $f\"; done > out.txt"})),
    ] {
        measure(&book, &project, tool, &input);
    }
}

fn rulebook(project: &Path) -> Rulebook {
    let mut book = Rulebook {
        dirs: vec![project.to_path_buf()],
        cwd: project.to_path_buf(),
        home: project.join("home"),
        ..Rulebook::default()
    };
    let origin = RuleOrigin::new(RuleSource::Settings(Scope::User), project);
    for n in 0..N_RULES {
        let list = [RuleList::Allow, RuleList::Allow, RuleList::Deny, RuleList::Ask][n % 4];
        let text = match n / 4 % 5 {
            0 => format!("Bash(program-{} *)", n / 4),
            1 => format!("Bash(git sub-{n} *)"),
            2 => format!("Read(**/secrets-{n}/**)"),
            3 => format!("Edit(./src/area-{n}/*.rs)"),
            _ => format!("WebFetch(domain:*.host-{n}.test)"),
        };
        assert_eq!(book.add(list, &text, &origin), None);
    }
    book
}

fn measure(book: &Rulebook, project: &Path, tool: &str, input: &Value) {
    let place = Workspace {
        cwd: project.to_path_buf(),
        project: project.to_path_buf(),
        extra_dirs: Vec::new(),
        home: project.join("home"),
    };
    let toolbox = Toolbox::builtin();
    let found = toolbox.find(tool).expect("a tool of ours");
    let command = input.get("command").and_then(Value::as_str);
    let (mut decisions, mut wholes) = (Vec::new(), Vec::new());
    let mut verdict = Verdict::Ask;
    for _ in 0..N_RUNS {
        let started = Instant::now();
        let effects = found.effects(input, &place);
        let judged = Instant::now();
        verdict = decide(&Call { tool, command, input, effects: &effects, hook: None }, book).verdict;
        let ended = Instant::now();
        decisions.push(ended - judged);
        wholes.push(ended - started);
    }
    let shown = command.map_or_else(|| tool.to_owned(), |command| command.replace('|', "\\|"));
    let verdict = format!("{verdict:?}").to_lowercase();
    let [a, b] = quantiles(decisions);
    let [c, d] = quantiles(wholes);
    println!("| `{shown}` | {verdict} | {a} | {b} | {c} | {d} |");
}

fn quantiles(mut times: Vec<Duration>) -> [String; 2] {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    [at(0.5), at(0.99)].map(|time| format!("{:.1} µs", time.as_secs_f64() * 1e6))
}
