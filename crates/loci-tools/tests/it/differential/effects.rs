//! Lines that read and write, and code for interpreters, beside what bash, awk and python really did.
//!
//! A line that is allowed, by one of the settings it is judged by, is run. It must not have changed what lies outside the
//! project, what is protected or what a rule denies, nor shown a file from outside, nor run the program that code names.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use loci_core::permission::{Call, Mode, RuleList, RuleOrigin, RuleSource, Rulebook, Verdict, decide};
use loci_tools::{Toolbox, Workspace};
use serde_json::json;

use super::random::{Random, n_cases};

/// What no line may show.
const SECRET: &str = "from-outside";

/// What lines are judged by: a mode, and rules that allow.
const SETTINGS: &[(Mode, &[&str])] = &[
    (Mode::Default, &[]),
    (Mode::AcceptEdits, &[]),
    (Mode::Default, &["Bash"]),
    (Mode::AcceptEdits, &["Bash(*)"]),
    (Mode::Plan, &["Bash"]),
    (
        Mode::Default,
        &["Bash(echo *)", "Bash(tee *)", "Bash(awk *)", "Bash(sed *)", "Bash(python3 *)", "Bash(git *)"],
    ),
];

/// A project and what lies around it.
struct Place {
    root: PathBuf,
    toolbox: Toolbox,
    _dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        Self { root, toolbox: Toolbox::builtin(), _dir: dir }
    }

    fn project(&self) -> PathBuf {
        self.root.join("proj")
    }

    fn renew(&self) {
        for name in ["proj", "outside", "home"] {
            std::fs::remove_dir_all(self.root.join(name)).ok();
        }
        for (name, text) in [
            ("proj/a.txt", "a b\n"),
            ("proj/sub/b.txt", "b\n"),
            ("proj/.git/config", "[core]\n"),
            ("proj/.git/hooks/x", ""),
            ("proj/secrets/key", "k\n"),
            ("outside/file.txt", SECRET),
            ("home/.bashrc", "home\n"),
        ] {
            let path = self.root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        symlink("../outside", self.project().join("out")).unwrap();
        symlink("../outside/file.txt", self.project().join("link")).unwrap();
    }

    /// Returns all files that no line may change, with what they hold.
    fn untouchable(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for name in ["outside", "home", "proj/.git", "proj/secrets"] {
            files(&self.root.join(name), &mut found);
        }
        found
    }

    fn is_allowed(&self, line: &str, (mode, rules): &(Mode, &[&str])) -> bool {
        let (cwd, home) = (self.project(), self.root.join("home"));
        let mut book = Rulebook {
            mode: *mode,
            dirs: vec![cwd.clone()],
            cwd: cwd.clone(),
            home: home.clone(),
            ..Rulebook::default()
        };
        let origin = RuleOrigin::new(RuleSource::Session, &cwd);
        for rule in *rules {
            book.add(RuleList::Allow, rule, &origin);
        }
        book.add(RuleList::Deny, "Edit(secrets/**)", &origin);
        let place = Workspace { project: cwd.clone(), cwd, extra_dirs: Vec::new(), home };
        let input = json!({"command": line});
        let effects = self.toolbox.find("Bash").unwrap().effects(&input, &place);
        let call = Call { tool: "Bash", command: Some(line), input: &input, effects: &effects, hook: None };
        decide(&call, &book).verdict == Verdict::Allow
    }

    /// Runs a line and returns what it showed.
    fn run(&self, line: &str) -> String {
        let output = Command::new("bash")
            .args(["--noprofile", "--norc", "-c", line])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.root.join("home"))
            .current_dir(self.project())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat()
    }

    /// Returns what a line did that it may not do.
    fn harm(&self, line: &str) -> Option<String> {
        let before = self.untouchable();
        let shown = self.run(line);
        let after = self.untouchable();
        let changed = before.iter().find(|(path, text)| after.get(*path) != Some(text)).map(|(path, _)| path);
        let made = after.keys().find(|path| !before.contains_key(*path));
        if let Some(path) = changed.or(made) {
            return Some(format!("`{}` was written", path.display()));
        }
        let ran = self.project().join("PWN").exists().then(|| "a program that code names ran".to_owned());
        ran.or_else(|| shown.contains(SECRET).then(|| "a file from outside was shown".to_owned()))
    }
}

fn files(dir: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        match path.is_dir() && !path.is_symlink() {
            true => files(&path, found),
            false => {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                found.insert(path, text);
            }
        }
    }
}

/// What code for interpreters is judged by: a rule for every command is one for whatever code it is.
const RULES_FOR_CODE: &[(Mode, &[&str])] = &[
    (Mode::Default, &["Bash(awk *)", "Bash(python3 *)"]),
    (Mode::AcceptEdits, &["Bash(awk:*)", "Bash(python3:*)"]),
];

