//! Commands in commands: programs that run what they are given, and how to find it.

mod programs;

use loci_core::tool::HOLE;

use crate::value::Value;
use programs::{
    CODE_TAKERS, CODE_VARIABLES, COMMANDED, COMPILERS, FLAG_RUNNERS, INTERPRETERS, KNOWN, LOOKUPS, LOOSE,
    SHELLS, TRANSPARENT, Wrapper,
};

/// How many letters of a cluster of flags are looked behind.
const MOST_FLAGS: usize = 4;

/// What a command runs.
#[derive(Debug)]
pub(crate) enum Inner {
    /// These words, as a command.
    Words(Vec<Value>),
    /// Perhaps these words, as a command.
    Guess(Vec<Value>),
    /// This string, as a line of shell.
    Code(Value),
    /// The script of this name, with its arguments.
    Script(String),
    /// This string, in another language.
    Foreign(String),
    /// What it gets as its input.
    Input,
    /// What it gets as its input, in another language.
    ForeignInput,
    /// What it gets as its input, which is data as a rule but may hold commands.
    ForeignData,
    /// The words behind any of its own.
    Suffixes,
    /// Only the run will tell.
    Anything,
    /// It takes orders that only the run will tell, and one of them could be to run something.
    Perhaps,
}

/// Returns the words a rule for a command sees: fully understood wrappers taken off.
pub(crate) fn stripped(values: &[Value]) -> &[Value] {
    let mut rest = values;
    while let Some(first) = rest.first().filter(|first| first.is_literal) {
        let Some(wrapper) = TRANSPARENT.iter().find(|wrapper| wrapper.name == first.text) else { break };
        match behind(wrapper, rest) {
            Some(inner) if !inner.is_empty() => rest = inner,
            _ => break,
        }
    }
    rest
}

/// Returns true for a wrapper that rules for the inner command see through as a rule, and not with these arguments.
pub(crate) fn hides_a_command(values: &[Value]) -> bool {
    let Some((first, arguments)) = values.split_first() else { return false };
    let is_lookup = first.text == "command" && only_looks_up(arguments);
    !is_lookup && !arguments.is_empty() && TRANSPARENT.iter().any(|wrapper| wrapper.name == first.text)
}

/// Counts the words before the command that a wrapper runs, assignments included; `None` when they are not all known.
pub(crate) fn n_own_words(values: &[Value]) -> Option<usize> {
    let base = values.first()?.text.rsplit('/').next()?;
    let name = base.strip_prefix('g').filter(|name| matches!(*name, "env" | "xargs")).unwrap_or(base);
    let wrapper = KNOWN.iter().find(|wrapper| wrapper.name == name)?;
    let inner = behind(wrapper, values)?;
    let is_own =
        |value: &&Value| takes_assignments(name) && value.text.contains('=') && value.known().is_some();
    let n_assigned = inner.iter().take_while(is_own).count();
    Some(values.len() - inner.len() + n_assigned)
}

/// Returns a program's name without its path and its version: `/usr/bin/python3.11` is `python`.
pub(crate) fn family(program: &str) -> &str {
    let base = program.rsplit('/').next().unwrap_or_default();
    let bare = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if bare.is_empty() { base } else { bare }
}

/// Returns everything a command runs.
pub(crate) fn inner(values: &[Value]) -> Vec<Inner> {
    let Some((first, arguments)) = values.split_first() else { return Vec::new() };
    if first.text.contains(HOLE) {
        return vec![Inner::Suffixes];
    }
    let base = first.text.rsplit('/').next().unwrap_or_default();
    let family = family(base);
    let known: Vec<&Wrapper> = KNOWN.iter().chain(TRANSPARENT).filter(|it| it.name == base).collect();
    if !known.is_empty() {
        if base == "command" && only_looks_up(arguments) {
            return Vec::new();
        }
        let behind = known.iter().find_map(|wrapper| behind(wrapper, values));
        let found = behind.map(|inner| wrapped(base, arguments, inner)).unwrap_or_default();
        let is_vague = arguments.iter().any(|value| value.text.starts_with(HOLE));
        let mut found = match found.is_empty() {
            // Its own arguments end where only the run will tell.
            true if is_vague => loosely(arguments).into_iter().chain([Inner::Anything]).collect(),
            true => loosely(arguments),
            false => found,
        };
        found.extend(takes_assignments(base).then(|| assigned(arguments)).into_iter().flatten());
        found.extend((base == "env").then(|| split_string(arguments)).flatten());
        return found;
    }
    // `m4` has no version in its name.
    let is_named = |name: &&str| *name == base || *name == family;
    match base {
        _ if SHELLS.contains(&family) => shell(arguments),
        "eval" => vec![Inner::Code(joined(arguments))],
        "trap" => arguments.iter().map(|value| Inner::Code(value.clone())).take(1).collect(),
        "source" | "." => sourced(arguments),
        "export" | "declare" | "typeset" | "readonly" | "local" => assigned(arguments),
        "at" | "batch" | "crontab" => vec![Inner::Suffixes, Inner::Input],
        "mapfile" | "readarray" => spaced(arguments),
        // Without a command of its own it runs what it reads.
        "parallel" if arguments.iter().all(|value| value.text.starts_with('-')) => vec![Inner::Anything],
        "find" | "gfind" => by_find(arguments),
        "git" => by_git(values),
        _ if INTERPRETERS.contains(&family) => interpreter(arguments),
        _ if CODE_TAKERS.iter().any(is_named) => commanded(base, arguments),
        _ if COMPILERS.contains(&family) => listed(arguments),
        _ if looks_up(base, arguments) => Vec::new(),
        _ if LOOSE.contains(&base) || is_loader(base) => commanded(base, arguments),
        _ if FLAG_RUNNERS.contains(&base) => spaced(arguments),
        _ => Vec::new(),
    }
}

