//! What stands for something else in the text of a skill: arguments and variables.
//!
//! | written | becomes |
//! |---|---|
//! | `$ARGUMENTS` | everything behind the command's name, word for word |
//! | `$ARGUMENTS[2]`, `$2` | the third argument; as written, where there are fewer |
//! | `$name` | the argument of that declared name; nothing, where it is missing |
//! | `${CLAUDE_SKILL_DIR}` and others | what [`Variables`] says |
//! | `\$1`, `\$ARGUMENTS`, `\$name` | the same without the backslash |
//!
//! Where no placeholder takes the arguments, they are told at the end. A text that was put in is never read again: what an
//! argument says is neither a placeholder nor a command to be run.

/// Where a skill is used, for the variables of its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    values: Vec<(String, String)>,
}

impl Variables {
    /// Gives a variable, by its name without `${` and `}`, a value.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.values.retain(|(known, _)| *known != name);
        self.values.push((name.to_owned(), value.into()));
    }

    /// Gives a variable a value that somebody chose: nothing in it is a command to be run.
    pub fn set_disarmed(&mut self, name: &str, value: &str) {
        self.set(name, disarm(value));
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Puts values in the place of variables, and leaves everything else alone.
    pub fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            match variable(from, self) {
                Some((value, len)) => {
                    out.push_str(value);
                    rest = &from[len..];
                }
                None => {
                    out.push_str("${");
                    rest = &from[2..];
                }
            }
        }
        out.push_str(rest);
        out
    }
}

/// What follows a command's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments<'a> {
    /// Word for word.
    text: &'a str,
    words: Vec<String>,
    /// Names that the skill gives to them, in order.
    names: &'a [String],
}

impl<'a> Arguments<'a> {
    /// Reads arguments; quotes join words, as in a shell.
    pub fn new(text: &'a str, names: &'a [String]) -> Self {
        let text = text.trim();
        Self { text, words: split_words(text), names }
    }

    fn named(&self, name: &str) -> Option<&str> {
        let idx = self.names.iter().position(|known| known == name)?;
        Some(self.words.get(idx).map_or("", String::as_str))
    }
}

/// Puts arguments and variables into the text of a skill.
pub fn substitute(body: &str, arguments: &Arguments<'_>, variables: &Variables) -> String {
    let mut out = String::with_capacity(body.len() + arguments.text.len());
    let mut takes_arguments = false;
    let mut rest = body;
    while let Some(at) = rest.find(['$', '\\']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        // Only a single one escapes: of several, none does.
        let n_slashes = from.bytes().take_while(|byte| *byte == b'\\').count();
        if n_slashes > 1 {
            out.push_str(&from[..n_slashes]);
            rest = &from[n_slashes..];
            continue;
        }
        rest = match placeholder(from, arguments, variables) {
            Some(Placeholder { len, kind: Kind::Argument(value) }) => {
                takes_arguments = true;
                out.push_str(&disarm(value));
                &from[len..]
            }
            Some(Placeholder { len, kind: Kind::Variable(value) }) => {
                out.push_str(value);
                &from[len..]
            }
            Some(Placeholder { len, kind: Kind::Escaped(text) }) => {
                out.push_str(text);
                &from[len..]
            }
            None => {
                let len = from.chars().next().map_or(0, char::len_utf8);
                out.push_str(&from[..len]);
                &from[len..]
            }
        };
    }
    out.push_str(rest);
    if !takes_arguments && !arguments.text.is_empty() {
        let gap = if out.ends_with('\n') { "\n" } else { "\n\n" };
        out.push_str(&format!("{gap}ARGUMENTS: {}", disarm(arguments.text)));
    }
    out
}

/// Takes away what would make an argument a command to be run.
fn disarm(value: &str) -> String {
    value.replace("!`", "! `").replace("```!", "``` !")
}

struct Placeholder<'a> {
    /// How many bytes it takes.
    len: usize,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Argument(&'a str),
    Variable(&'a str),
    Escaped(&'a str),
}

/// Reads the placeholder that a text begins with.
fn placeholder<'a>(
    text: &'a str,
    arguments: &'a Arguments<'_>,
    variables: &'a Variables,
) -> Option<Placeholder<'a>> {
    if let Some(escaped) = text.strip_prefix('\\') {
        let (_, len) = argument(escaped, arguments, Missing::Counts)?;
        return Some(Placeholder { len: len + 1, kind: Kind::Escaped(&escaped[..len]) });
    }
    if let Some((value, len)) = variable(text, variables) {
        return Some(Placeholder { len, kind: Kind::Variable(value) });
    }
    let (value, len) = argument(text, arguments, Missing::Stays)?;
    Some(Placeholder { len, kind: Kind::Argument(value) })
}

/// What is done about a number without an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// It is no placeholder.
    Stays,
    /// It is one all the same.
    Counts,
}

