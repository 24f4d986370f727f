//! Memories that a person writes: changed, added, and changes taken back. Every change is one of the journal.

use std::collections::HashSet;

use loci_context::{
    MemoryFile, MemoryKind, in_form_of, index_line, index_lines, with_index_line, with_modified_time,
    without_bom,
};
use loci_stdx::{rfc3339_millis, single_line};
use loci_storage::memory::{Change, ChangeKind, Edit, MemoryArea};

use crate::memory::review::{MemoryContext, to_user_error};
use crate::user_error::UserError;

/// The most that a memory may be.
pub const MOST_BYTES: usize = 1024 * 1024;
/// The most words and letters of a text that a new memory's name is made of.
const MOST_NAME: (usize, usize) = (6, 48);
/// The most letters of a new memory's description.
const MOST_DESCRIPTION: usize = 120;

/// Puts a new text in the place of a memory's; returns the number of the change. Text without front matter leaves that as it
/// is.
pub fn edit(ctx: &MemoryContext, file: &str, text: &str) -> Result<u64, UserError> {
    let before = ctx.exact_text(MemoryArea::Memory, file)?.unwrap_or_default();
    if text.trim().is_empty() {
        return Err(UserError::new("There is no new text")
            .hint("Say what the memory is to say; `loci memory forget` removes one."));
    }
    let new = replaced(&before, text);
    let stamp = rfc3339_millis(ctx.env.clock.now());
    let new = with_modified_time(&new, &stamp).unwrap_or(new);
    check_size(file, &new)?;
    let memory = MemoryFile::parse(&new);
    let mut edits = vec![Edit::memory(file, Some(before.into()), Some(new.into()))];
    if let (Some(name), Some(description)) = (&memory.name, &memory.description) {
        let line = index_line(name, file, description);
        let has_line = |index: &str| index_lines(index).iter().any(|it| it.file == file);
        edits.extend(ctx.index_edit(|index| has_line(index).then(|| with_index_line(index, file, &line)))?);
    }
    ctx.apply(ChangeKind::Edit, edits)
}

/// Keeps a new memory; returns its file and the number of the change.
pub fn add(ctx: &MemoryContext, text: &str) -> Result<(String, u64), UserError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UserError::new("There is nothing to remember").hint("Say it in a sentence or two."));
    }
    let name = unused_name(ctx, &name_of(text))?;
    let file = format!("{name}.md");
    let description = single_line(text, MOST_DESCRIPTION);
    let stamp = rfc3339_millis(ctx.env.clock.now());
    let head = format!(
        "---\nname: {name}\ndescription: {}\ntype: {}\nmodified: {stamp}\n---\n",
        quoted(&description),
        MemoryKind::Project.as_str()
    );
    let new = format!("{head}{text}\n");
    check_size(&file, &new)?;
    let mut edits = vec![Edit::memory(&file, None, Some(new.into()))];
    let line = index_line(&name, &file, &description);
    edits.extend(ctx.index_edit(|index| Some(with_index_line(index, &file, &line)))?);
    let id = ctx.apply(ChangeKind::Write, edits)?;
    Ok((file, id))
}

/// Takes a change back, the last that was not taken back where none is named; returns which, and the number of what took it
/// back.
pub fn undo(ctx: &MemoryContext, change: Option<u64>) -> Result<(u64, u64), UserError> {
    let last = || -> Result<Option<u64>, UserError> {
        Ok(last_made(&ctx.journal.changes().map_err(|error| to_user_error(&error))?))
    };
    let id = match change {
        Some(id) => id,
        None => last()?.ok_or_else(|| UserError::new("There is no change to take back"))?,
    };
    let change = ctx.journal.undo(&ctx.env, id).map_err(|error| to_user_error(&error))?;
    Ok((id, change.id))
}

fn check_size(file: &str, text: &str) -> Result<(), UserError> {
    if text.len() <= MOST_BYTES {
        return Ok(());
    }
    Err(UserError::new(format!("Not changed, because the new text is larger than 1 MiB: `{file}`"))
        .hint("A memory is short; put what is long into a file of the project and name that."))
}

/// Makes a name of the first words of a text.
fn name_of(text: &str) -> String {
    let (most_words, most_letters) = MOST_NAME;
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.take(most_words).map(str::to_lowercase).collect::<Vec<_>>().join("-");
    let name: String = name.chars().take(most_letters).collect();
    match name.trim_end_matches('-') {
        "" => "memory".to_owned(),
        name => name.to_owned(),
    }
}

fn unused_name(ctx: &MemoryContext, name: &str) -> Result<String, UserError> {
    let mut wanted = name.to_owned();
    for n in 2.. {
        if ctx.content(MemoryArea::Memory, &format!("{wanted}.md"))?.is_none() {
            break;
        }
        wanted = format!("{name}-{n}");
    }
    Ok(wanted)
}

/// Returns a description that front matter reads as one text.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(char::is_alphanumeric)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':');
    match is_plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Puts a new text in the place of the old one, in its form; front matter stays unless the new text has its own.
