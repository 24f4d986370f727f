//! `cargo xtask startup-order`: which functions a start and a turn run, for the linker to put side by side.
//!
//! A page of code that is touched brings its neighbours into memory. Where what runs at every start lies scattered over the
//! whole program, most of the program is resident before the first request leaves. This chore runs a release build with its
//! symbols under callgrind, through a turn with calls, a start at a terminal and one that goes on with that turn, and writes
//! a list of the names that ran, of which `crates/loci/build.rs` makes a script for the linker. Names are patterns without the compiler's hashes, so
//! that the list holds for other machines and later versions; a name that no longer exists costs nothing.

use crate::bench::turn_model::{Reply, TurnModel};
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const LIST: &str = "crates/loci/startup-order.txt";
const USAGE: &str = "\
Usage: cargo xtask startup-order [--loci BIN]

  --loci BIN   a release build that has its symbols; without it, one is built";
/// How much of a name tells it from all others, but for a few; some have thousands of characters. All of it is ASCII.
const NAME_LIMIT: usize = 300;
/// The key that requests are sent with, and that the person has agreed to.
const KEY: &str = "sk-ant-test";
/// What a person does at the terminal, who looks, types and takes something back; callgrind makes it all some fifty times
/// slower. What is typed comes through a pipe whose end would have the interface leave.
const PERSON: &str = "(sleep 20; printf 'hi there'; sleep 4; printf '\\177'; sleep 4; sleep 10)";
/// How long the interface is looked at.
const TERMINAL_SECONDS: u32 = 32;

/// Runs the program and writes the list.
pub(crate) fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let loci = match words {
        [] => build(root)?,
        [flag, path] if flag == "--loci" => {
            std::path::absolute(path).context("Failed to resolve the program")?
        }
        _ => bail!(USAGE),
    };
    let place = std::env::temp_dir().join(format!("loci-startup-order-{}", std::process::id()));
    let profiles = ["turn.out", "terminal.out", "resumed.out"].map(|name| place.join(name));
    let measured = measure(&loci, &place, &profiles);
    let program = loci.display().to_string();
    let [turn, terminal, resumed] =
        profiles.map(|profile| ran(&std::fs::read_to_string(profile).unwrap_or_default(), &program));
    let terminal: BTreeSet<String> = terminal.union(&resumed).cloned().collect();
    std::fs::remove_dir_all(&place).context("Failed to remove the scratch directory")?;
    measured?;
    if turn.is_empty() || terminal.is_empty() {
        bail!("callgrind saw no function of `{program}`; is it stripped?");
    }
    let patterns = grouped(&turn, &terminal);
    let text: String = patterns.iter().map(|pattern| format!("{pattern}\n")).collect();
    std::fs::write(root.join(LIST), text).with_context(|| format!("Failed to write `{LIST}`"))?;
    println!("wrote {LIST}: {} patterns for {} functions", patterns.len(), turn.union(&terminal).count());
    Ok(())
}

/// Returns the patterns in the order that the linker keeps: what only a turn without a terminal runs, what both run, what
/// only a terminal runs. So each of the two has what it runs in one piece.
fn grouped(turn: &BTreeSet<String>, terminal: &BTreeSet<String>) -> Vec<String> {
    let [turn, terminal] = [turn, terminal].map(|names| names.iter().filter_map(|name| pattern(name)));
    let (turn, terminal): (BTreeSet<String>, BTreeSet<String>) = (turn.collect(), terminal.collect());
    let (alone, both) = (turn.difference(&terminal), turn.intersection(&terminal));
    alone.chain(both).chain(terminal.difference(&turn)).cloned().collect()
}

/// Builds a release that keeps its symbols, beside the ordinary one.
fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = root.join("target/startup-order");
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "-p", "loci"]).current_dir(root);
    command.env("CARGO_TARGET_DIR", &target).env("CARGO_PROFILE_RELEASE_STRIP", "none");
    if !command.status().context("Failed to run cargo")?.success() {
        bail!("Failed to build loci");
    }
    Ok(target.join("release/loci"))
}

