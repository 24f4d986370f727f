//! `loci memory`: what is remembered between sessions, for people and for scripts.
//!
//! One verb, one file. Each takes what is on disk and returns the text for standard output; with `--json` that is JSON.
//! Every verb that changes something does it through the journal of memories, so `undo` can take it back.

mod decide;
mod doctor;
mod edit;
mod history;
mod known;
mod list;
mod review;
mod search;
mod show;
mod stale;
mod team;
mod undo;

use std::path::PathBuf;

use loci_app::UserError;
use loci_context::MemoryFile;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_storage::memory::{
    Author, ChangeKind, ChangeRequest, Edit, MEMORY_INDEX, MemoryArea, MemoryContent, MemoryError,
    MemoryJournal, MemoryText,
};

use known::Known;
use loci_app::settings_editor::SettingsContext;

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List memories, and what is the matter with them.
    List(list::ListArgs),
    /// Print a memory and where it comes from.
    Show(show::ShowArgs),
    /// Find memories by words in them.
    Search(search::SearchArgs),
    /// Look at what was found and waits for your word.
    Review(review::ReviewArgs),
    /// Let proposals count.
    Accept(decide::ProposalArgs),
    /// Turn proposals down.
    Reject(decide::ProposalArgs),
    /// Change a memory's text.
    Edit(edit::EditArgs),
    /// Remove a memory and its line in the index.
    Forget(decide::ForgetArgs),
    /// List every change, by whom and from which session.
    History(history::HistoryArgs),
    /// Take a change back.
    Undo(undo::UndoArgs),
    /// Look for memories that need a look; exits with 1 when there are any.
    Doctor(doctor::DoctorArgs),
    /// Share memories with others through a server.
    Team(team::TeamArgs),
}

/// What every verb looks at.
struct MemoryContext {
    env: Env,
    journal: MemoryJournal,
    /// The root of the project, which memories name files of.
    root: PathBuf,
}

