//! Prompts that ask something of the session itself, and not of the model.

use crate::command::Prompt;

/// Reads `/compact`, with or without what should be kept above all.
pub(crate) fn compaction_wish(prompt: &Prompt) -> Option<Option<String>> {
    command(prompt, &["/compact"])
}

/// Reads `/clear`, which begins a new conversation, with or without a name for the one that is left.
pub fn clear_wish(prompt: &Prompt) -> Option<Option<String>> {
    command(prompt, &["/clear", "/reset", "/new"])
}

fn command(prompt: &Prompt, names: &[&str]) -> Option<Option<String>> {
    let text = prompt.content.text();
    let (name, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    names.contains(&name).then(|| Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_whole_words_at_the_beginning() {
        let some = |text: &str| Some(Some(text.to_owned()));
        for (text, compaction, clear) in [
            ("/compact", Some(None), None),
            (" /compact  the port ", some("the port"), None),
            ("/compact\nthe port", some("the port"), None),
            ("/compactly", None, None),
            ("/clear", None, Some(None)),
            ("/clear old work", None, some("old work")),
            ("/reset", None, Some(None)),
            ("/new", None, Some(None)),
            ("/newest", None, None),
            ("please /clear", None, None),
            ("", None, None),
        ] {
            let prompt = Prompt::text(text);
            assert_eq!((compaction_wish(&prompt), clear_wish(&prompt)), (compaction, clear), "{text:?}");
        }
    }
}
