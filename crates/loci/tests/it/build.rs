//! What tells about the build and its arguments: the version, completions for shells, manual pages.

use std::process::Command;

use loci_testkit::Step;
use serde_json::Value;

use crate::support::{World, loci};

#[tokio::test]
async fn version_names_the_build_behind_the_line_that_programs_read() {
    let world = World::new(Step::text("x")).await;
    let output = world.run(&loci().args(["--version"]));
    let lines: Vec<&str> = output.stdout.lines().collect();
    let [first, build] = lines[..] else { panic!("{output:?}") };
    assert!(
        first.ends_with(concat!("(Claude Code compatible; loci ", env!("CARGO_PKG_VERSION"), ")")),
        "{first}"
    );
    let profile = env!("CARGO_BIN_EXE_loci").rsplit('/').nth(1).unwrap();
    assert!(build.starts_with("build: ") && build.contains(profile), "{build}");
    assert!(build.contains(std::env::consts::ARCH), "{build}");

    let doctor = world.run(&loci().args(["doctor", "--json"]));
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    assert_eq!(report["build"]["profile"], profile, "{report}");
}

#[tokio::test]
async fn completions_know_every_flag_and_verb() {
    let world = World::new(Step::text("x")).await;
    for shell in ["bash", "zsh", "fish"] {
        let output = world.run(&loci().args(["completions", shell]));
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
        for word in ["permission-mode", "fork-session", "sessions", "completions", "version"] {
            assert!(output.stdout.contains(word), "{shell}: {word}");
        }
        if shell == "bash" {
            let file = world.home.write("loci.bash", &output.stdout);
            assert!(Command::new("bash").arg("-n").arg(file).status().unwrap().success());
        }
    }
    let output = world.run(&loci().args(["completions", "tea"]));
    assert!(output.code != Some(0) && output.stderr.contains("possible values"), "{output:?}");
}

#[tokio::test]
async fn manual_pages_are_printed_and_written() {
    let world = World::new(Step::text("x")).await;
    let output = world.run(&loci().args(["man"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains(".TH loci 1") && output.stdout.contains("output\\-format"), "{output:?}");
    let dir = world.path("pages");
    assert_eq!(world.run(&loci().args(["man", "--dir", &dir])).code, Some(0));
    for page in ["loci.1", "loci-sessions.1", "loci-config-set.1"] {
        let text = world.home.read(format!("pages/{page}"));
        assert!(text.contains(".SH NAME"), "{page}: {text}");
    }
    let taken = world.home.write("taken", "");
    let output = world.run(&loci().args(["man", "--dir", taken.to_str().unwrap()]));
    assert!(output.code == Some(1) && output.stderr.contains("Failed to write manual pages"), "{output:?}");
}
