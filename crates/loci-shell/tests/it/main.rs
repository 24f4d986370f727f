//! What must hold for any text, tried on texts made from a fixed seed.
//!
//! `hold` is also what the fuzz target runs; see `fuzz` at the root.

mod hold;

/// Pieces that lines are made of: words that matter to the analysis, and everything the shell gives a meaning to.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "ls", "cat a", "touch z", "rm -rf ", "/", "~", "git ", "-c ", "push", "find . ", "-exec ", "-delete", "{}", "\\;", "sed ",
    "'s/a/b/'", "awk ", "bash -c ", "eval ", "xargs ", "sudo ", "env ", "timeout 5 ", "cd ..", "echo ", "printf %n", "$HOME",
    "$X", "${X", ":-", "}", "$(", ")", "(", "((", "))", "`", "'", "\"", "\\", "$'", "\\x41", "<", ">", ">>", "<<E", "<<'E'", "\nE\n",
    "<<<", "<(", ">&", "2>&1", "&>", "|", "|&", "||", "&&", "&", ";", ";;", "\n", " ", "\t", "{", ",", "..", "*", "?", "[", "]", "[[", "]]",
    "!", "#", "=", "+=", "X=", "PATH=", "if ", "then ", "fi", "for i in ", "do ", "done", "case a in ", "esac", "while ", "f() ",
    "function f ", "select ", "coproc ", "time ", "\u{a0}", "\u{200b}", "\u{feff}", "\r", "\0", "é", "日本", "\u{10ffff}", "\u{1}", "1", "-n", "--",
];

/// A number of a sequence that is the same every time.
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as usize
}

#[test]
fn lines_from_pieces_hold() {
    let mut state = 0x5eed;
    for _ in 0..5_000 {
        let n = 1 + next(&mut state) % 24;
        let line: String = (0..n).map(|_| PIECES[next(&mut state) % PIECES.len()]).collect();
        hold::hold(&line);
    }
}

/// Cutting a line anywhere leaves a text that holds, too.
#[test]
fn lines_cut_anywhere_hold() {
    for line in [
        "git add -A && git commit -m \"$(cat <<'EOF'\nsubject\n\nbody\nEOF\n)\"",
        "for f in *.rs; do wc -l \"$f\" | sort -k2 > out; done 2>&1",
        "if [[ -n ${X:-$(date)} ]]; then case $1 in a|b) ls;; *) rm -rf \"$X\"/*;; esac; fi",
        "find . -name '*.ts' -exec sh -c 'cat \"$1\" > /tmp/x' _ {} \\; | xargs -I% bash -c '%'",
        "f() { (( i++ )); echo $'a\\x41' {a,b}{1..3} ~/x `ls`; }; f <(ls) <<< é日本",
        "awk '{print > \"x\"}' a | sed 's/a/b/w out;/x/,/y/d' && curl -so x http://y -d @z",
    ] {
        for (at, _) in line.char_indices() {
            hold::hold(&line[..at]);
            hold::hold(&line[at..]);
        }
    }
}

#[test]
fn long_and_deep_lines_hold() {
    for piece in [
        "(",
        "$(",
        "{ ",
        "`",
        "\"$(",
        "a; ",
        "a | ",
        "{a,",
        "sudo ",
        "bash -c ",
        "<<E\n",
        "${X:-",
        "((",
        "case a in a) ",
    ] {
        for n in [10, 50, 400, 2_000] {
            hold::hold(&piece.repeat(n));
        }
    }
    hold::hold(&"x ".repeat(200_000));
    hold::hold(&"{a,b}".repeat(40));
}
