//! Python on the command line: known to run no command, with the files it opens by name.
//!
//! Only what is on the lists is known: modules without a way to a process or a file, and no name that leads to one.
//! Everything else could run anything.

use super::Named;

/// Modules that neither run commands nor write files.
#[rustfmt::skip]
const MODULES: &[&str] = &[
    "abc", "argparse", "array", "ast", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "copy", "csv",
    "datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "hmac", "html",
    "ipaddress", "itertools", "json", "keyword", "locale", "math", "numbers", "operator", "os", "pathlib", "platform",
    "pprint", "random", "re", "secrets", "statistics", "string", "struct", "sys", "sysconfig", "textwrap", "time",
    "tomllib", "unicodedata", "uuid", "zlib", "zoneinfo",
];

/// What of `os` may be used.
#[rustfmt::skip]
const OF_OS: &[&str] = &[
    "path", "environ", "getenv", "getcwd", "listdir", "walk", "scandir", "stat", "sep", "linesep", "name", "getpid", "cpu_count",
    "uname", "access", "pathsep", "curdir",
];

/// Names that lead to commands, to files, or to any name by its text.
#[rustfmt::skip]
const REFUSED: &[&str] = &[
    "eval", "exec", "getattr", "setattr", "delattr", "globals", "locals", "vars", "breakpoint", "help", "attrgetter",
    "methodcaller", "modules", "meta_path", "path_hooks", "system", "popen", "subprocess", "importlib", "builtins", "ctypes",
    "shutil", "tempfile", "codecs", "io", "socket", "pickle", "marshal", "runpy", "pty", "posix", "signal", "multiprocessing",
    "write_text", "write_bytes", "touch", "unlink", "rmdir", "mkdir", "rename", "symlink_to", "hardlink_to", "link_to", "chmod",
    "lchmod", "remove", "removedirs", "makedirs", "startfile", "FileType", "fdopen", "breakpointhook", "excepthook", "displayhook",
    "Formatter", "get_field", "get_type_hints", "singledispatch", "singledispatchmethod", "getnode", "uuid1", "architecture",
    "processor", "copy_into", "move_into",
];

/// How names begin of what frames, tracebacks and code have, by which all names of a program are reached.
const INNER_NAMES: &[&str] = &["f_", "gi_", "cr_", "ag_", "tb_", "co_", "func_"];

/// Returns the files that the code opens, read ones marked `false` and written ones `true`; `None` when it could do more.
pub(crate) fn read(code: &str) -> Option<Vec<(Named, bool)>> {
    let tokens = tokens(code)?;
    let word = |at: usize| match tokens.get(at) {
        Some(Token::Word(word)) => Some(word.as_str()),
        _ => None,
    };
    let is_sign = |at: usize, sign: char| tokens.get(at) == Some(&Token::Sign(sign));
    let has_pathlib = (0..tokens.len()).any(|at| word(at) == Some("pathlib"));
    let mut files = Vec::new();
    for at in 0..tokens.len() {
        let Some(name) = word(at) else { continue };
        let is_member = at > 0 && is_sign(at - 1, '.');
        let is_own = name == "__name__";
        let is_refused = REFUSED.contains(&name)
            || (name.starts_with("__") && !is_own)
            || (is_member && name.starts_with('_'))
            || (name == "compile" && !(is_member && at > 1 && word(at - 2) == Some("re")))
            || (is_member && name == "open")
            || (is_member && INNER_NAMES.iter().any(|start| name.starts_with(start)))
            || (is_member && has_pathlib && matches!(name, "replace" | "copy" | "move"));
        if is_refused {
            return None;
        }
        match name {
            "import" if !imports(&tokens, at) => return None,
            "os" if is_sign(at + 1, '.') => {
                word(at + 2).filter(|member| OF_OS.contains(member))?;
            }
            // Under another name nobody would know it again.
            "os" if word(at + 1) == Some("as") || !is_imported(&tokens, at) => return None,
            "open" => files.push(opened(&tokens[at + 1..])?),
            "Path" | "PosixPath" => files.extend(path_names(&tokens[at + 1..])),
            _ => {}
        }
    }
    Some(files)
}

