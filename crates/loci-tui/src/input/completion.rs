//! Completion: what is being typed, what it could become, and the menu of that.
//!
//! [`Token::at_caret`] says what the caret is in: the name of a command, a mention (`@`), the name of an emoji, or a path of a
//! shell command. Commands and emoji are matched at once, on the thread that draws, so that the menu never shows an answer to an older question; files are
//! searched by [`FileCompleter`] on threads of their own, and an answer names the query it belongs to.

use std::ops::Range;

use super::chip::InputMode;
use super::editor::Editor;

mod commands;
mod emoji;
mod file_completer;
mod menu;
#[cfg(test)]
mod tests;

pub use commands::{CommandItem, CommandMatches, match_commands};
pub use emoji::{match_emoji, whole_name};
pub use file_completer::{FileAnswer, FileCompleter, Mention, SESSION_MENTION, SuggestionHelper};
pub use loci_app::interface::file_suggestions::{FileSource, IgnoredFiles};
pub(crate) use menu::MENU_MARK;
pub use menu::{Menu, MenuItem, MenuStyles};

/// What is being typed at the caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// What to look for.
    pub query: String,
    /// The bytes of the caret's line that a completion replaces.
    pub range: Range<usize>,
    /// What stands behind a path and stays there, such as `#L10-20`.
    suffix: String,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// The name of a command, without its `/`.
    Command,
    /// A file, directory, agent or resource behind `@`.
    Mention,
    /// A path in a command of the shell.
    ShellPath,
    /// The name of an emoji, behind its colon.
    Emoji,
    /// The directory behind a command that takes one.
    Directory,
    /// An argument of a command whose arguments somebody else knows; the query is all that stands behind the name.
    Argument,
}

impl Token {
    /// Finds what the caret is in; `is_skill` says whether a command may be followed by another one.
    pub fn at_caret(editor: &Editor, is_skill: impl Fn(&str) -> bool) -> Option<Self> {
        let (before, behind) = (editor.before_caret(), editor.behind_caret());
        match editor.mode() {
            InputMode::Shell => shell_path(before, behind),
            InputMode::Prompt => {
                let command =
                    if editor.is_in_first_line() { command(before, behind, is_skill) } else { None };
                command.or_else(|| mention(before, behind)).or_else(|| emoji_name(before, behind))
            }
        }
    }

    /// Finds the argument that the caret is in, behind a command whose arguments can be completed; returns the command's
    /// name, too.
    pub fn argument_at_caret(
        editor: &Editor,
        takes_arguments: impl Fn(&str) -> bool,
    ) -> Option<(String, Self)> {
        if editor.mode() != InputMode::Prompt || !editor.is_in_first_line() {
            return None;
        }
        let (before, behind) = (editor.before_caret(), editor.behind_caret());
        let (name, written) = before.strip_prefix('/')?.split_once(char::is_whitespace)?;
        if !takes_arguments(name) {
            return None;
        }
        let start =
            written.rfind(char::is_whitespace).map_or(0, |at| at + 1) + (before.len() - written.len());
        let token = Self {
            kind: TokenKind::Argument,
            query: written.to_owned(),
            range: start..before.len() + word_length(behind),
            suffix: String::new(),
        };
        Some((name.to_owned(), token))
    }

    /// Finds the directory that is being typed behind a command that takes one: all that stands there, blanks included.
    pub fn directory_at_caret(editor: &Editor, takes_directory: impl Fn(&str) -> bool) -> Option<Self> {
        if editor.mode() != InputMode::Prompt || !editor.is_in_first_line() {
            return None;
        }
        let (before, behind) = (editor.before_caret(), editor.behind_caret());
        let (name, written) = before.strip_prefix('/')?.split_once(char::is_whitespace)?;
        let query = written.trim_start();
        if query.is_empty() || !takes_directory(name) {
            return None;
        }
        let range = before.len() - query.len()..before.len() + word_length(behind);
        Some(Self { kind: TokenKind::Directory, query: query.to_owned(), range, suffix: String::new() })
    }

