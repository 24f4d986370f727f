//! `find` with tests only: nothing that runs, deletes or writes.

/// Tests and actions, with whether a value follows.
#[rustfmt::skip]
const EXPRESSION: &[(&str, bool)] = &[
    ("-a", false), ("-and", false), ("-o", false), ("-or", false), ("-not", false), ("!", false), ("(", false), (")", false),
    ("-empty", false), ("-true", false), ("-false", false), ("-depth", false), ("-xdev", false), ("-mount", false),
    ("-prune", false), ("-quit", false), ("-print", false), ("-print0", false), ("-ls", false), ("-printf", true),
    ("-readable", false), ("-writable", false), ("-executable", false), ("-nouser", false), ("-nogroup", false),
    ("-name", true), ("-iname", true), ("-path", true), ("-ipath", true), ("-wholename", true), ("-regex", true),
    ("-iregex", true), ("-regextype", true), ("-lname", true), ("-ilname", true), ("-maxdepth", true), ("-mindepth", true),
    ("-mmin", true), ("-mtime", true), ("-amin", true), ("-atime", true), ("-cmin", true), ("-ctime", true),
    ("-newer", true), ("-newermt", true), ("-size", true), ("-type", true), ("-perm", true), ("-user", true),
    ("-group", true), ("-uid", true), ("-gid", true), ("-links", true), ("-inum", true), ("-samefile", true),
];

/// Returns true when a `find` runs, deletes and writes nothing, as far as its words tell.
pub(crate) fn is_tame(values: &[crate::value::Value]) -> bool {
    let words: Option<Vec<&str>> = values.iter().skip(1).map(|value| value.known()).collect();
    words.is_some_and(|words| reads_of(&words).is_some())
}

/// Returns true for a test that takes the next word as its value, whatever that is.
pub(crate) fn takes_value(word: &str) -> bool {
    EXPRESSION.iter().any(|(name, has_value)| *name == word && *has_value)
}

/// Returns the paths a `find` would read when it only tests and prints.
pub(crate) fn reads_of(arguments: &[&str]) -> Option<Vec<String>> {
    let n_paths = arguments.iter().take_while(|word| is_path(word)).count();
    let (paths, expression) = arguments.split_at(n_paths);
    let mut reads: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    if reads.is_empty() {
        reads.push(".".to_owned());
    }
    let mut rest = expression.iter();
    while let Some(word) = rest.next() {
        let (_, has_value) = EXPRESSION.iter().find(|(name, _)| name == word)?;
        if *has_value {
            let value = rest.next()?;
            reads.extend(matches!(*word, "-newer" | "-samefile").then(|| (*value).to_owned()));
        }
    }
    Some(reads)
}

fn is_path(word: &str) -> bool {
    !word.starts_with(['-', '(', ')', '!', ','])
}