/// Returns true where a package manager only looks something up: what is behind its verb is a name, not a command.
fn looks_up(base: &str, arguments: &[Value]) -> bool {
    let verb = arguments.first().and_then(Value::known);
    let verbs = LOOKUPS.iter().find(|(name, _)| *name == base).map(|(_, verbs)| *verbs);
    verbs.zip(verb).is_some_and(|(verbs, verb)| verbs.contains(&verb))
}

/// Returns where a wrapper goes before it runs its command.
pub(crate) fn directory(values: &[Value]) -> Option<Value> {
    let (first, arguments) = values.split_first()?;
    let (short, long) = match first.text.rsplit('/').next()? {
        "env" => ("-C", "--chdir"),
        "sudo" => ("-D", "--chdir"),
        "git" | "make" | "gmake" | "ninja" => ("-C", "--directory"),
        _ => return None,
    };
    let n_own = match values.first()?.text.ends_with("git") {
        true => crate::git::sensitive_words(values),
        false => arguments.len(),
    };
    let mut own = arguments.iter().take(n_own).enumerate();
    own.find_map(|(idx, value)| {
        let (flag, text) = value.text.split_once('=').unwrap_or((&value.text, ""));
        if flag == long && !text.is_empty() {
            return Some(Value { text: text.to_owned(), pattern: None, ..value.clone() });
        }
        if flag == short || flag == long {
            return Some(arguments.get(idx + 1).cloned().unwrap_or_else(Value::hole));
        }
        let attached = value.text.strip_prefix(short)?;
        Some(Value { text: attached.to_owned(), pattern: None, ..value.clone() })
    })
}

/// Returns true for a variable whose value may be run.
pub(crate) fn is_code_variable(name: &str) -> bool {
    const ENDINGS: &[&str] = &["PAGER", "EDITOR", "_COMMAND", "ASKPASS"];
    CODE_VARIABLES.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || name.starts_with("GIT_CONFIG_")
}

/// The dynamic loader runs the program it is given.
fn is_loader(base: &str) -> bool {
    base == "ld.so" || base.starts_with("ld-linux") || base.starts_with("ld-musl")
}

/// Values that are assigned by words, as `export` and `env` do: programs that come later may run them.
fn assigned(arguments: &[Value]) -> Vec<Inner> {
    let pairs = arguments.iter().filter_map(|value| value.text.split_once('='));
    let unsafe_ones = pairs.filter(|(name, _)| !crate::cover::is_safe_variable(name));
    let run = |(name, value): (&str, &str)| match value.contains(HOLE) {
        true => is_code_variable(name).then_some(Inner::Anything),
        false => Some(Inner::Foreign(value.trim_start_matches(['!', '|']).to_owned())),
    };
    unsafe_ones.filter_map(run).collect()
}

/// `env -S` takes its string apart, and puts what follows behind it.
fn split_string(arguments: &[Value]) -> Option<Inner> {
    let (idx, attached) = arguments.iter().enumerate().find_map(|(idx, value)| {
        let text = value.text.as_str();
        let is_long = text.starts_with("--s");
        let attached = if is_long { text.split_once('=') } else { text.split_once('S') };
        let is_flag = is_long || (text.starts_with('-') && !text.starts_with("--") && attached.is_some());
        is_flag.then(|| (idx, attached.map_or("", |(_, code)| code)))
    })?;
    let rest = joined(arguments.get(idx + 1..)?);
    Some(Inner::Code(Value::literal(format!("{attached} {}", rest.text).trim())))
}

