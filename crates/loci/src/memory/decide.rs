//! `loci memory accept`, `reject` and `forget`: a person decides what counts.

use loci_app::UserError;
use loci_context::{
    MemoryFile, in_form_of, index_line, with_index_line, with_modified_time, without_index_lines,
};
use loci_stdx::rfc3339_millis;
use loci_storage::memory::{ChangeKind, Edit, MemoryArea, MemoryContent};

use super::{MemoryContext, done, no_such_proposal, to_user_error};

#[derive(Debug, clap::Args)]
pub(super) struct ProposalArgs {
    /// The proposals' files or names.
    names: Vec<String>,
    /// All of them.
    #[arg(long)]
    all: bool,
    /// Print a JSON object for each, one a line.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ForgetArgs {
    /// The memory's file or name.
    name: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Lets proposals count.
pub(super) fn accept(ctx: &MemoryContext, args: &ProposalArgs) -> Result<String, UserError> {
    let files = ctx.chosen(&args.names, args.all)?;
    ctx.each(files, args.json, |file| {
        let id = accept_one(ctx, file)?;
        Ok(done(&format!("`{file}` counts from now on"), id, args.json))
    })
}

/// Turns proposals down.
pub(super) fn reject(ctx: &MemoryContext, args: &ProposalArgs) -> Result<String, UserError> {
    let files = ctx.chosen(&args.names, args.all)?;
    ctx.each(files, args.json, |file| {
        let content = ctx.content(MemoryArea::Pending, file)?.ok_or_else(|| no_such_proposal(file))?;
        let id = ctx.apply(ChangeKind::Reject, vec![Edit::pending(file, Some(content), None)])?;
        Ok(done(&format!("`{file}` is turned down"), id, args.json))
    })
}

/// Removes a memory and its line in the index.
pub(super) fn forget(ctx: &MemoryContext, args: &ForgetArgs) -> Result<String, UserError> {
    let (file, _) = ctx.find(&args.name)?;
    let content = ctx.content(MemoryArea::Memory, &file)?;
    let mut edits = vec![Edit::memory(&file, content, None)];
    edits.extend(ctx.index_edit(|index| without_index_lines(index, &file))?);
    let id = ctx.apply(ChangeKind::Forget, edits)?;
    Ok(done(&format!("`{file}` is forgotten"), id, args.json))
}

fn accept_one(ctx: &MemoryContext, file: &str) -> Result<u64, UserError> {
    let text = ctx.exact_text(MemoryArea::Pending, file)?.ok_or_else(|| no_such_proposal(file))?;
    let now = ctx.content(MemoryArea::Memory, file)?;
    if base(ctx, file)?.is_some_and(|base| base != now) {
        return Err(UserError::new(format!(
            "Not accepted, because it was edited since it was proposed: `{file}`"
        ))
        .hint("`loci memory review` shows both; edit the memory yourself, then reject the proposal."));
    }
    let stamp = rfc3339_millis(ctx.env.clock.now());
    let after = now.as_ref().and_then(MemoryContent::as_text).map(|now| in_form_of(now, &text));
    let after = after.unwrap_or_else(|| text.clone());
    let after = with_modified_time(&after, &stamp).unwrap_or(after);
    let memory = MemoryFile::parse(&text);
    let name = memory.name.as_deref().unwrap_or(file.trim_end_matches(".md"));
    let line = index_line(name, file, memory.description.as_deref().unwrap_or_default());
    let mut edits = vec![Edit::memory(file, now, Some(after.into()))];
    edits.extend(ctx.index_edit(|index| Some(with_index_line(index, file, &line)))?);
    edits.push(Edit::pending(file, Some(text.into()), None));
    ctx.apply(ChangeKind::Accept, edits)
}

/// Returns what the memory was when the proposal was made; `None` when that is not known.
fn base(ctx: &MemoryContext, file: &str) -> Result<Option<Option<MemoryContent>>, UserError> {
    let changes = ctx.journal.changes().map_err(|error| to_user_error(&error))?;
    let proposal = changes.iter().rev().find(|change| {
        change.act == ChangeKind::Propose
            && change.files.iter().any(|it| it.area == MemoryArea::Pending && it.file == file)
    });
    let files = proposal.map(|change| change.files.as_slice()).unwrap_or_default();
    Ok(files.iter().find(|it| it.area == MemoryArea::Memory && it.file == file).map(|it| it.before.clone()))
}
