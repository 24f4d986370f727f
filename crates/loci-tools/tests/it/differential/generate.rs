//! Lines that are harmless to run, made up from our commands and the forms of the shell.

use std::path::Path;

use super::random::Random;
use super::scratch::COMMANDS;

pub(super) struct Generator {
    random: Random,
    bin: String,
}

impl Generator {
    pub(super) fn new(seed: u64, bin: &Path) -> Self {
        Self { random: Random::new(seed), bin: bin.display().to_string() }
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        self.random.pick(from)
    }

    /// A whole line.
    pub(super) fn line(&mut self) -> String {
        self.command(3)
    }

    /// A line with pieces of others put in anywhere: much of it is no shell, and the rest was not meant so.
    pub(super) fn rubble(&mut self) -> String {
        const PIECES: &[&str] = &[
            "alpha",
            "beta x",
            "gamma",
            " ",
            " ",
            " ",
            "; ",
            ";",
            "&& ",
            "|| ",
            "| ",
            "& ",
            "\n",
            "(",
            ")",
            "{ ",
            "; }",
            "'",
            "\"",
            "\\",
            "\\\n",
            "`",
            "$(",
            ")",
            "<(",
            "$((",
            "))",
            "${X:-",
            "}",
            "$X",
            "$'",
            "X=1 ",
            "X=alpha; ",
            "<<E\n",
            "\nE\n",
            "<<< ",
            "> f",
            ">& ",
            "2>&1 ",
            "< /dev/null ",
            "{alpha,y}",
            "{1..2}",
            "*",
            "?",
            "~",
            "#",
            "if alpha; then ",
            "; fi",
            "for i in 1 2; do ",
            "; done",
            "case a in a) ",
            ";; esac",
            "[[ -n ",
            " ]] && ",
            "eval ",
            "bash -c ",
            "xargs ",
            "command ",
            "env ",
            "nice ",
            "! ",
            "echo ",
            "test -n ",
            "time ",
            "function f ",
            "exec ",
            "trap ",
            " EXIT",
            "-n",
            "--",
            "=",
            "[",
            "]",
            "!",
            ",",
            "\t",
            "select i in 1; do ",
            "f() ",
        ];
        let depth = self.below(2) + 1;
        let mut line = self.command(depth);
        for _ in 0..1 + self.below(3) {
            let at = self.below(line.len() + 1);
            let piece = self.pick(PIECES);
            line.insert_str(at, piece);
        }
        line
    }

    /// A call of one of ours, spelled in some way.
    fn call(&mut self) -> String {
        let name = self.name();
        let n = self.below(3);
        let words: Vec<String> = (0..n).map(|_| self.argument()).collect();
        [vec![name], words].concat().join(" ")
    }

    fn name(&mut self) -> String {
        let name = self.pick(COMMANDS);
        let (head, tail) = name.split_at(2);
        match self.below(12) {
            0 => format!("'{name}'"),
            1 => format!("\"{name}\""),
            2 => format!("{head}''{tail}"),
            3 => format!("\\{name}"),
            4 => format!("$'{name}'"),
            5 => format!("$'\\x{:x}'{}", name.as_bytes()[0], &name[1..]),
            6 => format!("{head}\\\n{tail}"),
            7 => format!("{}/{name}", self.bin),
            8 => format!("{{{name},first}}"),
            _ => name.to_owned(),
        }
    }

    fn argument(&mut self) -> String {
        match self.below(16) {
            0 => "'b c'".to_owned(),
            1 => "\"d e\"".to_owned(),
            2 => "$((1+1))".to_owned(),
            3 => "{p,q}".to_owned(),
            4 => "${U:-v}".to_owned(),
            5 => "$U".to_owned(),
            6 => "\"$U\"".to_owned(),
            7 => "x{1..3}".to_owned(),
            8 => format!("$({})", self.command(0)),
            9 => format!("\"$({})\"", self.command(0)),
            10 => format!("${{U:-$({})}}", self.command(0)),
            11 => "$'a\\tb'".to_owned(),
            12 => format!("<({})", self.command(0)),
            _ => self.pick(&["a", "-n", "--flag=x", "b.txt"]).to_owned(),
        }
    }

    /// A command of any kind, at most so deep.
    fn command(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.call();
        }
        let kind = self.below(46);
        let a = self.command(depth - 1);
        let quoted = format!("'{}'", a.replace('\'', "'\\''"));
        let call = self.call();
        match kind {
            0 => format!("{a}\n{}", self.command(depth - 1)),
            1 => format!("{a} && {}", self.command(depth - 1)),
            2 => format!("{a} || {}", self.command(depth - 1)),
            3 => format!("{a} | {}", self.command(depth - 1)),
            4 => format!("( {a}\n)"),
            5 => format!("{{ {a}\n}}"),
            6 => format!("if {a}\nthen {}\nelse {call}; fi", self.command(depth - 1)),
            7 => format!("for i in 1 2; do {a}\ndone"),
            8 => format!("case x in y) {call};; *) {a}\n;; esac"),
            9 => format!("f() {{ {a}\n}}; f"),
            10 => format!("! {a}"),
            11 => format!("while {call}; do {a}\nbreak; done"),
            12 => format!("{call} & wait; {a}"),
            13 => format!("cat <<END\n$( {a}\n)\nEND"),
            14 => format!("cat <<'END'\n$( {a}\n)\nEND"),
            15 => format!("bash -c {quoted}"),
            16 => format!("bash -ec {quoted} name"),
            17 => format!("eval {quoted}"),
            18 => format!("env A=1 {call}"),
            19 => format!("nice -n 1 {call}"),
            20 => format!("timeout 5 {call}"),
            21 => format!("command {call}"),
            22 => format!("( exec {call} )"),
            23 => format!("xargs {call} <<< w"),
            24 => format!("echo w | xargs -n1 {call}"),
            25 => format!("find . -maxdepth 0 -exec {call} {{}} \\;"),
            26 => format!("find . -maxdepth 0 -exec bash -c {quoted} \\;"),
            27 => format!("A=1 {call}"),
            28 => format!("{call} > out1"),
            29 => format!("{call} >> out2 2>&1"),
            30 => format!("> out3 {call}"),
            31 => format!("trap {quoted} EXIT"),
            32 => format!("[[ -n $( {a}\n) ]] || {call}"),
            33 => format!("echo w | xargs -I% bash -c '{} %'", self.pick(COMMANDS)),
            34 => format!("bash <<'END'\n{a}\nEND"),
            35 => format!("bash <<< {quoted}"),
            36 => format!(". /dev/stdin <<< {quoted}"),
            37 => format!("source <(echo {quoted})"),
            38 => format!("V={}; $V x", self.pick(COMMANDS)),
            39 => format!("V={quoted}; eval \"$V\""),
            40 => format!("printf '%s\\n' {quoted} | bash"),
            41 => format!("echo \"`{call}`\""),
            42 => format!("mkdir -p sub && cd sub && {call} > out4"),
            43 => format!("{a} | tee out5"),
            44 => format!("cp /dev/null out6; {a}"),
            _ => format!("x=$( {a}\n) {call}"),
        }
    }
}
