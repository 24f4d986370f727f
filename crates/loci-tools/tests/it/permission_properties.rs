//! Properties of decisions, over the cases of the tables: spelling a call otherwise, and saying more against it,
//! never lets it run.

use std::path::Path;
use std::sync::LazyLock;

use loci_core::permission::{RuleList, Rulebook, Verdict};
use loci_shell::{ShellContext, analyse};
use proptest::prelude::*;

use crate::permission_table::{Case, cases, input};
use crate::tree::Tree;

struct World {
    tree: Tree,
    cases: Vec<Case>,
    /// Which cases are commands, complete in themselves, that no rule for a shell lets run.
    commands: Vec<usize>,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let tree = Tree::new();
    let cases = cases(&tree);
    let (cwd, home) = (tree.dir("proj"), tree.dir("home"));
    let ctx = ShellContext { cwd: &cwd, home: &home };
    let is_whole = |case: &Case| analyse(&case.argument, &ctx).unknown.is_empty();
    let is_command = |case: &Case| case.tool == "Bash" && !names_a_shell(case) && is_whole(case);
    let commands = (0..cases.len()).filter(|idx| is_command(&cases[*idx])).collect();
    World { tree, cases, commands }
});

impl World {
    fn verdict(&self, book: &Rulebook, tool: &str, argument: &str) -> Verdict {
        self.tree.judge(book, tool, &input(tool, argument)).verdict
    }

    fn commands(&self) -> impl Iterator<Item = &Case> {
        self.commands.iter().map(|idx| &self.cases[*idx])
    }
}

/// How strict a verdict is.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask => 1,
        Verdict::Deny => 2,
    }
}

/// Ways to put a command into something; `{}` is the command, `{q}` the command in quotes. A line break ends
/// here-documents and comments.
const AROUND: &[&str] = &[
    "( {}\n)",
    "{ {}\n}",
    "! ( {}\n)",
    "if {}\nthen true; fi",
    "if true; then {}\nfi",
    "for i in 1 2; do {}\ndone",
    "while {}\ndo true; done",
    "case a in a) {}\n;; esac",
    "f() { {}\n}; f",
    "true && {}",
    "false || {}",
    "ls; {}",
    "{}\nls",
    "echo $( {}\n)",
    "echo \"a $( {}\n) b\"",
    "x=$( {}\n)",
    "cat <( {}\n)",
    "cat <<END\n$( {}\n)\nEND",
    "( {}\n) | cat",
    "( {}\n) &",
    "time {}",
    "bash -c {q}",
    "bash -lc {q}",
    "sh -c {q} name argument",
    "eval {q}",
    "sudo bash -c {q}",
    "env A=1 timeout 5 bash -c {q}",
    "find . -exec bash -c {q} \\;",
    "xargs -I% bash -c {q}",
    "bash <<< {q}",
    "trap {q} EXIT",
];

fn wrapped(around: &str, command: &str) -> String {
    let quoted = format!("'{}'", command.replace('\'', "'\\''"));
    around.replace("{}", command).replace("{q}", &quoted)
}

/// Rules that let a program run any code do let it run what it is given.
fn names_a_shell(case: &Case) -> bool {
    case.title.contains("by name") || case.title.contains("name what runs others")
}

/// Lines that keep their meaning when letters in them are quoted.
fn is_plain(command: &str) -> bool {
    #[rustfmt::skip]
    const RESERVED: &[&str] = &[
        "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "time", "coproc",
        "select", "function",
    ];
    command.chars().all(|c| c.is_ascii_alphanumeric() || " ./;&|<>()_:-\n".contains(c))
        && !command.contains("<<")
        && !command.split([' ', ';', '\n', '(']).any(|word| RESERVED.contains(&word))
}

/// Quotes, escapes or breaks a line at some of its letters, and widens its spaces.
fn respelled(command: &str, choices: &[u8]) -> String {
    let mut out = String::new();
    for (idx, c) in command.chars().enumerate() {
        match (c, choices[idx % choices.len()] % 12) {
            (c, 0) if c.is_ascii_alphabetic() => out.extend(['\\', c]),
            (c, 1) if c.is_ascii_alphabetic() => out.extend(['\'', c, '\'']),
            (c, 2) if c.is_ascii_alphabetic() => out.extend(['"', c, '"']),
            (c, 3) if c.is_ascii_alphabetic() => out.push_str(&format!("''{c}")),
            (c, 4) if c.is_ascii_alphabetic() => out.push_str(&format!("$'\\x{:x}'", c as u32)),
            (c, 5) if c.is_ascii_alphabetic() => out.extend(['\\', '\n', c]),
            (' ', 6) => out.push_str("  \t "),
            (' ', 7) => out.push_str(" \\\n "),
            (c, _) => out.push(c),
        }
    }
    out
}

