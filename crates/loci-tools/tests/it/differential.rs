//! What the analysis says a line runs and writes, beside what bash really ran and wrote.
//!
//! Lines are made up from commands that do nothing but write down how they were called. Each is run by a real bash
//! in a directory of its own, and everything that was called must be among the readings of the analysis, or the
//! analysis must have said that it does not understand the line. The seed is fixed, so a failure comes again.
//!
//! `effects` judges lines by what they then do on the disk, under several modes and rules, a rule for every command among
//! them; `git` holds the same for what git takes for a repository and reads in its configuration. By day each takes a second
//! or two; `LOCI_DIFFERENTIAL=200 cargo test -p loci-tools --test it differential` tries two hundred times as many cases.

mod effects;
mod generate;
mod git;
mod random;
mod scratch;

use loci_core::tool::{HOLE, Unclear};
use loci_shell::{ShellContext, ShellReading, analyse};

use generate::Generator;
use random::n_cases;
use scratch::{Ran, Scratch};

/// How many lines of each kind are tried by day.
const N_LINES: usize = 150;

#[test]
fn commands_bash_runs_are_in_the_analysis() {
    check("lines", n_cases(N_LINES), Generator::line);
}

#[test]
fn commands_bash_runs_in_broken_lines_are_in_the_analysis() {
    check("rubble", n_cases(N_LINES), Generator::rubble);
}

fn check(kind: &str, n_lines: usize, make: fn(&mut Generator) -> String) {
    let scratch = Scratch::new();
    let mut generator = Generator::new(0x10c1, &scratch.bin());
    let (mut missed, mut n_called, mut n_understood) = (Vec::new(), 0, 0);
    for _ in 0..n_lines {
        let line = make(&mut generator);
        let ctx = ShellContext { cwd: &scratch.work(), home: &scratch.home() };
        let reading = analyse(&line, &ctx);
        let ran = scratch.run(&line);
        n_called += ran.calls.len();
        n_understood += usize::from(reading.unknown.is_empty());
        missed.extend(
            unseen(&reading, &ran).map(|what| format!("{line:?}\n  {what}\n  {:?}", readings(&reading))),
        );
    }
    let n_missed = missed.len();
    assert!(missed.is_empty(), "{n_missed} of {n_lines} {kind}:\n{}", missed.join("\n"));
    assert!(n_called > n_lines / 4, "of {n_lines} {kind} only {n_called} commands ran");
    assert!(n_understood > n_lines / 8, "of {n_lines} {kind} only {n_understood} are understood");
}

/// Returns something that happened and was not seen.
fn unseen(reading: &ShellReading, ran: &Ran) -> Option<String> {
    if !reading.unknown.is_empty() {
        return None;
    }
    let call = ran.calls.iter().find(|call| !readings(reading).iter().any(|text| could_be(text, call)));
    if let Some(call) = call {
        return Some(format!("`{call}` ran"));
    }
    let runs_any = readings(reading).iter().any(|text| text.chars().eq([HOLE]));
    let may_write_any = runs_any || reading.unclear.iter().any(|it| matches!(it, Unclear::Write(_)));
    let is_said = |path: &std::path::PathBuf| reading.writes.iter().any(|it| it.path == *path);
    let written = ran.written.iter().find(|path| !may_write_any && !is_said(path))?;
    Some(format!("`{}` was written", written.display()))
}

fn readings(reading: &ShellReading) -> Vec<&str> {
    reading.commands.iter().flat_map(|command| &command.readings).map(String::as_str).collect()
}

/// Returns true when a reading, with anything in its holes, is the call.
fn could_be(reading: &str, call: &str) -> bool {
    let Some((head, rest)) = reading.split_once(HOLE) else { return reading == call };
    let Some(call) = call.strip_prefix(head) else { return false };
    call.char_indices().map(|(at, _)| at).chain([call.len()]).any(|at| could_be(rest, &call[at..]))
}

#[test]
fn holes_stand_for_anything() {
    for (reading, call, expected) in [
        ("alpha x", "alpha x", true),
        ("alpha x", "alpha y", false),
        ("alpha \0", "alpha y z", true),
        ("\0", "alpha", true),
        ("alpha \0 z", "alpha y z", true),
        ("alpha \0 z", "alpha y", false),
        ("al\0", "beta", false),
    ] {
        assert_eq!(could_be(reading, call), expected, "{reading:?} {call}");
    }
}