    /// Returns the text that takes the token's place when this is chosen.
    pub fn replacement(&self, chosen: &str) -> String {
        match self.kind {
            TokenKind::Command => format!("/{chosen} "),
            TokenKind::Emoji | TokenKind::Directory => chosen.to_owned(),
            TokenKind::Argument if chosen.contains(char::is_whitespace) => format!("\"{chosen}\" "),
            TokenKind::Argument => format!("{chosen} "),
            TokenKind::Mention => {
                let is_directory = chosen.ends_with('/');
                let path = if chosen.contains(char::is_whitespace) && is_directory {
                    // The quotes stay open: what follows is in the directory.
                    format!("@\"{chosen}")
                } else if chosen.contains(char::is_whitespace) {
                    format!("@\"{chosen}\"")
                } else {
                    format!("@{chosen}")
                };
                let end = if is_directory { "" } else { " " };
                format!("{path}{}{end}", self.suffix)
            }
            TokenKind::ShellPath => {
                let escaped: String = chosen.chars().fold(String::new(), |mut escaped, char| {
                    if is_special_to_shells(char) {
                        escaped.push('\\');
                    }
                    escaped.push(char);
                    escaped
                });
                let end = if chosen.ends_with('/') { "" } else { " " };
                format!("{escaped}{end}")
            }
        }
    }
}

/// A command stands at the very beginning; skills may follow each other.
fn command(before: &str, behind: &str, is_skill: impl Fn(&str) -> bool) -> Option<Token> {
    let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let name = before[start..].strip_prefix('/')?;
    let mut earlier = before[..start].split_whitespace();
    if !before.starts_with('/') || !earlier.all(|word| word.strip_prefix('/').is_some_and(&is_skill)) {
        return None;
    }
    // A path is no command.
    if name.contains('/') {
        return None;
    }
    let end = before.len() + word_length(behind);
    Some(Token { kind: TokenKind::Command, query: name.to_owned(), range: start..end, suffix: String::new() })
}

/// A mention begins with `@` at the beginning of a word; in quotes it may contain blanks.
fn mention(before: &str, behind: &str) -> Option<Token> {
    let quoted = before.rfind("@\"").filter(|at| !before[at + 2..].contains('"'));
    let start = match quoted {
        Some(at) => at,
        None => {
            let word = word_start(before);
            word + before[word..].rfind('@')?
        }
    };
    let begins_a_word = before[..start].chars().next_back().is_none_or(|char| {
        char.is_whitespace() || matches!(char, '(' | '[' | '{' | '"' | '\'' | '`' | ',' | ':' | '=')
    });
    let query = &before[start + if quoted.is_some() { 2 } else { 1 }..];
    // Behind `#` comes a range of lines, which nobody can guess.
    if !begins_a_word || query.contains('#') {
        return None;
    }
    let rest = &behind[..if quoted.is_some() { quoted_length(behind) } else { word_length(behind) }];
    let suffix = rest.find('#').map_or("", |at| rest[at..].trim_end_matches('"'));
    Some(Token {
        kind: TokenKind::Mention,
        query: query.to_owned(),
        range: start..before.len() + rest.len(),
        suffix: suffix.to_owned(),
    })
}

/// The name of an emoji begins with a colon at the beginning of a word.
fn emoji_name(before: &str, behind: &str) -> Option<Token> {
    let (start, letters) = emoji::begun_name(before).filter(|_| word_length(behind) == 0)?;
    let (kind, query) = (TokenKind::Emoji, letters.to_owned());
    Some(Token { kind, query, range: start..before.len(), suffix: String::new() })
}

/// Returns where the word begins that a text ends with.
fn word_start(before: &str) -> usize {
    let blank = before.rfind(char::is_whitespace);
    blank.map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8))
}

/// In a command of the shell a word with a slash is a path.
fn shell_path(before: &str, behind: &str) -> Option<Token> {
    let mut start = 0;
    let mut is_escaped = false;
    for (at, char) in before.char_indices() {
        if !is_escaped
            && (char.is_whitespace() || matches!(char, '=' | ';' | '|' | '&' | '<' | '>' | '(' | '"' | '\''))
        {
            start = at + char.len_utf8();
        }
        is_escaped = char == '\\' && !is_escaped;
    }
    let typed = &before[start..];
    if !typed.contains('/') {
        return None;
    }
    let query = typed.replace('\\', "");
    let range = start..before.len() + word_length(behind);
    Some(Token { kind: TokenKind::ShellPath, query, range, suffix: String::new() })
}

fn word_length(text: &str) -> usize {
    text.find(char::is_whitespace).unwrap_or(text.len())
}

/// Up to the closing quote and what is joined to it, or nothing.
fn quoted_length(text: &str) -> usize {
    text.find('"').map_or(0, |at| at + word_length(&text[at..]))
}

fn is_special_to_shells(char: char) -> bool {
    char.is_whitespace() || "\"'\\$`&|;<>()*?[]{}!#".contains(char)
}
