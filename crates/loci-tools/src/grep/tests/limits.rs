//! How a search ends before its end: time, cancelling, size; and that threads do not show.

use tokio::sync::mpsc;

use super::search::FileHits;
use super::*;

/// Runs the second phase alone, on one thread.
pub(super) fn search(
    host: &TestHost,
    input: Value,
    files: Vec<WalkEntry>,
    cancel: CancellationToken,
) -> (Vec<FileHits>, Ending) {
    let request = Arc::new(Request::parse(&input, &host.workspace()).unwrap());
    let limit = Limit::start(&host.env(), cancel);
    let root = Root::Dir(walk::open_root(&request.root).unwrap());
    let search = Search { request, limit, cwd: host.project(), root, n_threads: 1 };
    let (sender, mut receiver) = mpsc::channel(1_024);
    let ending = std::thread::scope(|scope| scope.spawn(|| search.run(files, &sender)).join().unwrap());
    drop(sender);
    let mut hits = Vec::new();
    while let Ok(next) = receiver.try_recv() {
        hits.push(next);
    }
    (hits, ending)
}

/// Runs the call with the time limit coming at every possible moment and says how often each thing happened:
/// error, partial result, whole result.
async fn run_out_of_time(files: &[(&str, &str)], input: Value, n_moments: usize) -> [usize; 3] {
    let mut host = project(files);
    let whole = grep(&host, input.clone()).await;
    let mut n_outcomes = [0; 3];
    for moment in 1..n_moments {
        host.env_mut().clock = Arc::new(TripClock::jump(moment, Duration::from_secs(20)));
        let tool = Grep { n_threads: 1, ..Grep::default() };
        let outcome = host.call(&tool, input.clone()).await;
        let shown = text(&outcome);
        if outcome.is_failure() {
            assert!(shown.contains("in 20 s: nothing was found"), "{shown}");
            n_outcomes[0] += 1;
        } else if outcome.structured["partial"] == json!(true) {
            let (page, note) = shown.split_once("\n\n(Partial result: ").unwrap();
            assert!(note.starts_with("the search stopped at its limit of 20 s"), "{note}");
            for line in page.lines().filter(|line| !line.starts_with("Found ")) {
                assert!(whole.lines().any(|known| known == line), "{line}");
            }
            n_outcomes[1] += 1;
        } else {
            assert_eq!(shown, whole);
            n_outcomes[2] += 1;
        }
    }
    n_outcomes
}

#[tokio::test]
async fn out_of_time_is_partial_or_an_error_in_every_mode() {
    let files = [("a", "x\nx\ny\nx\n"), ("b", "x\n"), ("c", "y\n"), ("d", "x\nx\n")];
    for mode in ["files_with_matches", "content", "count"] {
        let input = json!({"pattern": "x", "output_mode": mode, "-C": 1});
        let n_outcomes = run_out_of_time(&files, input, 40).await;
        assert!(n_outcomes.iter().all(|n| *n > 0), "{mode}: {n_outcomes:?}");
    }
    // Where nothing matches there is nothing to be partial about.
    let n_outcomes = run_out_of_time(&files, json!({"pattern": "absent"}), 40).await;
    assert!(n_outcomes[0] > 0 && n_outcomes[1] == 0 && n_outcomes[2] > 0, "{n_outcomes:?}");
}

/// What a result lacks, and its totals, are seen where only a preview of it is.
#[test]
fn partial_and_totals_survive_the_preview() {
    let host = small();
    for (mode, totals) in [
        ("files_with_matches", "Found 400 files"),
        ("content", "(Lines 1-250 shown, more follow."),
        ("count", "Found 1200 matching lines in 400 files"),
    ] {
        let input = json!({"pattern": "x", "output_mode": mode, "head_limit": if mode == "content" { 250 } else { 0 }});
        let request = Request::parse(&input, &host.workspace()).unwrap();
        let mut tally = Tally::new(&request);
        for n in 0..400 {
            let path = format!("some/long/directory/of/a/large/project/file_{n}.rs");
            let lines =
                if mode == "content" { vec![format!("{path}:1:x and more words")] } else { Vec::new() };
            if tally.add(FileHits { path, n_matches: 3, lines, problem: None }).is_break() {
                break;
            }
        }
        let outcome = tally.into_outcome(Some(Partial::Time(20)));
        let whole = text(&outcome);
        let preview = crate::spill_preview(whole, whole.len() as u64, Err(std::io::Error::other("none")));
        assert!(preview.len() < 2_400, "{mode}: {}", preview.len());
        assert!(preview.contains("(Partial result: the search stopped at its limit of 20 s"), "{preview}");
        assert!(preview.contains(totals), "{mode}: {preview}");
    }
}