impl MemoryContext {
    fn new(env: &Env) -> Result<Self, UserError> {
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
    fn content(&self, area: MemoryArea, file: &str) -> Result<Option<MemoryContent>, UserError> {
        self.journal.content(area, file).map_err(|error| to_user_error(&error))
    }

    /// Returns the text of a file that words are to be changed of; what is not UTF-8 would not stay as it is.
    fn exact_text(&self, area: MemoryArea, file: &str) -> Result<Option<String>, UserError> {
        let Some(content) = self.content(area, file)? else { return Ok(None) };
        content.as_text().map(|text| Some(text.to_owned())).ok_or_else(|| not_text(file))
    }

    /// Returns the text of a file, for people; `None` when it is not there.
    fn text(&self, area: MemoryArea, file: &str) -> Result<Option<String>, UserError> {
        self.journal.text(area, file).map_err(|error| to_user_error(&error))
    }

    /// Finds a memory by its file, with or without `.md`, or by its name. Those in directories, such as a team's and the
    /// logs of days, are found by their path alone.
    fn find(&self, name: &str) -> Result<(String, String), UserError> {
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
    fn index(&self) -> Result<String, String> {
        let text = self.journal.text(MemoryArea::Memory, MEMORY_INDEX);
        text.map(Option::unwrap_or_default).map_err(|error| to_user_error(&error).message().to_owned())
    }

    /// Finds a proposal's file in the same way.
    fn find_pending(&self, name: &str) -> Result<String, UserError> {
        find(self.journal.pending(), name)?.map(|found| found.file).ok_or_else(|| {
            UserError::new(format!("No such proposal: `{name}`"))
                .hint("`loci memory review` shows what there is.")
        })
    }

    /// Returns the files of the proposals that are named, or of all of them, each once.
    fn chosen(&self, names: &[String], all: bool) -> Result<Vec<String>, UserError> {
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

    /// Deals with proposals one after the other. Where one fails, what was done before it is said all the same.
    fn each(
        &self,
        files: Vec<String>,
        json: bool,
        deal: impl Fn(&str) -> Result<String, UserError>,
    ) -> Result<String, UserError> {
        if files.is_empty() && !json {
            return Ok("Nothing waits for your word\n".to_owned());
        }
        let mut said = String::new();
        for file in files {
            match deal(&file) {
                Ok(words) => said.push_str(&words),
                Err(user_error) => {
                    print_text(&said, json)?;
                    return Err(user_error);
                }
            }
        }
        Ok(said)
    }

    /// Makes a change in the name of the person at the keyboard; returns its number.
    fn apply(&self, act: ChangeKind, edits: Vec<Edit>) -> Result<u64, UserError> {
        let wish = ChangeRequest { act, by: Author::Person, session: None, message: None };
        self.journal
            .apply(&self.env, &wish, edits)
            .map(|change| change.id)
            .map_err(|error| to_user_error(&error))
    }

    /// Returns the index as it is, and as it is to be.
    fn index_edit(&self, change: impl FnOnce(&str) -> Option<String>) -> Result<Option<Edit>, UserError> {
        let before = self.content(MemoryArea::Memory, MEMORY_INDEX)?;
        let text = before.as_ref().map(MemoryContent::to_text_lossy).unwrap_or_default();
        let Some(after) = change(&text).filter(|after| *after != text) else { return Ok(None) };
        if before.as_ref().is_some_and(|it| it.as_text().is_none()) {
            return Err(not_text(MEMORY_INDEX));
        }
        Ok(Some(Edit::memory(MEMORY_INDEX, before, Some(after.into()))))
    }
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
fn no_such_proposal(file: &str) -> UserError {
    UserError::new(format!("No such proposal any more: `{file}`"))
        .hint("`loci memory history` shows what became of it.")
}

fn not_text(file: &str) -> UserError {
    UserError::new(format!("Not changed, because it is not UTF-8 and would not stay as it is: `{file}`"))
        .hint("Convert it first, for example with `iconv`.")
}

fn to_user_error(error: &MemoryError) -> UserError {
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

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &MemoryArgs) -> Result<u8, UserError> {
    let ctx = MemoryContext::new(env)?;
    let (text, code) = match &args.verb {
        Verb::List(args) => (list::run(&ctx, args)?, 0),
        Verb::Show(args) => (show::run(&ctx, args)?, 0),
        Verb::Search(args) => (search::run(&ctx, args)?, 0),
        Verb::Review(args) => (review::run(&ctx, args)?, 0),
        Verb::Accept(args) => (decide::accept(&ctx, args)?, 0),
        Verb::Reject(args) => (decide::reject(&ctx, args)?, 0),
        Verb::Edit(args) => (edit::run(&ctx, args)?, 0),
        Verb::Forget(args) => (decide::forget(&ctx, args)?, 0),
        Verb::History(args) => (history::run(&ctx, args)?, 0),
        Verb::Undo(args) => (undo::run(&ctx, args)?, 0),
        Verb::Doctor(args) => doctor::run(&ctx, args)?,
        Verb::Team(args) => team::run(&ctx, args)?,
    };
    print_text(&text, args.verb.is_json())?;
    Ok(code)
}

/// Names and texts come from anywhere: at a terminal they are read, and do nothing.
fn print_text(text: &str, json: bool) -> Result<(), UserError> {
    match json {
        true => crate::config::write(text),
        false => crate::config::write(&loci_stdx::printable(text)),
    }
}

impl Verb {
    /// Tells whether a program reads what is printed.
    fn is_json(&self) -> bool {
        match self {
            Self::List(args) => args.json,
            Self::Show(args) => args.json,
            Self::Search(args) => args.json,
            Self::Review(args) => args.json,
            Self::Accept(args) => args.json,
            Self::Reject(args) => args.json,
            Self::Edit(args) => args.json,
            Self::Forget(args) => args.json,
            Self::History(args) => args.json,
            Self::Undo(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Team(args) => args.is_json(),
        }
    }
}

/// Says what a change was numbered, and how to take it back.
fn done(what: &str, id: u64, json: bool) -> String {
    match json {
        true => format!("{}\n", serde_json::json!({"change": id, "done": what})),
        false => format!("{what} (`loci memory undo {id}` takes it back)\n"),
    }
}