/// Returns true when an `import` is of modules on the list.
fn imports(tokens: &[Token], at: usize) -> bool {
    let known = |token: Option<&Token>| match token {
        Some(Token::Word(name)) => MODULES.contains(&name.as_str()),
        _ => false,
    };
    let line_start = tokens[..at].iter().rposition(|token| matches!(token, Token::Sign('\n' | ';' | ':')));
    let start = line_start.map_or(0, |start| start + 1);
    if tokens.get(start) == Some(&Token::Word("from".to_owned())) {
        let of_os = tokens.get(start + 1) == Some(&Token::Word("os".to_owned())) && start + 2 == at;
        return known(tokens.get(start + 1)) && !of_os;
    }
    let rest = &tokens[at + 1..];
    let end = rest.iter().position(|token| matches!(token, Token::Sign('\n' | ';'))).unwrap_or(rest.len());
    rest[..end].split(|token| *token == Token::Sign(',')).all(|module| known(module.first()))
}

/// Returns true for a name behind `import` or `from`, or a comma in such a line.
fn is_imported(tokens: &[Token], at: usize) -> bool {
    let line_start = tokens[..at].iter().rposition(|token| matches!(token, Token::Sign('\n' | ';' | ':')));
    let first = tokens.get(line_start.map_or(0, |start| start + 1));
    matches!(first, Some(Token::Word(word)) if word == "import" || word == "from")
}