fn measure(loci: &Path, place: &Path, profiles: &[PathBuf; 3]) -> anyhow::Result<()> {
    let (home, project) = (place.join("home"), place.join("project"));
    std::fs::create_dir_all(&home).context("Failed to make a home")?;
    std::fs::create_dir_all(&project).context("Failed to make a project")?;
    std::fs::write(project.join("README.md"), "# Hello\n").context("Failed to write a file")?;
    std::fs::write(project.join("CLAUDE.md"), "# Words\n\nBe terse.\n").context("Failed to write a file")?;
    // A person who has been here before: there is nothing to ask about before the prompt.
    let known = format!(
        r#"{{"hasCompletedOnboarding":true,"customApiKeyResponses":{{"approved":["{KEY}"]}},"projects":{{"{}":{{"hasTrustDialogAccepted":true}}}}}}"#,
        project.display()
    );
    std::fs::write(home.join(".claude.json"), known).context("Failed to write the state")?;
    for words in [
        &["init", "-q"][..],
        &["add", "."],
        &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "first"],
    ] {
        let status = Command::new("git").args(words).current_dir(&project).status();
        if !status.context("Failed to run git")?.success() {
            bail!("Failed to make a repository");
        }
    }
    let file = project.join("README.md").display().to_string();
    let model = TurnModel::start(Box::new(move |_, n| {
        let read = ("Read".to_owned(), format!("{{\"file_path\":\"{file}\"}}"));
        let shell =
            ("Bash".to_owned(), "{\"command\":\"git status --short\",\"description\":\"look\"}".to_owned());
        Some(match n {
            0 => Reply::Calls(vec![read]),
            1 => Reply::Calls(vec![shell]),
            _ => Reply::Text("Done.".to_owned()),
        })
    }))?;
    let callgrind = |profile: &Path| {
        format!("valgrind --tool=callgrind --demangle=no --callgrind-out-file={}", profile.display())
    };
    let run = |line: String| {
        let mut command = Command::new("sh");
        command.args(["-c", &line]).current_dir(&project).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &home);
        command.env("TERM", "xterm-256color").env("ANTHROPIC_API_KEY", KEY);
        command.env("ANTHROPIC_BASE_URL", model.base_url());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    let [turn, terminal, resumed] = profiles;
    let loci = loci.display();
    // What is said on the command line of most runs that are not at a terminal.
    let words = "-p hi --model claude-sonnet-4-5 --permission-mode acceptEdits";
    run(format!("{} {loci} {words}", callgrind(turn))).context("Failed to run valgrind")?;
    // `script` has a terminal for it, where it must be in the foreground; the signal has it leave as it does when it is told
    // to.
    for (profile, words) in [(terminal, ""), (resumed, " -c")] {
        let limit = format!("timeout --foreground -s TERM {TERMINAL_SECONDS}");
        let inner = format!("stty rows 40 cols 120; {limit} {} {loci}{words}", callgrind(profile));
        run(format!("{PERSON} | timeout -k 5 120 script -qec '{inner}' /dev/null"))
            .context("Failed to run `script`")?;
    }
    Ok(())
}