/// Code or other commands among the arguments; and from the input, where there is no program but that.
fn commanded(base: &str, arguments: &[Value]) -> Vec<Inner> {
    let is_named = |name: &&str| *name == base || *name == family(base);
    let takes_code = CODE_TAKERS.iter().any(is_named);
    let mut found = if takes_code { code_taker(arguments) } else { loosely(arguments) };
    let from_input = |pair: &[Value]| pair[0].text.ends_with('f') && is_input(&pair[1]);
    let is_attached = |value: &Value| value.text == "-f-" || value.text == "--file=-";
    if arguments.windows(2).any(from_input) || arguments.iter().any(is_attached) {
        found.push(Inner::ForeignInput);
    } else if COMMANDED.iter().any(is_named) {
        found.push(Inner::ForeignData);
    }
    found
}

/// `-wrapper program,argument` and its like.
fn listed(arguments: &[Value]) -> Vec<Inner> {
    let lists = arguments.iter().filter(|value| value.text.contains([',', '=']));
    let lists = lists.map(|value| Inner::Foreign(value.text.replace([',', '='], " , ")));
    lists.chain(loosely(arguments)).collect()
}

fn wrapped(base: &str, arguments: &[Value], inner: &[Value]) -> Vec<Inner> {
    let mut words = inner.to_vec();
    if takes_assignments(base) {
        let is_own =
            |word: &&Value| word.text == "-" || (word.text.contains('=') && !word.text.starts_with('='));
        let n = words.iter().take_while(is_own).count();
        words.drain(..n);
    }
    if base == "xargs" {
        fill_in(arguments, &mut words);
        words.push(Value::hole());
    }
    // A flag behind the wrapper's own arguments is one of its own after all: `flock file -c code`.
    let is_command = words.first().is_some_and(|first| !first.text.starts_with('-'));
    if is_command { vec![Inner::Words(words)] } else { Vec::new() }
}

/// Wrappers that set variables for what they run.
fn takes_assignments(base: &str) -> bool {
    matches!(base, "env" | "sudo" | "doas")
}

/// `xargs -I{}` puts what it reads wherever the mark stands.
fn fill_in(arguments: &[Value], words: &mut [Value]) {
    let mark = arguments.iter().enumerate().find_map(|(idx, value)| {
        let text = value.text.as_str();
        let attached = ["--replace=", "-I", "-i"].iter().find_map(|flag| text.strip_prefix(flag));
        match (attached, text) {
            (_, "-I") => arguments.get(idx + 1).map(|next| next.text.clone()),
            (_, "-i" | "--replace") => Some("{}".to_owned()),
            (Some(mark), _) => Some(mark.to_owned()),
            (None, _) => None,
        }
    });
    let Some(mark) = mark.filter(|mark| !mark.is_empty()) else { return };
    for word in words.iter_mut().filter(|word| word.text.contains(&mark)) {
        word.text = word.text.replace(&mark, &HOLE.to_string());
        word.pattern = None;
    }
}

/// `command -v` runs nothing.
fn only_looks_up(arguments: &[Value]) -> bool {
    arguments.first().is_some_and(|value| {
        let letters = value.text.strip_prefix('-').unwrap_or_default();
        letters.contains(['v', 'V']) && letters.chars().all(|c| "vVp".contains(c))
    })
}

/// Any of the words may be the command, or hold it.
fn loosely(arguments: &[Value]) -> Vec<Inner> {
    std::iter::once(Inner::Suffixes).chain(spaced(arguments)).collect()
}

/// Returns what follows a wrapper's own arguments; `None` when one of them is not known.
fn behind<'v>(wrapper: &Wrapper, values: &'v [Value]) -> Option<&'v [Value]> {
    let mut rest = values.get(1..)?;
    while let Some((flag, after)) = rest.split_first() {
        let text = flag.known()?;
        if text == "--" {
            rest = after;
            break;
        }
        let Some(body) = text.strip_prefix('-').filter(|body| !body.is_empty()) else { break };
        if let Some(long) = body.strip_prefix('-') {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let is_bare = value.is_none() && wrapper.long.contains(&name);
            let is_valued = wrapper.long.iter().any(|known| known.strip_suffix('=') == Some(name));
            rest = match (is_bare, is_valued, value) {
                (true, _, _) | (_, true, Some(_)) => after,
                (_, true, None) => after.get(1..)?,
                _ => return None,
            };
            continue;
        }
        let is_number = wrapper.name == "nice" && body.bytes().all(|byte| byte.is_ascii_digit());
        let takes_next = if is_number { false } else { short_flags(wrapper, body)? };
        rest = if takes_next { after.get(1..)? } else { after };
    }
    rest.get(wrapper.n_operands..)
}