/// Reads the arguments of `open`: a file by its name, and whether it is written.
fn opened(behind: &[Token]) -> Option<(Named, bool)> {
    let [Token::Sign('('), rest @ ..] = behind else { return None };
    let mut depth = 1_usize;
    let mut arguments: Vec<Vec<&Token>> = vec![Vec::new()];
    for token in rest {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth -= 1,
            Token::Sign(',') if depth == 1 => {
                arguments.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        arguments.last_mut()?.push(token);
    }
    let mut is_written = false;
    for argument in &arguments[1..] {
        match argument.as_slice() {
            [Token::Text(mode)] => is_written |= !mode.chars().all(|c| "rbtU".contains(c)),
            [Token::Word(name), Token::Sign('='), Token::Text(mode)] if name == "mode" => {
                is_written |= !mode.chars().all(|c| "rbtU".contains(c));
            }
            [Token::Word(name), Token::Sign('='), _] if matches!(name.as_str(), "encoding" | "newline") => {}
            [] => {}
            _ => return None,
        }
    }
    let name = match arguments.first()?.as_slice() {
        [Token::Text(name)] if !name.contains('\\') => Named::File(name.clone()),
        _ => Named::Unknown,
    };
    Some((name, is_written))
}

/// Returns the texts a path is made of, `Path('a') / 'b'`, which may be read: what writes to a path is refused.
fn path_names(behind: &[Token]) -> Vec<(Named, bool)> {
    let line = behind.split(|token| matches!(token, Token::Sign('\n' | ';'))).next().unwrap_or_default();
    let is_joined = |pair: &&[Token]| matches!(pair[0], Token::Sign('(' | '/' | ','));
    let texts = line.windows(2).filter(is_joined).filter_map(|pair| match &pair[1] {
        Token::Text(name) if !name.contains('\\') => Some((Named::File(name.clone()), false)),
        _ => None,
    });
    texts.collect()
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

/// Takes code apart; `None` where letters could be read as others, or a comment names another encoding.
fn tokens(code: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let word_len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if c == '#' {
            let (comment, behind) = rest.split_at(rest.find('\n').unwrap_or(rest.len()));
            if comment.contains("coding") {
                return None;
            }
            rest = behind;
        } else if let Some((text, has_code, behind)) = string(rest, word_len) {
            if has_code {
                // What stands in braces is code; the rest of the text does no harm as such.
                found.extend(tokens(text)?);
                found.push(Token::Sign('f'));
            } else {
                found.push(Token::Text(text.to_owned()));
            }
            rest = behind;
        } else if word_len > 0 {
            found.push(Token::Word(rest[..word_len].to_owned()));
            rest = &rest[word_len..];
        } else if !c.is_ascii() {
            return None;
        } else {
            found.extend((c == '\n' || !c.is_whitespace()).then_some(Token::Sign(c)));
            rest = &rest[1..];
        }
    }
    Some(found)
}

/// Takes a string off the front: its text, whether code stands in it, and what follows.
fn string(rest: &str, word_len: usize) -> Option<(&str, bool, &str)> {
    let prefix = &rest[..word_len];
    let is_prefix = prefix.len() <= 2 && prefix.chars().all(|c| "rbufRBUF".contains(c));
    let quote = rest[word_len..].chars().next().filter(|c| is_prefix && matches!(c, '"' | '\''))?;
    let body = &rest[word_len..];
    let triple = quote.to_string().repeat(3);
    let end = if body.starts_with(&triple) { triple } else { quote.to_string() };
    let body = &body[end.len()..];
    let mut is_escaped = false;
    for (at, c) in body.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if body[at..].starts_with(&end) {
            let has_code = prefix.contains(['f', 'F']) && body[..at].contains('{');
            return Some((&body[..at], has_code, &body[at + end.len()..]));
        }
    }
    Some((body, true, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_code_is_told_from_what_could_run_anything() {
        for (code, expected) in [
            ("print(1)", Some("")),
            ("import json,sys; print(json.load(sys.stdin)['name'])", Some("")),
            ("import re\nprint(re.compile('a|b').sub('x', 'system'))", Some("")),
            ("import os; print(os.getcwd(), os.path.join('a', 'b'))", Some("")),
            ("import os, sys\nfor k in os.environ: print(k)", Some("")),
            ("from os.path import join; print(join('a'))", Some("")),
            ("print(f'{1 + 1:>5}')", Some("")),
            ("print('import os; os.system(1)')", Some("")),
            ("print(open('a.txt').read())", Some("r:a.txt")),
            ("open('z', 'w').write('x')", Some("w:z")),
            ("open('/etc/x', mode='a', encoding='utf-8')", Some("w:/etc/x")),
            ("import sys; open(sys.argv[1])", Some("r:?")),
            ("from pathlib import Path; print(Path('x').read_text())", Some("r:x")),
            ("from pathlib import Path; print((Path('a') / 'b').exists())", Some("r:a r:b")),
            ("import os; os.system('touch z')", None),
            ("import os as o; o.system('x')", None),
            ("from os import system as s; s('x')", None),
            ("import json; json.codecs.open('z','w')", None),
            ("import random; random._os.system('x')", None),
            ("import sys; sys.modules['os'].system('x')", None),
            ("__import__('os').system('x')", None),
            ("getattr(1, 'x')", None),
            ("eval('1')", None),
            ("import subprocess", None),
            ("import requests", None),
            ("print(f'{__import__(\"os\")}')", None),
            ("print(().__class__)", None),
            ("open('z', m)", None),
            ("import os; os.open('z', 1)", None),
            ("import os; x = os; x.remove('a')", None),
            ("from pathlib import Path; Path('z').write_text('x')", None),
            ("from pathlib import Path; Path('z').replace('/etc/x')", None),
            ("ｅval('1')", None),
            ("# -*- coding: utf-7 -*-\nprint(1)", None),
            ("import json\nif 1: import subprocess", None),
            // Names that are put together when it runs (L1 of the hostile trial).
            ("import string; string.Formatter().get_field('0.__init__', (1,), {})", None),
            ("import typing; typing.get_type_hints(f)", None),
            ("from dataclasses import make_dataclass; make_dataclass('x', ['a'])", None),
            ("(i for i in ()).gi_frame.f_builtins['ex' + 'ec']('x')", None),
            ("import functools; functools.singledispatch(f).register(g)", None),
            ("from pathlib import Path; Path('a').copy('b')", None),
            ("import string; print(string.ascii_letters)", Some("")),
            ("import collections; print(collections.Counter('abc'))", Some("")),
        ] {
            let shown = read(code).map(|files| {
                let show = |(name, is_written): &(Named, bool)| {
                    format!("{}:{}", if *is_written { "w" } else { "r" }, name.as_str())
                };
                files.iter().map(show).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(shown.as_deref(), expected, "{code}");
        }
    }
}