fn replaced(before: &str, text: &str) -> String {
    let text = in_form_of(before, &format!("{}\n", text.trim_end()));
    let has_matter = MemoryFile::parse(&text).body.len() < without_bom(&text).len();
    let body = MemoryFile::parse(before).body;
    match before.strip_suffix(&*body) {
        Some(head) if !has_matter => format!("{head}{}", without_bom(&text)),
        _ => text,
    }
}

/// Returns the last change that made something and was not taken back. Taking back what took something back makes it
/// again, so that counts like the change itself.
fn last_made(changes: &[Change]) -> Option<u64> {
    let undone: HashSet<u64> = changes.iter().filter_map(|change| change.undoes).collect();
    let mut taking: HashSet<u64> = HashSet::new();
    for change in changes {
        let is_taking = change.undoes.is_some_and(|id| !taking.contains(&id));
        taking.extend(is_taking.then_some(change.id));
    }
    let open = changes.iter().rev().find(|it| !taking.contains(&it.id) && !undone.contains(&it.id));
    open.map(|change| change.id)
}

#[cfg(test)]
mod tests {
    use loci_stdx::Env;
    use loci_storage::memory::Author;
    use loci_testkit::TestHome;

    use super::*;

    #[test]
    fn front_matter_stays_unless_the_new_text_has_its_own() {
        let before = "---\nname: x\n---\nold\n";
        assert_eq!(replaced(before, "new"), "---\nname: x\n---\nnew\n");
        assert_eq!(replaced(before, "---\nname: y\n---\nnew"), "---\nname: y\n---\nnew\n");
        assert_eq!(replaced("plain\n", "new\n\n"), "new\n");
        assert_eq!(replaced(before, "---\nunder a line\n"), "---\nname: x\n---\n---\nunder a line\n");
    }

    #[test]
    fn line_ends_and_byte_order_mark_stay() {
        let crlf = "\u{feff}---\r\nname: x\r\n---\r\nold\r\nolder\n";
        assert_eq!(replaced(crlf, "new\nnewer"), "\u{feff}---\r\nname: x\r\n---\r\nnew\r\nnewer\r\n");
        let own = "\u{feff}---\r\nname: y\r\n---\r\nnew\r\n";
        assert_eq!(replaced(crlf, "---\nname: y\n---\nnew\n"), own);
        assert_eq!(replaced(crlf, own), own);
        assert_eq!(replaced("---\nname: x\n---\nold\n", own), "---\nname: y\n---\nnew\n");
        assert_eq!(replaced("a\r\nb\r\n", "c\nd"), "c\r\nd\r\n");
        assert_eq!(replaced("\u{feff}a\n", "c\r\nd"), "\u{feff}c\nd\n");
    }

    #[test]
    fn redone_change_can_be_undone_again() {
        for (undoes, expected) in [
            (&[][..], None),
            (&[None, None], Some(2)),
            (&[None, None, Some(2)], Some(1)),
            (&[None, None, Some(2), Some(1)], None),
            (&[None, Some(1), Some(2)], Some(3)),
            (&[None, Some(1), Some(2), Some(3)], None),
            (&[None, Some(1), Some(2), Some(3), Some(4)], Some(5)),
            (&[None, None, Some(1), Some(3)], Some(4)),
        ] {
            let change = |(n, undoes): (usize, &Option<u64>)| Change {
                id: n as u64 + 1,
                at: String::new(),
                act: if undoes.is_some() { ChangeKind::Undo } else { ChangeKind::Edit },
                by: Author::Person,
                session: None,
                message: None,
                undoes: *undoes,
                files: Vec::new(),
            };
            let changes: Vec<Change> = undoes.iter().enumerate().map(change).collect();
            assert_eq!(last_made(&changes), expected, "{undoes:?}");
        }
    }

    #[test]
    fn memory_is_added_changed_and_both_are_taken_back() {
        let home = TestHome::new();
        let ctx = MemoryContext::new(&Env::for_test(home.home(), home.project())).unwrap();
        let text = |file: &str| ctx.text(MemoryArea::Memory, file).unwrap();
        let (file, _) = add(&ctx, "Use `make check: all` before a commit, always and everywhere.").unwrap();
        assert_eq!(file, "use-make-check-all-before-a.md");
        let memory = MemoryFile::parse(&text(&file).unwrap());
        let said = "Use `make check: all` before a commit, always and everywhere.";
        assert_eq!((memory.description.as_deref(), memory.body.trim()), (Some(said), said));
        assert!(ctx.index().unwrap().contains(&file));
        let (twin, _) = add(&ctx, "Use make, check all before a push").unwrap();
        assert_eq!(twin, "use-make-check-all-before-a-2.md", "no memory is written over");
        let second = edit(&ctx, &file, "Use make.").unwrap();
        assert!(text(&file).unwrap().ends_with("---\nUse make.\n"), "{:?}", text(&file));
        assert_eq!(undo(&ctx, Some(second)).unwrap().0, second);
        assert!(text(&file).unwrap().ends_with(&format!("---\n{said}\n")));
        assert!(edit(&ctx, &twin, " \n").is_err() && add(&ctx, " ").is_err(), "nothing is no memory");
        undo(&ctx, None).unwrap();
        assert_eq!((text(&twin), text(&file).is_some()), (None, true), "the last one first");
        undo(&ctx, None).unwrap();
        assert_eq!(text(&file), None);
    }
}