/// Returns whether a cluster of short flags takes the next word; `None` when one is not known.
fn short_flags(wrapper: &Wrapper, body: &str) -> Option<bool> {
    for (at, letter) in body.char_indices() {
        if wrapper.valued.contains(letter) {
            return Some(at + letter.len_utf8() == body.len());
        }
        if !wrapper.bare.contains(letter) {
            return None;
        }
    }
    Some(false)
}

fn shell(arguments: &[Value]) -> Vec<Inner> {
    let is_flag = |value: &Value| value.text.starts_with(['-', '+']);
    let is_code = |value: &Value| {
        value.text.starts_with('-') && !value.text.starts_with("--") && value.text.contains('c')
    };
    let own = arguments.iter().position(|value| !is_flag(value)).unwrap_or(arguments.len());
    if arguments.iter().take(own + 1).any(|value| value.text.starts_with(HOLE)) {
        return vec![Inner::Anything];
    }
    if let Some(at) = arguments.iter().position(is_code) {
        // `-o` and `-O` take a word of their own, so the code may be any that follows.
        let takes_more = arguments.iter().any(|value| is_flag(value) && value.text.contains(['o', 'O']));
        let codes = arguments[at + 1..].iter().filter(|value| !is_flag(value));
        let n = if takes_more { usize::MAX } else { 1 };
        let found: Vec<Inner> = codes.take(n).cloned().map(Inner::Code).collect();
        return if found.is_empty() { vec![Inner::Anything] } else { found };
    }
    let operand = arguments.iter().find(|value| !is_flag(value));
    let reads_input = arguments.iter().any(|value| value.text == "-s") || operand.is_none_or(is_input);
    let only_tells = matches!(arguments, [only] if only.text == "--version" || only.text == "--help");
    match arguments.iter().position(|value| !is_flag(value)) {
        _ if reads_input && !only_tells => vec![Inner::Input],
        Some(at) if !reads_input => script(&arguments[at..]),
        Some(_) | None => Vec::new(),
    }
}

/// A script that a shell is given is run as it would be by its own name.
fn script(words: &[Value]) -> Vec<Inner> {
    let text = joined(words).text;
    let dotted = words.first().filter(|first| !first.text.contains('/')).map(|_| format!("./{text}"));
    std::iter::once(text).chain(dotted).map(Inner::Script).collect()
}

