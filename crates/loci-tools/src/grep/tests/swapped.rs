//! Directories and files that are swapped for symlinks while a search goes on: nothing beyond them is shown (P-12,
//! S-29).

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::glob::Glob;

/// A project with `sub`, and beside it `outside`, which holds what nobody may see under names of its own.
fn guarded() -> TestHost {
    project(&[
        ("first", "needle here"),
        ("sub/inside", "needle here"),
        ("sub/twin", "needle here"),
        ("sub/deep/inside", "needle here"),
        ("../outside/twin", "needle SECRET"),
        ("../outside/OUTSIDER", "needle SECRET"),
        ("../outside/deep/OUTSIDER", "needle SECRET"),
    ])
}

/// Puts a link to `outside` in the place of `sub`, or `sub` back.
fn swap(project: &Path) {
    let (here, away, link) = (project.join("sub"), project.join("../away"), project.join("../link"));
    if away.exists() {
        std::fs::rename(&here, &link).unwrap();
        std::fs::rename(&away, &here).unwrap();
    } else {
        if link.symlink_metadata().is_err() {
            symlink("../outside", &link).unwrap();
        }
        std::fs::rename(&here, &away).unwrap();
        std::fs::rename(&link, &here).unwrap();
    }
}

fn searches() -> [Value; 4] {
    [
        json!({"pattern": "needle", "output_mode": "content"}),
        json!({"pattern": "needle"}),
        json!({"pattern": "needle", "output_mode": "content", "path": "sub"}),
        json!({"pattern": "needle", "output_mode": "content", "path": "sub/twin"}),
    ]
}

fn globs() -> [Value; 3] {
    [json!({"pattern": "**/*"}), json!({"pattern": "sub/**"}), json!({"pattern": "*", "path": "sub"})]
}

fn assert_nothing_shown(shown: &str, when: &str) {
    assert!(!shown.contains("SECRET") && !shown.contains("OUTSIDER"), "{when}: {shown}");
}

/// Searches the whole project, whose own path nobody swaps.
async fn search_all(host: &TestHost, when: &str) -> String {
    let mut all = String::new();
    for input in &searches()[..2] {
        all += &grep(host, input.clone()).await;
    }
    all += text(&host.call(&Glob::default(), globs()[0].clone()).await);
    assert_nothing_shown(&all, when);
    all
}

#[tokio::test]
async fn a_root_that_was_swapped_since_the_verdict_is_refused() {
    for (tool, input) in [
        (&Grep::default() as &dyn Tool, searches()[2].clone()),
        (&Grep::default(), searches()[3].clone()),
        (&Glob::default(), globs()[1].clone()),
        (&Glob::default(), globs()[2].clone()),
    ] {
        let host = guarded();
        let project = host.project();
        *host.between.lock().unwrap() = Box::new(move || swap(&project));
        let outcome = host.call(tool, input.clone()).await;
        assert_nothing_shown(text(&outcome), &input.to_string());
        assert!(outcome.is_failure(), "{input}: {}", text(&outcome));
    }
}

/// The swap comes at every moment of a search at which it looks at its clock.
#[tokio::test]
async fn a_directory_that_is_swapped_meanwhile_shows_nothing() {
    for moment in 0..14 {
        for input in &searches()[..2] {
            let mut host = guarded();
            let project = host.project();
            host.env_mut().clock = Arc::new(TripClock::act(moment, move || swap(&project)));
            let tool = Grep { n_threads: 1, ..Grep::default() };
            let outcome = host.call(&tool, input.clone()).await;
            assert_nothing_shown(text(&outcome), &format!("{moment} {input}"));
            assert!(text(&outcome).contains("first"), "{moment} {input}: {}", text(&outcome));
        }
        let mut host = guarded();
        let project = host.project();
        host.env_mut().clock = Arc::new(TripClock::act(moment, move || swap(&project)));
        let outcome = host.call(&Glob::default(), globs()[0].clone()).await;
        assert_nothing_shown(text(&outcome), &format!("{moment} Glob"));
    }
}

/// The second phase alone: names that were found, of which one is behind a symlink by now.
#[tokio::test]
async fn files_are_opened_inside_the_directory_that_was_judged() {
    let host = guarded();
    swap(&host.project());
    let found = |path: &str| WalkEntry { path: path.into(), modified: SystemTime::UNIX_EPOCH, target: None };
    let files = ["first", "sub/twin", "sub/OUTSIDER", "sub/deep/OUTSIDER"].map(found).to_vec();
    let (hits, ending) = limits::search(&host, searches()[0].clone(), files, CancellationToken::new());
    let paths: Vec<PathBuf> = hits.iter().map(|hits| hits.path.clone().into()).collect();
    assert_eq!((paths, ending), (vec![PathBuf::from("first")], Ending::Complete));
}

/// Another thread swaps without pause while searches run; both stop after a fixed number of rounds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directory_swapped_in_a_loop_is_never_searched() {
    let host = guarded();
    let project = host.project();
    let is_done = Arc::new(AtomicBool::new(false));
    let neighbour = std::thread::spawn({
        let is_done = Arc::clone(&is_done);
        move || {
            let mut n_swaps = 0;
            while !is_done.load(Ordering::Relaxed) && n_swaps < 1_000_000 {
                swap(&project);
                n_swaps += 1;
            }
            n_swaps
        }
    });
    let mut n_seen = 0;
    for round in 0..20 {
        n_seen += usize::from(search_all(&host, &round.to_string()).await.contains("sub/inside"));
    }
    is_done.store(true, Ordering::Relaxed);
    let n_swaps = neighbour.join().unwrap();
    assert!(n_swaps > 0 && n_seen > 0, "{n_swaps} swaps, seen {n_seen} times");
}