/// Returns the functions of a program that ran, from what callgrind wrote. A name is written once, with a number that
/// stands for it after.
fn ran(profile: &str, program: &str) -> BTreeSet<String> {
    let (mut names, mut files) = (std::collections::HashMap::new(), std::collections::HashMap::new());
    let mut is_ours = false;
    let mut found = BTreeSet::new();
    for line in profile.lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        let (id, name) = match value.split_once(' ') {
            Some((id, name)) => (id, Some(name)),
            None => (value, None),
        };
        match key {
            "ob" | "cob" => {
                let file = *files.entry(id).or_insert(name.unwrap_or_default());
                if key == "ob" {
                    // valgrind knows no file for what an earlier list has put into a section of its own.
                    is_ours = file == program || file == "???";
                }
            }
            "fn" | "cfn" => {
                let name = *names.entry(id).or_insert(name.unwrap_or_default());
                if key == "fn" && is_ours {
                    // A function that calls itself is counted by depth: `name'2`.
                    found.insert(name.split('\'').next().unwrap_or(name).to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns what stands for a name whatever the compiler adds to it; none for names that a linker script cannot have.
fn pattern(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    if name.is_empty() || !name.chars().all(is_plain) || name.starts_with("0x") {
        return None;
    }
    // Copies that the optimiser makes have a number, or a name of its own, behind a dot.
    let is_rust = name.starts_with("_ZN") || name.starts_with("_R");
    if let Some((path, _)) = name.split_once("17h").filter(|_| name.starts_with("_ZN")) {
        return Some(format!("{path}17h*"));
    }
    let whole = if is_rust { name.split('.').next().unwrap_or(name) } else { name };
    if name.starts_with("_R") {
        let pattern = without_crate_hashes(whole);
        let pattern = without_instantiating_crate(&pattern);
        return Some(format!("{}*", &pattern[..pattern.len().min(NAME_LIMIT)]));
    }
    Some(whole.to_owned())
}

/// Leaves out the crate that a generic function was made in, the last word of its name or a number that stands for it: several
/// crates make the same one, and which of them is kept differs from build to build.
fn without_instantiating_crate(pattern: &str) -> &str {
    let by_number = pattern.strip_suffix('_').and_then(|rest| rest.rsplit_once('B'));
    if let Some((before, number)) = by_number
        && number.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        return before;
    }
    let Some((before, last)) = pattern.rsplit_once("Cs*_") else { return pattern };
    let word = last.trim_start_matches(|c: char| c.is_ascii_digit());
    let length = last[..last.len() - word.len()].parse::<usize>();
    // A name that begins with such a word is that of something in the crate.
    let is_last = length.is_ok_and(|length| word.trim_start_matches('_').len() == length);
    if is_last { before } else { pattern }
}

/// Replaces the hashes of crates (`Cs…_`) by a wildcard: they change with each version of the compiler.
fn without_crate_hashes(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = rest.find("Cs") {
        let (before, hash) = rest.split_at(at + 2);
        let end = hash.find(|c: char| !c.is_ascii_alphanumeric());
        out.push_str(before);
        match end.filter(|end| *end >= 8 && hash[*end..].starts_with('_')) {
            Some(end) => {
                out.push('*');
                rest = &hash[end..];
            }
            None => rest = hash,
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_program_are_found_by_their_numbers() {
        let profile = "ob=(1) /bin/loci\nfn=(1) _ZN4main17h0123456789abcdefE\ncob=(2) /lib/libc.so\ncfn=(2) malloc\n\
                       ob=(2)\nfn=(2)\nob=(1)\ncfn=(3) helper\nfn=(3)\nfn=(1)\nfn=(4) twice'2\n";
        let found: Vec<String> = ran(profile, "/bin/loci").into_iter().collect();
        assert_eq!(found, ["_ZN4main17h0123456789abcdefE", "helper", "twice"]);
    }

    #[test]
    fn functions_that_an_earlier_list_has_moved_are_found_again() {
        let profile = "ob=(1) ???\nfn=(1) _ZN4main17h0123456789abcdefE\nob=(2) /lib/libc.so\nfn=(2) malloc\n";
        let found: Vec<String> = ran(profile, "/bin/loci").into_iter().collect();
        assert_eq!(found, ["_ZN4main17h0123456789abcdefE"]);
    }

    #[test]
    fn each_kind_of_start_has_its_functions_in_one_piece() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect();
        let (turn, terminal) = (names("a b c d"), names("a c e z"));
        assert_eq!(grouped(&turn, &terminal), ["b", "d", "a", "c", "e", "z"]);
    }

    #[test]
    fn patterns_have_no_hashes_of_the_compiler() {
        for (name, expected) in [
            ("_ZN4clap3arg17h0123456789abcdefE", Some("_ZN4clap3arg17h*")),
            ("_ZN4clap3arg17h0123456789abcdefE.llvm.99", Some("_ZN4clap3arg17h*")),
            ("_RNvMs0_NtCsjrHSEGnQ3l9_3std4sync.2159", Some("_RNvMs0_NtCs*_3std4sync*")),
            (
                "_RINvNtCsgEmfK2I1SDS_4core3ptr9drop_itECs4KuhHKtSH9e_8loci_app",
                Some("_RINvNtCs*_4core3ptr9drop_itE*"),
            ),
            (
                "_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vec4growCs4KuhHKtSH9e_8loci_app",
                Some("_RNvMs3_NtCs*_5alloc7raw_vec4grow*"),
            ),
            ("_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vec4growBN_", Some("_RNvMs3_NtCs*_5alloc7raw_vec4grow*")),
            ("_RNvCs4KuhHKtSH9e_8loci_app4main", Some("_RNvCs*_8loci_app4main*")),
            ("ts_parser_new", Some("ts_parser_new")),
            ("0x0000000000123456", None),
            ("(below main)", None),
        ] {
            assert_eq!(pattern(name).as_deref(), expected, "{name}");
        }
    }
}
