//! Where interpreters find their code: behind a flag, in their input, or in a file, which is not looked into.

use loci_core::tool::HOLE;

use super::{Document, is_vague, python, words};
use crate::value::Value;
use crate::wrappers::is_input;

pub(super) fn by_python(arguments: &[Value], document: Document<'_>) -> bool {
    match python_code(arguments) {
        PythonCode::None => false,
        PythonCode::Text(code) => is_vague(code) || python::read(&code.text).is_none(),
        PythonCode::Attached(code) => code.contains(HOLE) || python::read(code).is_none(),
        PythonCode::Input => match document {
            Document::Known(text) => python::read(text).is_none(),
            Document::Unknown => true,
        },
        PythonCode::Unknown => true,
    }
}

/// Where Python finds its code.
pub(crate) enum PythonCode<'v> {
    /// In a file or a module.
    None,
    /// In this argument.
    Text(&'v Value),
    /// Behind the letter of its flag.
    Attached(&'v str),
    /// In its input.
    Input,
    /// In a place that is not known.
    Unknown,
}

pub(crate) fn python_code(arguments: &[Value]) -> PythonCode<'_> {
    let mut rest = arguments.iter();
    while let Some(value) = rest.next() {
        let text = value.text.as_str();
        if is_input(value) {
            return PythonCode::Input;
        }
        let Some(letters) = text.strip_prefix('-') else {
            return if is_vague(value) { PythonCode::Unknown } else { PythonCode::None };
        };
        if letters.starts_with('-') {
            continue;
        }
        let Some(at) = letters.find(['c', 'm', 'W', 'X']) else { continue };
        match (&letters[at..=at], &letters[at + 1..]) {
            ("c", "") => return rest.next().map_or(PythonCode::Unknown, PythonCode::Text),
            ("c", code) => return PythonCode::Attached(code),
            ("m", "") => return by_module(rest.next().map(|it| it.text.as_str())),
            ("m", module) => return by_module(Some(module)),
            (_, "") => {
                rest.next();
            }
            _ => {}
        }
    }
    PythonCode::Input
}

/// Modules that run the code they are given.
fn by_module(module: Option<&str>) -> PythonCode<'_> {
    match module {
        None | Some("timeit" | "pdb" | "code" | "trace" | "cProfile" | "profile") => PythonCode::Unknown,
        Some(_) => PythonCode::None,
    }
}

/// Code behind a flag such as `-e`, wherever in a cluster its letter stands; all operands; and whether there was any.
fn flagged_code<'v>(
    arguments: &'v [Value],
    letters: &[char],
) -> (Vec<&'v str>, Vec<&'v Value>, Vec<&'v str>) {
    let (mut codes, mut operands, mut flags) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = arguments.iter();
    while let Some(value) = rest.next() {
        let text = value.text.as_str();
        match text.strip_prefix('-').filter(|body| !body.is_empty() && !body.starts_with('-')) {
            Some(body) => {
                // `-Mmodule` and its like have letters that are none.
                let is_named = body.starts_with(['M', 'm', 'I', 'r', 'F'])
                    && !letters.contains(&body.chars().next().unwrap_or(' '));
                match body.find(letters).filter(|_| !is_named) {
                    Some(at) if at + 1 == body.len() => {
                        flags.push(&body[..at]);
                        codes.extend(rest.next().map(|code| code.text.as_str()));
                    }
                    // `-i.bak`, `-0777`: a value of another flag.
                    _ => flags.push(body),
                }
            }
            None => operands.push(value),
        }
    }
    (codes, operands, flags)
}

pub(super) fn by_perl(arguments: &[Value], document: Document<'_>) -> bool {
    let (codes, operands, flags) = flagged_code(arguments, &['e', 'E']);
    let is_tame_flag = |flag: &&str| match flag.strip_prefix(['M', 'm']) {
        Some(module) => words::is_tame_perl_module(module),
        None => {
            flag.chars().next().is_none_or(|first| "nplaw0itcF".contains(first))
                && !flag.contains(['d', 'x', 'I', 'C', 's', '/'])
        }
    };
    if !flags.iter().all(is_tame_flag) {
        return true;
    }
    let reads_arguments = flags.iter().any(|flag| flag.contains(['n', 'p']));
    if codes.is_empty() {
        return match (operands.first(), document) {
            (Some(file), _) if !is_input(file) => is_vague(file),
            (_, Document::Known(code)) => !words::is_tame_perl(code, false),
            (_, Document::Unknown) => true,
        };
    }
    // Perl runs what a file's name says behind or before a pipe.
    let opens = |value: &&Value| value.text.contains(['|', '>', '<']) || value.text.starts_with('+');
    codes.iter().any(|code| code.contains(HOLE) || !words::is_tame_perl(code, reads_arguments))
        || operands.iter().any(opens)
}

pub(super) fn by_ruby(arguments: &[Value], document: Document<'_>) -> bool {
    let (codes, operands, flags) = flagged_code(arguments, &['e']);
    let is_tame_flag = |flag: &&str| match flag.strip_prefix('r') {
        Some(library) => words::is_tame_ruby_library(library),
        None => flag.chars().all(|c| "nplaw0iF".contains(c)),
    };
    if !flags.iter().all(is_tame_flag) {
        return true;
    }
    if codes.is_empty() {
        return match (operands.first(), document) {
            (Some(file), _) if !is_input(file) => is_vague(file),
            (_, Document::Known(code)) => !words::is_tame_ruby(code),
            (_, Document::Unknown) => true,
        };
    }
    codes.iter().any(|code| code.contains(HOLE) || !words::is_tame_ruby(code))
}

pub(super) fn by_node(arguments: &[Value], document: Document<'_>) -> bool {
    let mut rest = arguments.iter();
    while let Some(value) = rest.next() {
        match value.text.as_str() {
            "-e" | "--eval" | "-p" | "--print" | "-pe" => {
                let code = rest.next();
                return code.is_none_or(|code| is_vague(code) || !words::is_tame_javascript(&code.text));
            }
            "--test" | "--check" | "-c" => return false,
            "--no-warnings" => {}
            _ if is_input(value) => break,
            text if text.starts_with('-') => return true,
            _ => return is_vague(value),
        }
    }
    match document {
        Document::Known(code) => !words::is_tame_javascript(code),
        Document::Unknown => true,
    }
}
