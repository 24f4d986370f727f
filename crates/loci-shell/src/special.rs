//! Read-only commands whose arguments are a language of their own.

/// Returns the paths such a command would read when it is known to change nothing.
pub(crate) fn reads_of(program: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let nothing = Some(Vec::new());
    match (program, arguments) {
        ("echo" | "true" | "false", _) => nothing,
        // `-v` assigns, and a subscript in its value would run.
        ("printf", [format, ..]) if !format.starts_with('-') && only_prints(format) => nothing,
        ("test", _) => test(arguments),
        ("[", [inner @ .., "]"]) => test(inner),
        ("sed", _) => sed(arguments),
        ("jq", _) => jq(arguments),
        ("xargs", _) => xargs(arguments),
        ("ps", _) => ps(arguments),
        ("ss", _) => ss(arguments),
        ("history", []) => nothing,
        ("man", pages) if !pages.is_empty() && pages.iter().all(|page| is_word(page)) => nothing,
        ("tput", ["cols" | "lines" | "colors"]) => nothing,
        ("node", ["--version" | "-v"]) | ("python" | "python3", ["--version" | "-V"]) => nothing,
        ("docker", ["ps" | "images", flags @ ..]) if flags.iter().all(|flag| is_docker_flag(flag)) => nothing,
        _ => None,
    }
}

/// `%n` sets the variable its argument names, and `PATH` is a variable.
fn only_prints(format: &str) -> bool {
    format.replace("%%", "").split('%').skip(1).all(|rest| {
        let kind = rest.trim_start_matches(|c: char| c.is_ascii_digit() || " #+-.*'".contains(c));
        kind.is_empty() || kind.starts_with(|c: char| "diouxXfFeEgGaAcsbqQ".contains(c))
    })
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.:+-".contains(c))
}

fn is_docker_flag(flag: &str) -> bool {
    matches!(
        flag,
        "-a" | "--all"
            | "-q"
            | "--quiet"
            | "-l"
            | "--latest"
            | "-s"
            | "--size"
            | "--no-trunc"
            | "-aq"
            | "-qa"
    )
}

/// File tests look at their operand; `-v` and `-R` evaluate theirs and are left out.
pub(crate) fn test(arguments: &[&str]) -> Option<Vec<String>> {
    const FILE_TESTS: &[&str] = &[
        "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-p", "-S", "-b", "-c", "-g", "-k", "-u", "-O",
        "-G", "-N",
    ];
    const PAIRS: &[&str] = &["-nt", "-ot", "-ef"];
    if arguments.iter().any(|word| matches!(*word, "-v" | "-R")) {
        return None;
    }
    let mut reads = Vec::new();
    for pair in arguments.windows(2) {
        if FILE_TESTS.contains(&pair[0]) || PAIRS.contains(&pair[0]) {
            reads.push(pair[1].to_owned());
        }
        if PAIRS.contains(&pair[1]) {
            reads.push(pair[0].to_owned());
        }
    }
    Some(reads)
}

/// `sed` with scripts that print, delete or substitute, and files.
fn sed(arguments: &[&str]) -> Option<Vec<String>> {
    let mut scripts = Vec::new();
    let mut files = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match *word {
            "-n" | "-E" | "-r" | "--quiet" | "--silent" | "--regexp-extended" | "-z" | "-s" | "-u" => {}
            "-e" | "--expression" => scripts.push(*rest.next()?),
            word if word.starts_with('-') => return None,
            word => files.push(word),
        }
    }
    if scripts.is_empty() {
        scripts.push(files.first()?);
        files.remove(0);
    }
    let reads = files.into_iter().map(str::to_owned).collect();
    scripts.iter().all(|script| is_plain_sed_script(script)).then_some(reads)
}

/// One command that prints, deletes or substitutes, with a simple address: nothing that writes or runs.
pub(crate) fn is_plain_sed_script(script: &str) -> bool {
    let Some(body) = behind_addresses(script.trim()) else { return false };
    match body.strip_prefix('s') {
        Some(rest) => is_plain_substitution(rest),
        None => matches!(body, "p" | "d" | "q" | "="),
    }
}