/// Other names of what a program gets as its input.
pub(crate) fn is_input(value: &Value) -> bool {
    matches!(value.text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

fn sourced(arguments: &[Value]) -> Vec<Inner> {
    match arguments.first() {
        Some(file) if is_input(file) => vec![Inner::Input],
        Some(file) if file.text.contains(HOLE) => vec![Inner::Anything],
        Some(_) => script(arguments),
        None => Vec::new(),
    }
}

/// Code in another language: what could be code is looked at, and what only the run will tell could be any.
fn interpreter(arguments: &[Value]) -> Vec<Inner> {
    let mut found = spaced(arguments);
    found.extend(has_vague_code(arguments).then_some(Inner::Anything));
    let is_flag = |value: &Value| value.text.starts_with('-') && value.text != "-";
    let takes_code =
        |value: &Value| is_flag(value) && value.text.contains(['c', 'e', 'r', 'm', 'v', 'V', 'h', 'p']);
    let operand = arguments.iter().find(|value| !is_flag(value));
    if operand.is_none_or(is_input) && !arguments.iter().any(takes_code) {
        found.push(Inner::ForeignInput);
    }
    found
}

fn code_taker(arguments: &[Value]) -> Vec<Inner> {
    let mut found = spaced(arguments);
    found.extend(has_vague_code(arguments).then_some(Inner::Perhaps));
    found
}

/// Returns true when code among the first arguments is only known when it runs.
fn has_vague_code(arguments: &[Value]) -> bool {
    let n_leading = arguments.iter().take_while(|value| value.text.starts_with('-')).count() + 1;
    arguments.iter().take(n_leading).any(|value| value.text.contains(HOLE) && value.pattern.is_none())
}

fn joined(arguments: &[Value]) -> Value {
    let text: Vec<&str> = arguments.iter().map(|value| value.text.as_str()).collect();
    Value::literal(&text.join(" "))
}

/// Arguments that could be code, also where they are attached to a flag.
fn spaced(arguments: &[Value]) -> Vec<Inner> {
    let is_code = |value: &&Value| {
        value.text.contains([' ', '(', ';', '\'', '"', '!'])
            || (value.text.contains('=') && value.text.starts_with('-'))
    };
    let codes = arguments.iter().filter(is_code);
    codes
        .flat_map(|value| std::iter::once(value.text.as_str()).chain(attached(&value.text)))
        .map(|it| Inner::Foreign(it.to_owned()))
        .collect()
}

/// Returns what may be attached to a cluster of short flags: what stands behind each of the first few letters.
pub(crate) fn attached(text: &str) -> impl Iterator<Item = &str> {
    let letters = text.strip_prefix('-').unwrap_or_default();
    let n_flags = letters.chars().take(MOST_FLAGS).take_while(|letter| letter.is_ascii_alphabetic()).count();
    (1..=n_flags).map(move |n| &letters[n..]).filter(|rest| !rest.is_empty())
}

fn by_find(arguments: &[Value]) -> Vec<Inner> {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some(at) =
        rest.iter().position(|value| matches!(value.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir"))
    {
        let command = &rest[at + 1..];
        let end = command
            .iter()
            .position(|value| matches!(value.text.as_str(), ";" | "+"))
            .unwrap_or(command.len());
        let fill = |value: &Value| {
            if value.text.contains("{}") {
                Value { text: value.text.replace("{}", &HOLE.to_string()), ..value.clone() }
            } else {
                value.clone()
            }
        };
        found.push(Inner::Words(command[..end].iter().map(fill).collect()));
        rest = &command[end..];
    }
    // What only the run will tell may be `-exec` itself, less so behind a test that takes a value.
    let is_vague = |value: &Value| value.text.contains(HOLE) && value.pattern.is_none();
    for (idx, _) in arguments.iter().enumerate().filter(|(_, value)| is_vague(value)) {
        let before = idx.checked_sub(1).and_then(|before| arguments.get(before));
        let is_value = before.is_some_and(|before| crate::find::takes_value(&before.text));
        found.push(if is_value { Inner::Perhaps } else { Inner::Anything });
    }
    found
}

/// Takes global options off, and looks into configuration given on the line.
fn by_git(values: &[Value]) -> Vec<Inner> {
    /// Subcommands that run what they are given.
    #[rustfmt::skip]
    const RUNNERS: &[&str] = &[
        "bisect", "submodule", "rebase", "filter-branch", "clone", "fetch", "pull", "grep", "ls-remote", "archive", "difftool",
        "mergetool", "send-email", "send-pack", "fetch-pack", "remote", "config", "for-each-repo", "instaweb", "credential",
    ];
    let n = crate::git::sensitive_words(values);
    let is_vague = values.iter().take(n + 2).any(|value| value.text.contains(HOLE));
    let aliases = values.iter().skip(1).filter(|value| value.text.starts_with('!'));
    let mut found: Vec<Inner> = aliases.map(|value| Inner::Foreign(value.text[1..].to_owned())).collect();
    let is_unnamed = values.get(n + 1).is_some_and(|subcommand| subcommand.text.starts_with(HOLE));
    found.extend(is_unnamed.then_some(Inner::Anything));
    found.extend(is_vague.then_some(Inner::Perhaps));
    let runs_arguments = |value: &Value| RUNNERS.contains(&value.text.as_str());
    if values.get(n + 1).is_some_and(runs_arguments) {
        found.extend(spaced(&values[n + 1..]));
        // `ext::` puts a percent sign in front of blanks.
        let escaped = values.iter().filter(|value| value.text.contains("% "));
        found.extend(escaped.map(|value| Inner::Foreign(value.text.replace('%', ""))));
        let aliases = values.windows(2).filter(|pair| pair[0].text.starts_with("alias."));
        found.extend(aliases.map(|pair| Inner::Foreign(format!("git {}", pair[1].text))));
        let suffixes = (n + 2..values.len()).map(|at| Inner::Guess(values[at..].to_vec()));
        found.extend(suffixes.take(8));
    }
    if n == 0 {
        return found;
    }
    let mut words = vec![values[0].clone()];
    words.extend_from_slice(values.get(n + 1..).unwrap_or_default());
    let settings = values[1..].iter().take(n).filter_map(|value| value.text.split_once('='));
    for (name, code) in settings {
        found.push(Inner::Foreign(code.trim_start_matches('!').to_owned()));
        found.extend(name.starts_with("alias.").then(|| Inner::Foreign(format!("git {code}"))));
    }
    found.push(Inner::Words(words));
    found
}
