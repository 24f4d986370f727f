//! Facts that belong beside figures: the machine, and which versions were measured.

use super::figures::Program;
use super::isolation::Isolation;
use anyhow::{Context, bail};
use std::path::Path;

/// Returns the machine in a sentence, with what else it had to do: figures of a busy machine are not worth much.
pub(crate) fn describe() -> String {
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let loadavg = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cpu = cpu_model(&cpuinfo).unwrap_or("an unnamed CPU");
    let load = loadavg.split_whitespace().next().unwrap_or("unknown");
    format!(
        "{n_cores} cores of {cpu}, {}, release build; load average before the run: {load}.",
        std::env::consts::OS
    )
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    cpuinfo.lines().find_map(|line| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim()))
}

/// Returns a program's name with its version, as it says itself, in an empty home and without a network.
pub(crate) fn name(isolation: &Isolation, program: Program, path: &Path) -> anyhow::Result<String> {
    let home = std::env::temp_dir().join(format!("loci-bench-home-{}", std::process::id()));
    std::fs::create_dir_all(&home).context("Failed to make an empty home")?;
    let mut command = isolation.command("env");
    let path_var = std::env::var("PATH").unwrap_or_default();
    command.arg("-i").arg(format!("PATH={path_var}")).arg(format!("HOME={}", home.display()));
    let output = command.arg(path).arg("--version").current_dir(&home).output();
    std::fs::remove_dir_all(&home).context("Failed to remove the empty home")?;
    let output = output.with_context(|| format!("Failed to run `{}`", path.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("{} does not start: `{} --version`: {said}", program.label(), path.display());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(version(program, &said)
        .map_or(program.label().to_owned(), |version| format!("{} {version}", program.label())))
}

/// Finds the first word that begins like a version, behind the program's own name if it says that.
fn version(program: Program, text: &str) -> Option<&str> {
    let text = text.rsplit_once(program.key()).map_or(text, |(_, rest)| rest);
    let word = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(word.trim_end_matches(')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (program, text, expected) in [
            (Program::Claude, "2.1.197 (Claude Code)\n", Some("2.1.197")),
            (Program::Codex, "codex-cli 0.166.0\n", Some("0.166.0")),
            (Program::Loci, "2.1.197 (Claude Code compatible; loci 0.1.0)\n", Some("0.1.0")),
            (Program::Loci, "hello\n", None),
        ] {
            assert_eq!(version(program, text), expected);
        }
    }

    #[test]
    fn the_cpu_is_named() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: Abacus 3\nmodel name\t: Abacus 3\n"),
            Some("Abacus 3")
        );
        assert_eq!(cpu_model(""), None);
    }
}
