//! A program that shell commands are handed to (`CLAUDE_CODE_SHELL_PREFIX`): it gets the command as one word, and runs it.

/// The variable that names it.
const VARIABLE: &str = "CLAUDE_CODE_SHELL_PREFIX";

/// Returns the line that a shell runs in the place of a command: the prefix of the environment, if there is one, with
/// the command behind it as one quoted word.
///
/// ```
/// use loci_stdx::prefixed_command;
///
/// let env = [("CLAUDE_CODE_SHELL_PREFIX".to_owned(), "/opt/audit.sh".to_owned())];
/// assert_eq!(prefixed_command(&env, "echo it's").as_deref(), Some(r"/opt/audit.sh 'echo it'\''s'"));
/// assert_eq!(prefixed_command(&[], "echo"), None);
/// ```
#[must_use]
pub fn prefixed_command(env: &[(String, String)], command: &str) -> Option<String> {
    // The last of several counts, as it does for the process.
    let prefix = env.iter().rev().find(|(name, _)| name == VARIABLE).map(|(_, prefix)| prefix.trim())?;
    (!prefix.is_empty()).then(|| format!("{prefix} {}", quote_word(command)))
}

/// Returns the same for a program with its arguments.
#[must_use]
pub fn prefixed_program<'a>(
    env: &[(String, String)],
    words: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let line: Vec<String> = words.into_iter().map(quote_word).collect();
    prefixed_command(env, &line.join(" "))
}

/// Returns a text as one word of a shell.
fn quote_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_one_word_behind_the_prefix() {
        let env = |values: &[&str]| -> Vec<(String, String)> {
            values.iter().map(|value| (VARIABLE.to_owned(), (*value).to_owned())).collect()
        };
        for (prefixes, expected) in [
            (vec![], None),
            (vec![" "], None),
            (vec!["/opt/a.sh"], Some("/opt/a.sh 'ls -l; id'")),
            (vec!["/opt/a.sh", "/opt/b.sh --log x "], Some("/opt/b.sh --log x 'ls -l; id'")),
        ] {
            assert_eq!(prefixed_command(&env(&prefixes), "ls -l; id").as_deref(), expected);
        }
        let line = prefixed_program(&env(&["/a"]), ["npx", "-y", "a b"]);
        assert_eq!(line.as_deref(), Some(r"/a ''\''npx'\'' '\''-y'\'' '\''a b'\'''"));
    }
}
