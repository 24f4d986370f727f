//! `loci memory edit`.

use std::io::Read;

use loci_context::{MemoryFile, index_line, index_lines, stamped, with_index_line};
use loci_stdx::rfc3339_millis;
use loci_storage::{Act, Edit};

use super::{Desk, done};
use crate::complaint::Complaint;

/// The most that is read from standard input.
const MOST_BYTES: u64 = 1024 * 1024;

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

pub(super) fn run(desk: &Desk, args: &EditArgs) -> Result<String, Complaint> {
    let (file, before) = desk.find(&args.name)?;
    let text = match &args.text {
        Some(text) => text.clone(),
        None => read_stdin()?,
    };
    if text.trim().is_empty() {
        return Err(Complaint::new("There is no new text")
            .hint("Give it with --text or on standard input; `loci memory forget` removes a memory."));
    }
    let new = replaced(&before, &text);
    let stamp = rfc3339_millis(desk.env.clock.now());
    let new = stamped(&new, &stamp).unwrap_or(new);
    let memory = MemoryFile::parse(&new);
    let mut edits = vec![Edit::memory(&file, Some(before), Some(new))];
    if let (Some(name), Some(description)) = (&memory.name, &memory.description) {
        let line = index_line(name, &file, description);
        let has_line = |index: &str| index_lines(index).iter().any(|it| it.file == file);
        edits.extend(desk.index_edit(|index| has_line(index).then(|| with_index_line(index, &file, &line)))?);
    }
    let id = desk.apply(Act::Edit, edits)?;
    Ok(done(&format!("`{file}` is changed"), id, args.json))
}

/// Puts a new text in the place of the old one; front matter stays unless the new text has its own.
fn replaced(before: &str, text: &str) -> String {
    let text = format!("{}\n", text.trim_end());
    let body = MemoryFile::parse(before).body;
    match before.strip_suffix(&*body) {
        Some(head) if !text.starts_with("---\n") => format!("{head}{text}"),
        _ => text,
    }
}

fn read_stdin() -> Result<String, Complaint> {
    let mut text = String::new();
    let read = std::io::stdin().take(MOST_BYTES).read_to_string(&mut text);
    read.map_err(|error| Complaint::new(format!("Standard input cannot be read: {error}")))?;
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
    }
}