#[test]
fn the_last_line_of_a_file_cut_off_is_dropped() {
    let files = || vec![WalkEntry { path: "a".into(), modified: SystemTime::UNIX_EPOCH, target: None }];
    let mut host = project(&[("a", "x 1\nx 2\nx 3\n")]);
    let mut lengths = Vec::new();
    for moment in 1..12 {
        host.env_mut().clock = Arc::new(TripClock::jump(moment, Duration::from_secs(20)));
        let input = json!({"pattern": "x", "output_mode": "content"});
        let (hits, ending) = search(&host, input, files(), CancellationToken::new());
        let n_lines = hits.first().map_or(0, |hits| hits.lines.len());
        assert_eq!(ending == Ending::Complete, n_lines == 3, "{moment}");
        lengths.push(n_lines);
    }
    lengths.dedup();
    // Two lines are left when time runs out at the end of the file, after all three were found.
    assert_eq!(lengths, [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_walk_out_of_time_leaves_time_to_search() {
    let mut host = project(&[("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")]);
    let mut n_partial = 0;
    for moment in 1..12 {
        host.env_mut().clock = Arc::new(TripClock::jump(moment, Duration::from_secs(10)));
        let outcome = host.call(&Grep::default(), json!({"pattern": "x"})).await;
        if outcome.structured["partial"] == json!(true) {
            assert_ne!(outcome.structured["numFiles"], json!(0));
            n_partial += 1;
        }
    }
    assert!(n_partial > 0);
}

#[tokio::test]
async fn a_cancelled_call_ends() {
    let host = small();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = host.call_with(&Grep::default(), json!({"pattern": "x"}), cancel).await;
    assert!(outcome.is_failure() && text(&outcome).contains("interrupted"), "{}", text(&outcome));
}

#[test]
fn cancelling_ends_the_search_inside_a_long_file() {
    let mut host = project(&[("a", &"no match here\n".repeat(1_000_000))]);
    let cancel = CancellationToken::new();
    let trip = cancel.clone();
    let clock = Arc::new(TripClock::act(20, move || trip.cancel()));
    host.env_mut().clock = clock.clone();
    let files = vec![WalkEntry { path: "a".into(), modified: SystemTime::UNIX_EPOCH, target: None }];
    let (hits, ending) = search(&host, json!({"pattern": "x"}), files, cancel);
    assert_eq!((hits.len(), ending), (0, Ending::Cancelled));
    // 14 MB are more than two hundred reads; it stopped after the one at which it was cancelled.
    assert!(clock.n_readings() < 25, "{}", clock.n_readings());
}

#[test]
fn too_much_text_is_partial() {
    let line = format!("{}\n", "x".repeat(499));
    let host = project(&[("a", &line.repeat(22_000)), ("b", &line.repeat(22_000))]);
    let found = |name: &str| WalkEntry { path: name.into(), modified: SystemTime::UNIX_EPOCH, target: None };
    let input = json!({"pattern": "x", "output_mode": "content", "head_limit": 0});
    let (hits, ending) = search(&host, input, vec![found("a"), found("b")], CancellationToken::new());
    assert_eq!(ending, Ending::Full);
    let n_bytes: usize = hits.iter().flat_map(|hits| &hits.lines).map(|line| line.len() + 1).sum();
    assert!(hits.len() == 2 && n_bytes <= sink::MAX_BYTES && n_bytes > sink::MAX_BYTES / 2, "{n_bytes}");
    let request = Request::parse(&json!({"pattern": "x"}), &host.workspace()).unwrap();
    let mut tally = Tally::new(&request);
    assert!(hits.into_iter().all(|hits| tally.add(hits).is_continue()));
    let limit = Limit::start(&host.env(), CancellationToken::new());
    let outcome = outcome(tally, &request, false, &limit, [ending, Ending::Complete]);
    assert!(text(&outcome).contains("more than a search can hold"), "{}", text(&outcome));
}

/// Fills directories with hard links, which are much quicker to make than files.
fn link_many(host: &TestHost, n_dirs: usize, n_files: usize, source: impl Fn(usize) -> String) {
    for dir_idx in 0..n_dirs {
        let dir = host.project().join(format!("d{dir_idx:03}"));
        std::fs::create_dir(&dir).unwrap();
        for idx in 0..n_files {
            std::fs::hard_link(host.project().join(source(idx)), dir.join(format!("f{idx:03}"))).unwrap();
        }
    }
}

#[tokio::test]
async fn the_result_does_not_depend_on_threads() {
    let host = project(&[("0", "x\ny\nx\n"), ("1", "x 1\n"), ("2", "y\n"), ("3", "x 3\ny\nx\ny\n")]);
    link_many(&host, 8, 80, |idx| (idx % 4).to_string());
    for mode in ["files_with_matches", "content", "count"] {
        for head_limit in [0, 7, 600] {
            let input = json!({"pattern": "x", "output_mode": mode, "head_limit": head_limit, "-A": 1});
            let alone = Grep { n_threads: 1, ..Grep::default() };
            let expected = host.call(&alone, input.clone()).await;
            for _ in 0..3 {
                let many = Grep { n_threads: 4, ..Grep::default() };
                assert_eq!(host.call(&many, input.clone()).await, expected, "{input}");
            }
        }
    }
}

#[tokio::test]
async fn twenty_thousand_files_are_no_trouble() {
    let host = project(&[("0", "x\n")]);
    link_many(&host, 200, 100, |_| "0".to_owned());
    std::fs::remove_file(host.project().join("0")).unwrap();
    let outcome = host.call(&Grep::default(), json!({"pattern": "x"})).await;
    assert_eq!(outcome.structured["numFiles"], json!(250));
    assert_eq!(outcome.structured["appliedLimit"], json!(250));
    let outcome = host.call(&Grep::default(), json!({"pattern": "x", "output_mode": "count"})).await;
    assert_eq!(outcome.structured["numMatches"], json!(20_000));
    let outcome = host.call(&crate::glob::Glob::default(), json!({"pattern": "**/f*"})).await;
    assert_eq!(
        (&outcome.structured["totalMatches"], &outcome.structured["numFiles"]),
        (&json!(20_000), &json!(100))
    );
}
