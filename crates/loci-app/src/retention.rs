//! Putting old sessions away, a few at a time and once a day, when settings say how long they stay.

use std::fs;
use std::time::Duration;

use loci_stdx::{Env, create_private_dir_all, write_private};
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::archive_older;

/// The most that one run puts away: nobody wants to wait for it.
const MOST: usize = 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Archives sessions in which nothing was said for so many days. What comes of it is in the audit log.
pub fn sweep(env: &Env, home: &ConfigHome, days: Option<u64>) {
    let Some(days) = days else { return };
    let mark = home.loci_dir().join("swept");
    let is_done = fs::metadata(&mark)
        .and_then(|metadata| metadata.modified())
        .is_ok_and(|swept| swept.elapsed().is_ok_and(|elapsed| elapsed < DAY));
    if is_done {
        return;
    }
    // Sessions that cannot be listed or put away stay; the next run tries again.
    let Ok(swept) = archive_older(home, days, MOST, env.clock.now()) else { return };
    if swept.len() < MOST {
        drop(create_private_dir_all(&home.loci_dir()).and_then(|()| write_private(&mark, b"")));
    }
}
