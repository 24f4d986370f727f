//! Putting old sessions away, a few at a time and once a day, when settings say how long they stay; traces, long pastes of
//! the input history, and worktrees that agents left with nothing in them go with them. Copies of plugins that nothing is
//! installed from go a fortnight later, and temporary files of writers that were killed a day later, whatever settings say.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use loci_stdx::{Env, create_private_dir_all, write_private};
use loci_storage::config::sweep_orphans;
use loci_storage::doctor::sweep_temporary_files;
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::archive_older;
use loci_storage::worktree::sweep_agent_worktrees;

use crate::plugins::plugins_dir;

/// The most that one run puts away: nobody wants to wait for it.
const MOST: usize = 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Archives sessions in which nothing was said for so many days. What comes of it is in the audit log.
pub fn sweep(env: &Env, home: &ConfigHome, days: Option<u64>) {
    sweep_plugins(env, home);
    sweep_temporaries(home);
    let Some(days) = days else { return };
    let mark = home.loci_dir().join("swept");
    if is_done_today(&mark) {
        return;
    }
    // Sessions that cannot be listed or put away stay; the next run tries again.
    let Ok(swept) = archive_older(home, days, MOST, env.clock.now()) else { return };
    remove_old_texts(&home.root().join("debug"), days);
    remove_old_texts(&home.root().join("paste-cache"), days);
    sweep_agent_worktrees(env, &env.cwd, DAY * u32::try_from(days).unwrap_or(u32::MAX));
    if swept.len() < MOST {
        write_mark(home, &mark);
    }
}

/// Removes copies of plugins that nothing was installed from for a fortnight.
fn sweep_plugins(env: &Env, home: &ConfigHome) {
    let dir = plugins_dir(env, home);
    let mark = home.loci_dir().join("plugins-swept");
    if !dir.join("installed_plugins.json").exists() || is_done_today(&mark) {
        return;
    }
    for copy in sweep_orphans(&dir, SystemTime::now()) {
        tracing::info!(target: "loci::skills", copy = %copy.display(), "an old copy of a plugin is removed");
    }
    write_mark(home, &mark);
}

/// Removes temporary files of writers that were killed.
fn sweep_temporaries(home: &ConfigHome) {
    let mark = home.loci_dir().join("temporary-swept");
    if !home.loci_dir().exists() || is_done_today(&mark) {
        return;
    }
    for file in sweep_temporary_files(home, SystemTime::now()) {
        tracing::info!(target: "loci::storage", file = %file.display(), "a temporary file of a killed writer is removed");
    }
    write_mark(home, &mark);
}

fn is_done_today(mark: &Path) -> bool {
    let swept = fs::metadata(mark).and_then(|metadata| metadata.modified());
    swept.is_ok_and(|swept| swept.elapsed().is_ok_and(|elapsed| elapsed < DAY))
}

/// Takes note of the time. Without the note the next run does it all again, which harms nobody.
fn write_mark(home: &ConfigHome, mark: &Path) {
    drop(create_private_dir_all(&home.loci_dir()).and_then(|()| write_private(mark, b"")));
}

/// Removes traces (`--debug`), or pastes of the input history, that nobody has written to for so many days.
fn remove_old_texts(dir: &Path, days: u64) {
    let Ok(files) = fs::read_dir(dir) else { return };
    let is_old = |file: &fs::DirEntry| {
        let age = file.metadata().and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
        matches!(age, Ok(Ok(age)) if age.as_secs() / DAY.as_secs() >= days)
    };
    let is_text = |path: &Path| path.extension().is_some_and(|it| it == "txt");
    for file in files.flatten().filter(|file| is_text(&file.path()) && is_old(file)) {
        // One that cannot be removed stays; the next run tries again.
        drop(fs::remove_file(file.path()));
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_texts_older_than_the_period_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for (name, days) in [("old.txt", 40), ("new.txt", 2), ("old.other", 40)] {
            let file = fs::File::create(dir.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - DAY * days).unwrap();
        }
        remove_old_texts(dir.path(), 30);
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["new.txt", "old.other"]);
    }
}
