//! The words of `loci mcp add` in the order that people write them in: options may stand behind the name and the address,
//! and one `--env` or `--header` may have several values. What follows `--` is the server's own.

use std::ffi::OsString;

/// Options that take a value, by both of their names, and whether they take several.
const WITH_VALUE: [(&str, &str, bool); 6] = [
    ("--transport", "-t", false),
    ("--scope", "-s", false),
    ("--env", "-e", true),
    ("--header", "-H", true),
    ("--client-id", "--client-id", false),
    ("--callback-port", "--callback-port", false),
];
/// Options that take none.
const ALONE: [&str; 3] = ["--client-secret", "--help", "-h"];

/// Returns the words of a command line with those of `mcp add` put in order; any other line is left alone.
pub(crate) fn in_order(words: Vec<OsString>) -> Vec<OsString> {
    let is_add = words.get(1).is_some_and(|it| it == "mcp") && words.get(2).is_some_and(|it| it == "add");
    let Some((command, rest)) = words.split_at_checked(3).filter(|_| is_add) else { return words };
    let Some(rest) = rest.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>() else {
        return words;
    };
    match sorted(&rest) {
        Some(sorted) => command.iter().cloned().chain(sorted.into_iter().map(OsString::from)).collect(),
        None => words,
    }
}

/// Puts options first; nothing where a command stands without `--`, since its options are not ours.
fn sorted<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    let end = words.iter().position(|word| *word == "--");
    let (ours, servers) = words.split_at(end.unwrap_or(words.len()));
    let (mut options, mut names): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(word) = ours.get(at).copied() {
        at += 1;
        let is_it = |(long, short, _): &&(&str, &str, bool)| word == *long || word == *short;
        match WITH_VALUE.iter().find(is_it) {
            Some((long, _, takes_more)) => {
                options.extend([word, ours.get(at).copied()?]);
                at += 1;
                while let Some(more) = ours.get(at).copied().filter(|it| *takes_more && is_value(long, it)) {
                    options.extend([word, more]);
                    at += 1;
                }
            }
            None if ALONE.contains(&word) || (word.starts_with("--") && word.contains('=')) => {
                options.push(word);
            }
            // Whose option that is cannot be told.
            None if word.starts_with('-') => return None,
            None => names.push(word),
        }
    }
    let is_sure = end.is_some() || names.get(1).is_some_and(|word| word.contains("://"));
    is_sure.then(|| options.into_iter().chain(names).chain(servers.iter().copied()).collect())
}

/// Tells whether a word is one more value of an option, and no name or address.
fn is_value(option: &str, word: &str) -> bool {
    let sign = if option == "--env" { '=' } else { ':' };
    let is_word = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    !word.contains("://") && word.split_once(sign).is_some_and(|(name, _)| is_word(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_first_wherever_they_were_written() {
        for (line, expected) in [
            (
                "mcp add --transport http a https://x/mcp --header A:b",
                "mcp add --transport http --header A:b a https://x/mcp",
            ),
            ("mcp add a https://x --transport http -s user", "mcp add --transport http -s user a https://x"),
            (
                "mcp add --env A=1 B=2 --transport stdio a -- npx --env C=3",
                "mcp add --env A=1 --env B=2 --transport stdio a -- npx --env C=3",
            ),
            ("mcp add a -e A=1 -- npx -y", "mcp add -e A=1 a -- npx -y"),
            ("mcp add -e A=1 a -- npx", "mcp add -e A=1 a -- npx"),
            ("mcp add -H A:b C:d a https://x:1/y", "mcp add -H A:b -H C:d a https://x:1/y"),
            // A command without `--` keeps its own.
            ("mcp add a npx -y thing", "mcp add a npx -y thing"),
            ("mcp add a npx --scope user", "mcp add a npx --scope user"),
            ("mcp add a https://x --unknown", "mcp add a https://x --unknown"),
            ("mcp add a https://x --header", "mcp add a https://x --header"),
            ("mcp list --json", "mcp list --json"),
            ("-p mcp add", "-p mcp add"),
        ] {
            let words = |line: &str| -> Vec<OsString> {
                std::iter::once("loci").chain(line.split(' ')).map(OsString::from).collect()
            };
            assert_eq!(in_order(words(line)), words(expected), "{line}");
        }
    }
}