/// Wrapping and nesting open nothing, once for every case and every way (P-4, S-5).
#[test]
fn wrapping_a_command_never_allows_it() {
    let mut opened = Vec::new();
    let mut n = 0;
    for case in WORLD.commands() {
        if WORLD.verdict(&case.book, "Bash", &case.argument) == Verdict::Allow {
            continue;
        }
        // Every way is tried with every fifth case, and every case with a fifth of the ways.
        for (idx, around) in AROUND.iter().enumerate().filter(|(idx, _)| (idx + n) % 5 == 0) {
            let line = wrapped(around, &case.argument);
            if WORLD.verdict(&case.book, "Bash", &line) == Verdict::Allow {
                opened.push(format!("{}: {}: way {idx}: {line:?}", case.class, case.title));
            }
        }
        n += 1;
    }
    assert!(n > 1_000, "only {n} cases");
    assert!(opened.is_empty(), "{} were opened:\n{}", opened.len(), opened.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nor by several of them at once.
    #[test]
    fn several_wrappings_never_allow_a_command(
        pick in any::<prop::sample::Index>(),
        layers in prop::collection::vec(prop::sample::select(AROUND), 1..4),
    ) {
        let case = &WORLD.cases[WORLD.commands[pick.index(WORLD.commands.len())]];
        let before = WORLD.verdict(&case.book, "Bash", &case.argument);
        prop_assume!(before != Verdict::Allow);
        let line = layers.iter().fold(case.argument.clone(), |line, around| wrapped(around, &line));
        let after = WORLD.verdict(&case.book, "Bash", &line);
        prop_assert_ne!(after, Verdict::Allow, "{:?} was {:?}", line, before);
    }

    /// Quotes, escapes, broken lines and wide spaces open nothing (S-17).
    #[test]
    fn respelling_a_command_never_allows_it(
        pick in any::<prop::sample::Index>(),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let commands: Vec<&Case> =
            WORLD.cases.iter().filter(|case| case.tool == "Bash" && is_plain(&case.argument)).collect();
        let case = commands[pick.index(commands.len())];
        let before = WORLD.verdict(&case.book, "Bash", &case.argument);
        prop_assume!(before != Verdict::Allow);
        let line = respelled(&case.argument, &choices);
        let after = WORLD.verdict(&case.book, "Bash", &line);
        prop_assert_ne!(after, Verdict::Allow, "{:?} was {:?}", line, before);
    }

    /// One more rule that denies or asks never lets more run (S-2).
    #[test]
    fn adding_deny_or_ask_rules_never_allows_more(
        pick in any::<prop::sample::Index>(),
        rule in prop::sample::select(RULES),
        list in prop::sample::select(vec![RuleList::Deny, RuleList::Ask]),
    ) {
        let case = &WORLD.cases[pick.index(WORLD.cases.len())];
        let before = WORLD.verdict(&case.book, case.tool, &case.argument);
        let mut book = case.book.clone();
        WORLD.tree.add(&mut book, list, rule, Path::new("/"));
        let after = WORLD.verdict(&book, case.tool, &case.argument);
        prop_assert!(rank(after) >= rank(before), "{:?} {}: {:?}, then {:?}", list, rule, before, after);
    }

    /// A verdict does not depend on the order of rules.
    #[test]
    fn order_of_rules_never_changes_the_verdict(
        pick in any::<prop::sample::Index>(),
        more in prop::collection::vec((prop::sample::select(RULES), 0..3), 0..6),
        by in 0..7usize,
        is_reversed in any::<bool>(),
    ) {
        let case = &WORLD.cases[pick.index(WORLD.cases.len())];
        let mut book = case.book.clone();
        for (rule, list) in more {
            let list = [RuleList::Allow, RuleList::Ask, RuleList::Deny][list as usize];
            WORLD.tree.add(&mut book, list, rule, &WORLD.tree.dir("proj"));
        }
        let before = WORLD.verdict(&book, case.tool, &case.argument);
        for rules in [&mut book.allow, &mut book.ask, &mut book.deny] {
            let by = by % rules.len().max(1);
            rules.rotate_left(by);
            if is_reversed {
                rules.reverse();
            }
        }
        let after = WORLD.verdict(&book, case.tool, &case.argument);
        prop_assert_eq!(before, after, "{} {}", case.tool, &case.argument);
    }
}

/// Rules of every kind.
const RULES: &[&str] = &[
    "Bash",
    "Bash(*)",
    "Bash(ls *)",
    "Bash(git *)",
    "Bash(git push *)",
    "Bash(rm *)",
    "Bash(touch *)",
    "Bash(curl *)",
    "Bash(npm run *)",
    "Bash(cat a.txt)",
    "Bash(* --version)",
    "Bash(run_in_background:true)",
    "Read",
    "Read(.env)",
    "Read(secrets/**)",
    "Read(//etc/**)",
    "Read(~/**)",
    "Edit",
    "Edit(docs/**)",
    "Edit(**)",
    "Edit(.git/**)",
    "Write",
    "WebFetch",
    "WebFetch(domain:example.com)",
    "WebFetch(domain:*.evil.test)",
    "mcp__srv",
    "mcp__srv__get_*",
    "mcp__*",
    "Bash(",
    "Grep",
];
