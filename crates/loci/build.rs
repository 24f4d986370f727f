//! Names the build: its profile, its target, and the commit where that is known; and orders the code of a release.
//!
//! No process is started and nothing fails: outside a repository there is no commit. It runs again when the commit
//! changes, in builds that are handed on; a development build has none, so that a commit builds nothing anew.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=LOCI_TARGET={}", env::var("TARGET").unwrap_or_default());
    let profile = profile().unwrap_or_default();
    println!("cargo:rustc-env=LOCI_PROFILE={profile}");
    let commit = if profile == "debug" { None } else { commit() };
    println!("cargo:rustc-env=LOCI_COMMIT={}", commit.unwrap_or_default());
    // Without what follows the program is as good, and larger.
    if profile == "debug" || !knows_linker() {
        return;
    }
    if let Some(script) = startup_order() {
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{script}");
    }
    println!("cargo:rerun-if-env-changed=LOCI_PIE");
    // The program may lie anywhere: a fault in the C that reads hostile text is no use to whoever does not know where code is.
    // The loader writes 54,000 addresses at every start for that, a fraction of a millisecond where they are packed.
    match env::var("LOCI_PIE").is_ok_and(|asked| asked == "0") {
        true => println!("cargo:rustc-link-arg-bins=-no-pie"),
        false if loads_packed_relocations() => {
            println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
        false => {}
    }
}

/// Tells whether the C library here can load a program whose relative relocations are packed: the 54,000 of one that may
/// lie anywhere take 1.3 MB of a file, all read at every start, and 10 kB packed. A library that can says so by a version
/// name (glibc since 2.36); the one that this script runs with is asked, which is the program's own where nothing is built
/// for elsewhere.
fn loads_packed_relocations() -> bool {
    if env::var_os("HOST") != env::var_os("TARGET") {
        return false;
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let library = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.ends_with("/libc.so.6"));
    let name = b"GLIBC_ABI_DT_RELR";
    library
        .and_then(|path| fs::read(path).ok())
        .is_some_and(|bytes| bytes.windows(name.len()).any(|at| at == name))
}

/// Writes a script that has the linker put side by side what runs at every start (`startup-order.txt`, by `cargo xtask
/// startup-order`): fewer pages are touched, so a process is smaller. Functions that are rarely called have sections of their
/// own kind.
fn startup_order() -> Option<String> {
    let list = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join("startup-order.txt");
    println!("cargo:rerun-if-changed={}", list.display());
    let names = fs::read_to_string(list).ok()?;
    let rows = names.lines().map(|name| format!("*(.text.{name} .text.unlikely.{name})\n"));
    let rows: String = rows.collect();
    let script = PathBuf::from(env::var_os("OUT_DIR")?).join("startup-order.ld");
    fs::write(&script, format!("SECTIONS {{ .text.startup_order : {{\n{rows}}} }}\nINSERT BEFORE .text;\n"))
        .ok()?;
    // A comma would end the option.
    script.to_str().filter(|script| !script.contains(',')).map(str::to_owned)
}

/// Tells whether the linker is the one that Rust brings along for this target, which reads such a script; not every other
/// one does.
fn knows_linker() -> bool {
    let is_usual = env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu");
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    is_usual && env::var_os("RUSTC_LINKER").is_none() && !flags.contains("link")
}

/// Returns the profile's own name, which Cargo tells by where it builds: `<target>/<profile>/build/loci-…/out`.
fn profile() -> Option<String> {
    let out = PathBuf::from(env::var_os("OUT_DIR")?);
    Some(out.ancestors().nth(3)?.file_name()?.to_string_lossy().into_owned())
}

/// Reads the commit of the repository that this crate lies in.
fn commit() -> Option<String> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let git = root.ancestors().nth(2)?.join(".git");
    let git_dir = match fs::read_to_string(&git) {
        Ok(pointer) => root.ancestors().nth(2)?.join(pointer.trim().strip_prefix("gitdir:")?.trim()),
        Err(_) => git,
    };
    let head = read(&git_dir.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else { return short(&head) };
    let common = match read(&git_dir.join("commondir")) {
        Some(common) => git_dir.join(common),
        None => git_dir,
    };
    if let Some(commit) = read(&common.join(name)) {
        return short(&commit);
    }
    let packed = read(&common.join("packed-refs"))?;
    let line = packed.lines().find(|line| line.split_once(' ').is_some_and(|(_, it)| it == name))?;
    short(line)
}

/// Reads a file and has Cargo watch it.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo:rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}

fn short(commit: &str) -> Option<String> {
    let commit = commit.get(..12)?;
    commit.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| commit.to_owned())
}
