//! `cargo xtask torture`: the tests that are cruel to sessions, at full size.
//!
//! The cruelty itself is in the tests, which run a small dose of it every time; here they are only told to go on
//! for longer.

use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

const USAGE: &str = "\
Usage: cargo xtask torture <kind> [options]

  kill [--runs N]         kills a real loci at work, N times (default 1000), and resumes each time
  agents [--runs N]       kills a real loci with ten agents at work, N times (default 100), and lets each go on
  rewind [--runs N]       kills `loci sessions rewind` at work, N times (default 100), and starts again
  writers [--processes N] [--writes N]
                          N processes (default 32) write sessions, input history and .claude.json in one
                          config home, N times each (default 1000)
  compaction [--runs N]   N conversations (default 1000) outgrow windows of 8k to 1M tokens, built for release";

/// Runs one kind of torture.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let torture = parse(words)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--package", torture.package, "--test", "it"]).args(torture.profile);
    command.args(["--", "--exact", torture.test]);
    command.args(["--nocapture"]).envs(torture.sizes).current_dir(root);
    if !command.status().context("Failed to run cargo")?.success() {
        bail!("The torture left a mark: see above");
    }
    Ok(())
}

/// A test and how much of it.
#[derive(Debug, PartialEq)]
struct Torture {
    package: &'static str,
    test: &'static str,
    /// Flags of cargo that say how it is built.
    profile: &'static [&'static str],
    sizes: Vec<(&'static str, String)>,
}

fn parse(words: &[String]) -> anyhow::Result<Torture> {
    let (kind, options) = words.split_first().context(USAGE)?;
    match kind.as_str() {
        "kill" => Ok(Torture {
            package: "loci",
            test: "torture::a_session_survives_being_killed_at_any_moment",
            profile: &[],
            sizes: sizes(options, &[("--runs", "LOCI_TORTURE_KILLS", 1000)])?,
        }),
        "agents" => Ok(Torture {
            package: "loci",
            test: "agents::killed::agents_survive_being_killed_at_any_moment",
            profile: &[],
            sizes: sizes(options, &[("--runs", "LOCI_TORTURE_AGENTS", 100)])?,
        }),
        "rewind" => Ok(Torture {
            package: "loci",
            test: "rewind::a_rewind_that_is_killed_is_finished_at_the_next_start",
            profile: &[],
            sizes: sizes(options, &[("--runs", "LOCI_TORTURE_REWINDS", 100)])?,
        }),
        "writers" => Ok(Torture {
            package: "loci-storage",
            test: "writers::many_processes_on_one_home_lose_nothing",
            profile: &[],
            sizes: sizes(
                options,
                &[("--processes", "LOCI_TORTURE_PROCESSES", 32), ("--writes", "LOCI_TORTURE_WRITES", 1000)],
            )?,
        }),
        "compaction" => Ok(Torture {
            package: "loci-context",
            test: "torture::no_conversation_gets_stuck_or_wastes_its_tokens",
            profile: &["--release"],
            sizes: sizes(options, &[("--runs", "LOCI_TORTURE_COMPACTIONS", 1000)])?,
        }),
        _ => bail!(USAGE),
    }
}

/// Reads `--name N` options; each row is an option, its variable and its default.
fn sizes(
    words: &[String],
    table: &[(&str, &'static str, u32)],
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut sizes: Vec<(&'static str, u32)> =
        table.iter().map(|(_, variable, default)| (*variable, *default)).collect();
    for pair in words.chunks(2) {
        let row = table.iter().position(|(option, ..)| *option == pair[0]);
        let row = row.with_context(|| format!("Unknown option: `{}`\n\n{USAGE}", pair[0]))?;
        let number = pair.get(1).and_then(|text| text.parse().ok()).filter(|number| *number > 0);
        sizes[row].1 = number.with_context(|| format!("`{}` needs a number, at least 1", pair[0]))?;
    }
    Ok(sizes.into_iter().map(|(variable, number)| (variable, number.to_string())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Vec<(&'static str, String)>> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map(|torture| torture.sizes)
    }

    #[test]
    fn sizes_have_defaults() {
        assert_eq!(parsed("compaction --runs 7").unwrap(), [("LOCI_TORTURE_COMPACTIONS", "7".to_owned())]);
        assert_eq!(parsed("kill").unwrap(), [("LOCI_TORTURE_KILLS", "1000".to_owned())]);
        assert_eq!(parsed("agents --runs 3").unwrap(), [("LOCI_TORTURE_AGENTS", "3".to_owned())]);
        assert_eq!(parsed("rewind").unwrap(), [("LOCI_TORTURE_REWINDS", "100".to_owned())]);
        assert_eq!(
            parsed("writers --writes 7").unwrap(),
            [("LOCI_TORTURE_PROCESSES", "32".to_owned()), ("LOCI_TORTURE_WRITES", "7".to_owned())]
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            ("", "Usage:"),
            ("rack", "Usage:"),
            ("kill --fast", "Unknown option: `--fast`"),
            ("kill --runs", "`--runs` needs a number, at least 1"),
            ("kill --runs 0", "`--runs` needs a number, at least 1"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
    }
}
