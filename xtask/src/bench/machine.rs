//! Facts that belong beside figures: the machine, and which versions were measured.

use super::figures::Program;
use super::isolation::Isolation;
use anyhow::{Context, bail};
use std::path::Path;

/// Returns the machine in a sentence.
pub(crate) fn describe() -> String {
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu_model(&cpuinfo).unwrap_or("an unnamed CPU");
    format!("{n_cores} cores of {cpu}, {}, release build.", std::env::consts::OS)
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
    let version = version(&String::from_utf8_lossy(&output.stdout)).map(|version| format!(" {version}"));
    Ok(format!("{}{}", program.label(), version.unwrap_or_default()))
}

/// Finds the first word that begins like a version.
fn version(text: &str) -> Option<String> {
    text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (text, expected) in [
            ("2.1.197 (Claude Code)\n", Some("2.1.197")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            ("loci 0.1.0\n", Some("0.1.0")),
            ("hello\n", None),
        ] {
            assert_eq!(version(text).as_deref(), expected);
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
