//! `find` with tests only: nothing that runs, deletes or writes.

/// Tests and actions, with whether a value follows.
const EXPRESSION: &[(&str, bool)] = &[
    ("-a", false),
    ("-and", false),
    ("-empty", false),
    ("-iname", true),
    ("-ipath", true),
    ("-maxdepth", true),
    ("-mindepth", true),
    ("-mmin", true),
    ("-mtime", true),
    ("-name", true),
    ("-newer", true),
    ("-not", false),
    ("-o", false),
    ("-or", false),
    ("-path", true),
    ("-print", false),
    ("-print0", false),
    ("-size", true),
    ("-type", true),
];

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
            reads.extend((*word == "-newer").then(|| (*value).to_owned()));
        }
    }
    Some(reads)
}

fn is_path(word: &str) -> bool {
    !word.starts_with(['-', '(', ')', '!', ','])
}
