//! `loci memory edit`.

use std::io::Read;

use loci_app::UserError;
use loci_context::{
    MemoryFile, in_form_of, index_line, index_lines, with_index_line, with_modified_time, without_bom,
};
use loci_stdx::rfc3339_millis;
use loci_storage::memory::{ChangeKind, Edit, MemoryArea};

use super::{MemoryContext, done};

/// The most that a memory may be, and that is read from standard input.
const MOST_BYTES: usize = 1024 * 1024;

#[derive(Debug, clap::Args)]
pub(super) struct EditArgs {
    /// The memory's file or name.
    name: String,
    /// The new text; without it, standard input is read. Text without front matter leaves that as it is.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &EditArgs) -> Result<String, UserError> {
    let (file, _) = ctx.find(&args.name)?;
    let before = ctx.exact_text(MemoryArea::Memory, &file)?.unwrap_or_default();
    let text = match &args.text {
        Some(text) => text.clone(),
        None => read_stdin()?,
    };
    if text.trim().is_empty() {
        return Err(UserError::new("There is no new text")
            .hint("Give it with --text or on standard input; `loci memory forget` removes a memory."));
    }
    let new = replaced(&before, &text);
    let stamp = rfc3339_millis(ctx.env.clock.now());
    let new = with_modified_time(&new, &stamp).unwrap_or(new);
    if new.len() > MOST_BYTES {
        return Err(UserError::new(format!(
            "Not changed, because the new text is larger than 1 MiB: `{file}`"
        ))
        .hint("A memory is short; put what is long into a file of the project and name that."));
    }
    let memory = MemoryFile::parse(&new);
    let mut edits = vec![Edit::memory(&file, Some(before.into()), Some(new.into()))];
    if let (Some(name), Some(description)) = (&memory.name, &memory.description) {
        let line = index_line(name, &file, description);
        let has_line = |index: &str| index_lines(index).iter().any(|it| it.file == file);
        edits.extend(ctx.index_edit(|index| has_line(index).then(|| with_index_line(index, &file, &line)))?);
    }
    let id = ctx.apply(ChangeKind::Edit, edits)?;
    Ok(done(&format!("`{file}` is changed"), id, args.json))
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

fn read_stdin() -> Result<String, UserError> {
    let mut text = String::new();
    // One byte more, so that what is too long is refused below, not cut.
    let read = std::io::stdin().take(MOST_BYTES as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| UserError::new(format!("Standard input cannot be read: {error}")))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
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
}