fn check(seed: u64, n: usize, settings: &[(Mode, &[&str])], make: fn(&mut Random) -> String) {
    let place = Place::new();
    let mut random = Random::new(seed);
    let n = n_cases(n);
    let (mut n_allowed, mut wrong) = (0, Vec::new());
    for _ in 0..n {
        place.renew();
        let line = make(&mut random);
        let by: Vec<_> = settings.iter().filter(|it| place.is_allowed(&line, it)).collect();
        if by.is_empty() {
            continue;
        }
        n_allowed += 1;
        wrong.extend(place.harm(&line).map(|harm| format!("{line}\n  {harm}; allowed by {by:?}")));
    }
    let n_wrong = wrong.len();
    assert!(wrong.is_empty(), "{n_wrong} of {n}:\n{}", wrong.join("\n"));
    assert!(n_allowed > n / 10, "of {n} only {n_allowed} are allowed");
    assert!(
        n_allowed < n - n / 10,
        "of {n} even {n_allowed} are allowed: hardly a line does what it may not"
    );
}

#[test]
fn allowed_lines_write_and_show_nothing_they_may_not() {
    check(0xb45e, 300, SETTINGS, line);
}

#[test]
fn allowed_code_for_awk_runs_and_writes_nothing_it_may_not() {
    check(0xa3c, 200, RULES_FOR_CODE, awk);
}

#[test]
fn allowed_code_for_python_runs_and_writes_nothing_it_may_not() {
    check(0x974, 60, RULES_FOR_CODE, python);
}

/// A line with one or two commands that read or write.
fn line(random: &mut Random) -> String {
    let before = random.pick(&[
        "",
        "",
        "",
        "",
        "cd sub && ",
        "cd sub; ",
        "cd out && ",
        "cd -P out; cd ..; ",
        "set -P; cd out; cd ../outside; ",
        "cd .. && ",
        "cd .git && ",
        "IFS=/; ",
        "X=../outside/x; ",
        "HOME=$PWD; ",
        "PWD=../outside; ",
        "echo() { printf %s ../outside/x; }; ",
        "read X <<< ../outside/x; ",
        "shopt -s extglob; ",
    ]);
    let command = command(random);
    let wrapped = match random.below(8) {
        0 => format!("{{ {command}\n}} > {}", target(random)),
        1 => format!("( {command}\n)"),
        2 => format!("bash -c '{}'", command.replace('\'', "'\\''")),
        3 => format!("for i in 1; do {command}\ndone"),
        4 => format!("if true; then {command}\nfi"),
        _ => command,
    };
    format!("{before}{wrapped}")
}

fn command(random: &mut Random) -> String {
    let (target, other) = (target(random), target_for_reading(random));
    match random.below(22) {
        0 => format!("echo x > {target}"),
        1 => format!("echo x >> {target}"),
        2 => format!("echo x >| {target}"),
        3 => format!("echo x &> {target}"),
        4 => format!("cat <<E > {target}\n$HOME\nE"),
        5 => format!("cat > {target} <<'E'\nx\nE"),
        6 => format!("echo x | tee {target}"),
        7 => format!("cp a.txt {target}"),
        8 => format!("touch {target}"),
        9 => format!("dd if=/dev/zero of={target} bs=1 count=1"),
        10 => format!("sort -o {target} a.txt"),
        11 => format!("awk 'BEGIN {{ print 1 > \"{target}\" }}'"),
        12 => format!("sed -n 'w {target}' a.txt"),
        13 => format!("exec 3> {target}; echo x >&3"),
        14 => format!("mkdir -p {target}"),
        15 => format!("cat {other}"),
        16 => format!("cat < {other}"),
        17 => format!("head -c 20 {other} /dev/zero"),
        18 => format!("grep . {other}"),
        19 => format!("cat /dev/fd/3 3< {other}"),
        20 => format!("[[ -f {other} ]] && cat {other}"),
        _ => format!("echo {other} | xargs {}", random.pick(&["echo", "cat", ""])),
    }
}

fn target(random: &mut Random) -> &'static str {
    random.pick(&[
        "f",
        "f",
        "sub/f",
        "./f",
        "\"$PWD/f\"",
        "$(echo f)",
        "\"$(echo sub)/f\"",
        "$(printf %s f)",
        "`echo f`",
        "$(echo sub/f)",
        "../f",
        "../outside/x",
        "~/.bashrc",
        "$HOME/x",
        ".git/config",
        ".git/hooks/y",
        "out/x",
        "link",
        "secrets/key",
        "$(echo ../outside/x)",
        "$(echo ..)/outside/x",
        "$(printf ../outside/%s x)",
        "$(cat a.txt)",
        "\"$X\"",
        "{f,../outside/x}",
        "secre?s/key",
        "out/../outside/x",
        "/dev/null",
    ])
}

