//! Memories as people look at them and decide about them: found by name, accepted, turned down, forgotten.
//!
//! The verbs of `loci memory` and the command `/memory` go through here; every change is one of the journal, so that it can
//! be taken back.

use std::path::PathBuf;

use loci_context::{
    MemoryFile, in_form_of, index_line, with_index_line, with_modified_time, without_index_lines,
};
use loci_stdx::{Env, rfc3339_millis};
use loci_storage::layout::ConfigHome;
use loci_storage::memory::{
    Author, ChangeKind, ChangeRequest, Edit, MEMORY_INDEX, MemoryArea, MemoryContent, MemoryError,
    MemoryJournal, MemoryText,
};

use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// The memories of a project, for those who look at them and decide about them.
pub struct MemoryContext {
    /// The ambient world.
    pub env: Env,
    /// The one way to change memories.
    pub journal: MemoryJournal,
    /// The root of the project, which memories name files of.
    pub root: PathBuf,
}

impl MemoryContext {
    /// Finds them.
    pub fn new(env: &Env) -> Result<Self, UserError> {
        let home = ConfigHome::from_env(env);
        let settings = SettingsContext::new(env);
        let places = &settings.places;
        let root = places.main_checkout().unwrap_or(places.tree_root()).to_owned();
        let chosen = settings.loaded.settings().auto_memory.directory;
        let place = loci_storage::memory::memory_place(env, &home, &root, chosen.as_deref())
            .map_err(|error| UserError::from_error(&error))?;
        Ok(Self {
            env: env.clone(),
            journal: MemoryJournal::new(&home, &place.dir),
            root: places.tree_root().to_owned(),
        })
    }

    /// Returns what a file holds; `None` when it is not there.
    pub fn content(&self, area: MemoryArea, file: &str) -> Result<Option<MemoryContent>, UserError> {
        self.journal.content(area, file).map_err(|error| to_user_error(&error))
    }

    /// Returns the text of a file that words are to be changed of; what is not UTF-8 would not stay as it is.
    pub fn exact_text(&self, area: MemoryArea, file: &str) -> Result<Option<String>, UserError> {
        let Some(content) = self.content(area, file)? else { return Ok(None) };
        content.as_text().map(|text| Some(text.to_owned())).ok_or_else(|| not_text(file))
    }

    /// Returns the text of a file, for people; `None` when it is not there.
    pub fn text(&self, area: MemoryArea, file: &str) -> Result<Option<String>, UserError> {
        self.journal.text(area, file).map_err(|error| to_user_error(&error))
    }

    /// Finds a memory by its file, with or without `.md`, or by its name. Those in directories, such as a team's and the
    /// logs of days, are found by their path alone.
    pub fn find(&self, name: &str) -> Result<(String, String), UserError> {
        let files = loci_storage::memory::memory_files(self.journal.dir());
        if let Some(found) = find(files, name)? {
            return Ok((found.file, found.text));
        }
        let file = with_suffix(name.trim());
        match self.text(MemoryArea::Memory, &file) {
            Ok(Some(text)) if file.contains('/') => return Ok((file, text)),
            // One that is there and cannot be read says why.
            Err(user_error) if !file.contains('/') => return Err(user_error),
            _ => {}
        }
        Err(UserError::new(format!("No such memory: `{name}`"))
            .hint("`loci memory list` shows what there is."))
    }

    /// Returns the index, or why it cannot be read.
    pub fn index(&self) -> Result<String, String> {
        let text = self.journal.text(MemoryArea::Memory, MEMORY_INDEX);
        text.map(Option::unwrap_or_default).map_err(|error| to_user_error(&error).message().to_owned())
    }

    /// Finds a proposal's file in the same way.
    pub fn find_pending(&self, name: &str) -> Result<String, UserError> {
        find(self.journal.pending(), name)?.map(|found| found.file).ok_or_else(|| {
            UserError::new(format!("No such proposal: `{name}`"))
                .hint("`loci memory review` shows what there is.")
        })
    }

    /// Returns the files of the proposals that are named, or of all of them, each once.
    pub fn chosen(&self, names: &[String], all: bool) -> Result<Vec<String>, UserError> {
        if all {
            return Ok(self.journal.pending().into_iter().map(|it| it.file).collect());
        }
        if names.is_empty() {
            return Err(UserError::new("No proposal is named")
                .hint("Name some, or say --all; `loci memory review` shows what there is."));
        }
        let mut files: Vec<String> = Vec::new();
        for name in names {
            let file = self.find_pending(name)?;
            files.extend((!files.contains(&file)).then_some(file));
        }
        Ok(files)
    }