/// Reads a placeholder for arguments: its value, and how many bytes it takes.
fn argument<'a>(text: &str, arguments: &'a Arguments<'_>, missing: Missing) -> Option<(&'a str, usize)> {
    let word = text.strip_prefix('$')?;
    if let Some(behind) = word.strip_prefix("ARGUMENTS") {
        let whole = 1 + "ARGUMENTS".len();
        let index = behind.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let index = index.and_then(|(digits, _)| Some((digits.parse::<usize>().ok()?, digits.len() + 2)));
        if let Some((idx, len)) = index {
            let value = nth(arguments, idx, missing)?;
            return Some((value, whole + len));
        }
        return (!continues_name(behind)).then_some((arguments.text, whole));
    }
    let n_digits = word.bytes().take_while(u8::is_ascii_digit).count();
    if n_digits > 0 {
        let idx = word[..n_digits].parse().ok()?;
        return Some((nth(arguments, idx, missing)?, 1 + n_digits));
    }
    let n_letters = word.bytes().take_while(|byte| is_name_byte(*byte)).count();
    Some((arguments.named(&word[..n_letters])?, 1 + n_letters))
}

fn nth<'a>(arguments: &'a Arguments<'_>, idx: usize, missing: Missing) -> Option<&'a str> {
    match arguments.words.get(idx) {
        Some(value) => Some(value),
        None => (missing == Missing::Counts).then_some(""),
    }
}

/// Reads a variable: its value, and how many bytes it takes.
fn variable<'a>(text: &str, variables: &'a Variables) -> Option<(&'a str, usize)> {
    let (name, _) = text.strip_prefix("${")?.split_once('}')?;
    Some((variables.get(name)?, name.len() + 3))
}

fn continues_name(text: &str) -> bool {
    text.bytes().next().is_some_and(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Splits arguments into words as a shell would; a quote that is never closed reaches to the end.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if c == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next().or(Some('\\'))),
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, arguments: &str, expected: &str) {
        let names = ["file".to_owned(), "to-lang".to_owned()];
        let mut variables = Variables::default();
        variables.set("CLAUDE_SKILL_DIR", "/skills/$0");
        let rendered = substitute(body, &Arguments::new(arguments, &names), &variables);
        assert_eq!(rendered, expected, "{body:?} with {arguments:?}");
    }

    #[test]
    fn placeholders_take_their_arguments() {
        for (body, arguments, expected) in [
            ("Do $ARGUMENTS.", "alpha \"beta gamma\"", "Do alpha \"beta gamma\"."),
            ("$0|$1|$2", "alpha \"beta gamma\" delta", "alpha|beta gamma|delta"),
            ("$ARGUMENTS[1] $ARGUMENTS[0]", "a b", "b a"),
            ("$0 $5", "a", "a $5"),
            ("$0 $ARGUMENTS[9]", "a", "a $ARGUMENTS[9]"),
            ("$file to $to-lang", "a.rs 'plain c'", "a.rs to plain c"),
            ("$file to $to-lang.", "a.rs", "a.rs to ."),
            ("$0 costs \\$1.00", "it x", "it costs $1.00"),
            ("$0 \\$ARGUMENTS \\$file \\$other", "a", "a $ARGUMENTS $file \\$other"),
            ("\\\\$0 \\\\\\$0", "a", "\\\\a \\\\\\a"),
            ("\\${CLAUDE_SKILL_DIR}$0", "a", "\\/skills/$0a"),
            ("$0$1", "x\\ y z", "x yz"),
            ("$0", "'never closed", "never closed"),
            ("$0 \\n $HOME $", "a", "a \\n $HOME $"),
            ("$ARGUMENTSX", "", "$ARGUMENTSX"),
            ("Do $ARGUMENTS.", "", "Do ."),
            ("€ $0 €", "ü", "€ ü €"),
        ] {
            check(body, arguments, expected);
        }
    }

    #[test]
    fn arguments_without_a_place_are_told_at_the_end() {
        check("Do it.", "now", "Do it.\n\nARGUMENTS: now");
        check("Do it.\n", "now", "Do it.\n\nARGUMENTS: now");
        check("Do it.", "  ", "Do it.");
        check("Read ${CLAUDE_SKILL_DIR}/x", "now", "Read /skills/$0/x\n\nARGUMENTS: now");
        check("$5", "now", "$5\n\nARGUMENTS: now");
    }

    #[test]
    fn variables_have_their_values_and_others_stay() {
        check("${CLAUDE_SKILL_DIR} ${HOME} ${", "", "/skills/$0 ${HOME} ${");
        let mut variables = Variables::default();
        variables.set("CLAUDE_SKILL_DIR", "/old");
        variables.set("CLAUDE_SKILL_DIR", "/new");
        assert_eq!(variables.expand("Bash(${CLAUDE_SKILL_DIR}/x *) ${NO} $0"), "Bash(/new/x *) ${NO} $0");
    }

    #[test]
    fn arguments_are_never_placeholders_or_commands() {
        check("$0 $1", "'$1 \\$0' b", "$1 \\$0 b");
        check("$ARGUMENTS", "run !`rm x` and ```!\nrm y", "run ! `rm x` and ``` !\nrm y");
        check("Do it.", "!`rm x`", "Do it.\n\nARGUMENTS: ! `rm x`");
    }
}