/// Takes line numbers, `$` and `/patterns/` off; `None` when a pattern does not end.
fn behind_addresses(script: &str) -> Option<&str> {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | ' '));
        let Some(pattern) = rest.strip_prefix('/') else { return Some(rest) };
        let mut is_escaped = false;
        let end = pattern.find(|c: char| {
            let ends = c == '/' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends || c == '\n'
        })?;
        rest = pattern[end..].strip_prefix('/')?;
    }
}

fn is_plain_substitution(rest: &str) -> bool {
    let Some(delimiter) = rest.chars().next().filter(|c| "/|,#:@".contains(*c)) else { return false };
    let (mut seen, mut escaped, mut end) = (0, false, None);
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '\n' => return false,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == delimiter => {
                seen += 1;
                if seen == 2 {
                    end = Some(at + c.len_utf8());
                    break;
                }
            }
            _ => {}
        }
    }
    end.is_some_and(|end| rest[end..].chars().all(|c| "gpIi0123456789".contains(c)))
}

/// `xargs` that prints what it reads.
fn xargs(arguments: &[&str]) -> Option<Vec<String>> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_own =
        |word: &&&str| matches!(**word, "-0" | "-r" | "-t") || word.strip_prefix("-n").is_some_and(is_number);
    let own = arguments.iter().take_while(is_own).count();
    match &arguments[own..] {
        [] | ["echo", ..] => Some(Vec::new()),
        ["-n", number, "echo", ..] if is_number(number) => Some(Vec::new()),
        _ => None,
    }
}

/// `jq` with a filter that stays within its input, and files.
fn jq(arguments: &[&str]) -> Option<Vec<String>> {
    let mut operands = Vec::new();
    for word in arguments {
        match word.strip_prefix('-') {
            Some(
                "-raw-output" | "-compact-output" | "-slurp" | "-null-input" | "-exit-status" | "-sort-keys"
                | "-tab",
            ) => {}
            Some(letters) if !letters.is_empty() && letters.chars().all(|c| "rcsneSCMja".contains(c)) => {}
            Some(_) => return None,
            None => operands.push(*word),
        }
    }
    let (filter, files) = operands.split_first()?;
    let words = filter.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let reaches_out = words.into_iter().any(|word| {
        matches!(
            word,
            "env"
                | "ENV"
                | "import"
                | "include"
                | "input_filename"
                | "debug"
                | "stderr"
                | "modulemeta"
                | "getpath"
                | "halt_error"
                | "input_line_number"
        )
    });
    (!reaches_out).then(|| files.iter().map(|file| (*file).to_owned()).collect())
}

/// `ss` without filters: they may name a host, which would be looked up.
fn ss(arguments: &[&str]) -> Option<Vec<String>> {
    const LONG: &[&str] = &[
        "--tcp",
        "--udp",
        "--listening",
        "--numeric",
        "--processes",
        "--all",
        "--summary",
        "--unix",
        "--no-header",
    ];
    let is_known = |word: &&str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        LONG.contains(word)
            || (!letters.is_empty() && letters.chars().all(|c| "tulnpasx46emoiHO".contains(c)))
    };
    arguments.iter().all(is_known).then(Vec::new)
}

/// `ps` without the letter that shows environments.
fn ps(arguments: &[&str]) -> Option<Vec<String>> {
    let is_known = |word: &&str| {
        let letters = word.strip_prefix('-').unwrap_or(word);
        let is_unix = word.starts_with('-') && letters.chars().all(|c| "eAafljwHMT".contains(c));
        let is_bsd =
            !word.starts_with('-') && !word.is_empty() && letters.chars().all(|c| "auxfwjls".contains(c));
        is_unix || is_bsd
    };
    arguments.iter().all(is_known).then(Vec::new)
}