    /// Makes a change in the name of the person at the keyboard; returns its number.
    pub fn apply(&self, act: ChangeKind, edits: Vec<Edit>) -> Result<u64, UserError> {
        let wish = ChangeRequest { act, by: Author::Person, session: None, message: None };
        self.journal
            .apply(&self.env, &wish, edits)
            .map(|change| change.id)
            .map_err(|error| to_user_error(&error))
    }

    /// Returns the index as it is, and as it is to be.
    pub fn index_edit(&self, change: impl FnOnce(&str) -> Option<String>) -> Result<Option<Edit>, UserError> {
        let before = self.content(MemoryArea::Memory, MEMORY_INDEX)?;
        let text = before.as_ref().map(MemoryContent::to_text_lossy).unwrap_or_default();
        let Some(after) = change(&text).filter(|after| *after != text) else { return Ok(None) };
        if before.as_ref().is_some_and(|it| it.as_text().is_none()) {
            return Err(not_text(MEMORY_INDEX));
        }
        Ok(Some(Edit::memory(MEMORY_INDEX, before, Some(after.into()))))
    }
}

/// Lets a proposal count; returns the number of the change.
pub fn accept(ctx: &MemoryContext, file: &str) -> Result<u64, UserError> {
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

/// Turns a proposal down; returns the number of the change.
pub fn reject(ctx: &MemoryContext, file: &str) -> Result<u64, UserError> {
    let content = ctx.content(MemoryArea::Pending, file)?.ok_or_else(|| no_such_proposal(file))?;
    ctx.apply(ChangeKind::Reject, vec![Edit::pending(file, Some(content), None)])
}

/// Removes a memory and its line in the index; returns the number of the change.
pub fn forget(ctx: &MemoryContext, file: &str) -> Result<u64, UserError> {
    let content = ctx.content(MemoryArea::Memory, file)?;
    let mut edits = vec![Edit::memory(file, content, None)];
    edits.extend(ctx.index_edit(|index| without_index_lines(index, file))?);
    ctx.apply(ChangeKind::Forget, edits)
}

/// Finds a text by its file or its name. Who names a file means that file, and no other that happens to be called so.
fn find(files: Vec<MemoryText>, name: &str) -> Result<Option<MemoryText>, UserError> {
    let name = name.trim();
    let by_file = |file: &str| files.iter().position(|it| it.file == file);
    if let Some(idx) = by_file(name).or_else(|| by_file(&format!("{name}.md"))) {
        return Ok(files.into_iter().nth(idx));
    }
    let is_called = |it: &MemoryText| {
        MemoryFile::parse(&it.text).name.is_some_and(|it| it.to_lowercase() == name.to_lowercase())
    };
    let mut called: Vec<MemoryText> = files.into_iter().filter(is_called).collect();
    if called.len() > 1 {
        let files: Vec<String> = called.iter().map(|it| format!("`{}`", it.file)).collect();
        return Err(UserError::new(format!("Several are called `{name}`: {}", files.join(", ")))
            .hint("Name the file of the one you mean."));
    }
    Ok(called.pop())
}

fn with_suffix(name: &str) -> String {
    if name.ends_with(".md") { name.to_owned() } else { format!("{name}.md") }
}

/// Somebody else has dealt with a proposal meanwhile.
pub fn no_such_proposal(file: &str) -> UserError {
    UserError::new(format!("No such proposal any more: `{file}`"))
        .hint("`loci memory history` shows what became of it.")
}

/// Says that a file is not text.
pub fn not_text(file: &str) -> UserError {
    UserError::new(format!("Not changed, because it is not UTF-8 and would not stay as it is: `{file}`"))
        .hint("Convert it first, for example with `iconv`.")
}

/// Says why memories were not changed.
pub fn to_user_error(error: &MemoryError) -> UserError {
    let user_error = UserError::from_error(error);
    match error {
        MemoryError::Conflict { .. } => {
            user_error.hint("What was edited stays. Look at it with `loci memory show`, then decide again.")
        }
        MemoryError::Write { .. } => {
            user_error.hint("It is noted, and is made with the next change, once there is room for it.")
        }
        MemoryError::Journal { .. } | MemoryError::Lock(_) => user_error
            .hint("Nothing was changed. There must be room there, and you must be allowed to write."),
        MemoryError::NoChange(_) => user_error.hint("`loci memory history` lists the changes there are."),
        MemoryError::Undone(_, by) => user_error.hint(format!("`loci memory undo {by}` takes that back.")),
        _ => user_error,
    }
}
