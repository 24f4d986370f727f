//! Files of the person's own that are read beside this thread: key bindings and themes. They are looked at again whenever
//! the window gets the focus, a prompt is sent, somebody types again after a pause or one of them was edited here, so that a
//! change counts without a restart. Not every terminal tells of the focus.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use loci_app::UserError;
use loci_storage::layout::ConfigHome;

use super::super::News;
use super::EventLoop;
use crate::block::{Block, NoticeLevel};
use crate::input::edit_file;
use crate::keymap::KEY_BINDINGS_TEMPLATE;
use crate::theme::ThemeFile;

/// A larger file is not read.
const MOST_BYTES: u64 = 256 * 1024;
/// More themes are not listed.
const MOST_THEMES: usize = 200;

/// What was read last, to tell whether something has changed.
#[derive(Debug, Default)]
pub(super) struct OwnFiles {
    keys: Option<Result<Option<String>, String>>,
    themes: Option<Vec<ThemeFile>>,
}

/// So long nothing is typed by somebody who changes a file elsewhere.
const PAUSE: Duration = Duration::from_secs(3);

/// When something was typed last; the beginning, before that.
#[derive(Debug, Default)]
pub(super) struct TypingPause {
    last: Duration,
}

impl TypingPause {
    /// Notes that something is typed now; tells whether nothing was for a while.
    pub(super) fn is_over(&mut self, now: Duration) -> bool {
        now.saturating_sub(std::mem::replace(&mut self.last, now)) >= PAUSE
    }
}

impl EventLoop {
    /// Looks whether the person's key bindings and themes are others now, beside this thread.
    pub(super) fn read_own_files(&self) {
        let home = ConfigHome::from_env(&self.env).root().to_owned();
        let (mailbox, known) = (self.mailbox.clone(), Arc::clone(&self.own_files));
        let read = move || {
            let keys = read_key_bindings(&home.join("keybindings.json"));
            let themes = read_themes(&home.join("themes"));
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let is_first = known.keys.is_none();
            if known.keys.as_ref() != Some(&keys) && !(is_first && keys == Ok(None)) {
                mailbox.put(News::Keys(keys.clone()));
            }
            if known.themes.as_ref() != Some(&themes) {
                mailbox.put(News::Themes(themes.clone()));
            }
            (known.keys, known.themes) = (Some(keys), Some(themes));
        };
        // Without a thread all stays as it is.
        drop(std::thread::Builder::new().name("own files".to_owned()).spawn(read));
    }

    /// Lets the person edit their key bindings; a file that is not there yet is begun.
    pub(super) fn edit_key_bindings(&mut self) -> io::Result<()> {
        let path = ConfigHome::from_env(&self.env).root().join("keybindings.json");
        self.edit_own(&path, KEY_BINDINGS_TEMPLATE)
    }

    /// Lets the person edit a theme of their own; one that is not there yet is begun. Of a plugin's theme they get a copy.
    pub(super) fn edit_theme(&mut self, slug: &str, name: &str) -> io::Result<()> {
        if let Some(text) = self.app.preferences().plugin_theme(slug).map(str::to_owned) {
            let copy = format!("{}.json", slug.replace(':', "-"));
            return self.edit_own(&ConfigHome::from_env(&self.env).root().join("themes").join(copy), &text);
        }
        let path = ConfigHome::from_env(&self.env).root().join("themes").join(format!("{slug}.json"));
        let fresh = serde_json::json!({"name": name, "base": "dark", "overrides": {"claude": "#5fc7c7"}});
        self.edit_own(&path, &format!("{fresh:#}\n"))
    }

    fn edit_own(&mut self, path: &Path, template: &str) -> io::Result<()> {
        self.leave_screen()?;
        let edited = begin_file(path, template)
            .map_err(|error| format!("Failed to make a file: `{}`: {error}", path.display()))
            .and_then(|()| {
                edit_file(&mut self.terminal, &self.env.vars, path)
                    .map_err(|error| UserError::from_error(&error).to_string())
            });
        let (level, text) = match edited {
            Ok(()) => (NoticeLevel::Info, format!("`{}` was read again", path.display())),
            Err(why) => (NoticeLevel::Warning, format!("{why}. The file is `{}`", path.display())),
        };
        self.mailbox.put(News::Output(vec![Block::Notice { level, text }]));
        self.read_own_files();
        self.repaint()
    }
}

/// Makes a file, unless there is one.
pub(super) fn begin_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    match std::fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads the person's key bindings; none where there is no file.
fn read_key_bindings(path: &Path) -> Result<Option<String>, String> {
    let read = match read_small(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    read.map_err(|error| format!("Failed to read the key bindings: `{}`: {error}", path.display()))
}

/// Reads themes, in the order of their names; without the directory there are none.
fn read_themes(directory: &Path) -> Vec<ThemeFile> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    paths.sort();
    let theme = |path: &PathBuf| {
        let slug = path.file_stem()?.to_str()?;
        Some(match read_small(path) {
            Ok(text) => ThemeFile::parse(slug, &text),
            Err(error) => ThemeFile { problems: vec![error.to_string()], ..ThemeFile::parse(slug, "{}") },
        })
    };
    paths.iter().take(MOST_THEMES).filter_map(theme).collect()
}

fn read_small(path: &Path) -> io::Result<String> {
    if std::fs::metadata(path)?.len() > MOST_BYTES {
        return Err(io::Error::other("it is too large"));
    }
    loci_stdx::read_regular_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_looked_at_again_after_a_pause_and_not_with_each_key() {
        let mut pause = TypingPause::default();
        for (millis, expected) in
            [(100, false), (2_900, false), (5_899, false), (8_899, true), (8_900, false), (20_000, true)]
        {
            assert_eq!(pause.is_over(Duration::from_millis(millis)), expected, "{millis}");
        }
    }

    #[test]
    fn themes_are_read_by_the_names_of_their_files() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path();
        assert_eq!(read_themes(&dir.join("none")), []);
        for (name, text) in
            [("b.json", "{}"), ("a.json", r#"{"name": "A"}"#), ("c.txt", "{}"), ("d.json", "[")]
        {
            std::fs::write(dir.join(name), text).unwrap();
        }
        let names: Vec<String> = read_themes(dir).into_iter().map(|theme| theme.name).collect();
        assert_eq!(names, ["A", "b", "d"]);
        assert_eq!(read_themes(dir)[2].problems.len(), 1);
    }

    #[test]
    fn file_that_is_there_is_never_begun_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("themes/x.json");
        begin_file(&path, "one").unwrap();
        begin_file(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(read_key_bindings(&path), Ok(Some("one".to_owned())));
        assert_eq!(read_key_bindings(&directory.path().join("none")), Ok(None));
        assert!(read_key_bindings(directory.path()).unwrap_err().contains("Failed to read the key bindings"));
    }
}