fn target_for_reading(random: &mut Random) -> &'static str {
    random.pick(&[
        "a.txt",
        "sub/b.txt",
        "*.txt",
        "$(echo a.txt)",
        "/dev/null",
        "/dev/stdin",
        "../outside/file.txt",
        "../outside/*",
        "out/file.txt",
        "outside/file.txt",
        "link",
        "$(echo link)",
        "$(echo ../outside/file.txt)",
        "\"$X\"",
        "{a.txt,link}",
        "~/../outside/file.txt",
    ])
}

/// A program with slashes and quotes where awks and this reading could differ.
fn awk(random: &mut Random) -> String {
    let before = random.pick(&[
        "",
        "",
        "x = 1 + ",
        "x = (1) ",
        "if (1) ",
        "print $",
        "x = 1 ",
        "x = length ",
        "x = ! ",
        "x = y++ ",
        "x = y ~ ",
        "x = y[1] ",
        "print ",
        "return ",
        "x = -",
        "x = \"a\" ",
        "x = /a/ ",
        "getline ",
        "exit ",
    ]);
    let slash = random.pick(&[
        "/\"/",
        "/[/]\"/",
        "/[]/]\"/",
        "/[^/]\"/",
        "/\\/\"/",
        "/[[:alpha:]/]\"/",
        "/[\\]/]\"/",
        "/[^]/\"]/",
        "\"/\"",
        "/#/",
        "/a/",
        "/[\"]/",
        "1",
        "/ 2",
        "/ (3) / \"4\"",
    ]);
    let between = random.pick(&["; ", "; ", "\n", " {} ", "} BEGIN { ", " "]);
    let evil = random.pick(&[
        "system(\"touch PWN\")",
        "print 1 > \"../outside/x\"",
        "print 1 | \"touch PWN\"",
        "\"touch PWN\" | getline",
        "print 1",
        "print 1 > \"f\"",
        "n++",
    ]);
    let after =
        random.pick(&["", "", "; y = \"/\"", "; y = \"", " #\"", " #/\"", "; y = /\"/", "; y = (1) / \"2\""]);
    let program = format!("{before}{slash}{between}{evil}{after}");
    let program = match random.below(4) {
        0 => program,
        1 => format!("{{ {program} }}"),
        _ => format!("BEGIN {{ {program} }}"),
    };
    match random.below(6) {
        0 => format!("awk -f - a.txt <<'E'\n{program}\nE"),
        1 => format!("awk -f /dev/stdin <<'E'\n{program}\nE"),
        _ => format!("awk '{}' a.txt", program.replace('\'', "")),
    }
}

/// A program whose strings and names could be read otherwise.
fn python(random: &mut Random) -> String {
    let name = random.pick(&["f", "sub/f", "../outside/x", ".git/config", "secrets/key", "../out"]);
    let open = match random.below(12) {
        0 => format!("open('{name}', 'w').write('x')"),
        1 => format!("open(r'{name}', mode='a').write('x')"),
        2 => format!("open('''{name}''', 'w').write('x')"),
        3 => format!("open(file='{name}', mode='w').write('x')"),
        4 => format!("open(b'{name}', 'wb').write(b'x')"),
        5 => format!("open('' '{name}', 'w').write('x')"),
        6 => format!("with open('{name}', 'w') as h: h.write('x')"),
        7 => format!("x = '{name}'; open(x, 'w').write('x')"),
        8 => format!("import pathlib; pathlib.Path('{name}').write_text('x')"),
        9 => "(i for i in ()).gi_frame.f_builtins['ex' + 'ec'](\"import os; os.system('touch PWN')\")"
            .to_owned(),
        10 => "import os; os.system('touch PWN')".to_owned(),
        _ => format!("print('{name}', len('x'))"),
    };
    let before = random.pick(&[
        "",
        "",
        "import json, re\n",
        "# \"\"\"\n",
        "x = '#'\n",
        "x = 'a\\\n'\n",
        "x = f'{1}'\n",
    ]);
    let code = format!("{before}{open}");
    match random.below(4) {
        0 => format!("python3 - <<'E'\n{code}\nE"),
        1 => format!("python3 <<'E' 3<<'F'\n{code}\nE\nprint(1)\nF"),
        2 => format!("python3 /dev/stdin <<'E'\n{code}\nE"),
        _ => format!("python3 -c \"{}\"", code.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
