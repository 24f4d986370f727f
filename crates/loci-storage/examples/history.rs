//! Measures what watching a project tree costs a call, beside a shadow repository origin the same. Prints tables.
//!
//! `cargo run --release -p loci-storage --example history -- DIRECTORY`
#![allow(clippy::disallowed_methods, reason = "it reads what it wrote itself")]
#![expect(clippy::print_stdout, reason = "figures are for the person who runs this")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_core::ids::SessionId;
use loci_stdx::{Env, SystemClock};
use loci_storage::history::{BlobStore, ChangeOrigin, TreeHistory};
use loci_storage::layout::ConfigHome;

/// Calls that are measured for each size.
const CALLS: usize = 15;
/// Files that each call changes.
const CHANGED: usize = 10;
/// Files in a directory.
const A_DIR: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).ok_or("name a directory")?);
    println!(
        "| files | first look | a call that changes nothing | a call that changes {CHANGED} files | shadow git, nothing | shadow git, {CHANGED} files |"
    );
    println!("|---:|---:|---:|---:|---:|---:|");
    let mut growths = Vec::new();
    for n_files in [1_000, 10_000, 50_000] {
        let root = dir.join(format!("tree-{n_files}"));
        let project = make(&root, n_files)?;
        let (first, nothing, changing, growth) = ours(&root, &project)?;
        let (git_nothing, git_changing, git_growth) = shadow(&root, &project)?;
        println!(
            "| {n_files} | {} | {} | {} | {} | {} |",
            ms(first),
            ms(nothing),
            ms(changing),
            ms(git_nothing),
            ms(git_changing)
        );
        growths.push((n_files, growth, git_growth));
        fs::remove_dir_all(&root)?;
    }
    println!(
        "\n| files | changed bytes in {CALLS} calls | our store grew by | shadow git, first copy | shadow git grew by |\n|---:|---:|---:|---:|---:|"
    );
    for (n_files, (changed, ours), (first, git)) in growths {
        println!("| {n_files} | {} | {} | {} | {} |", kb(changed), kb(ours), kb(first), kb(git));
    }
    Ok(())
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn kb(n_bytes: u64) -> String {
    format!("{} kB", n_bytes.div_ceil(1000))
}

/// A repository with so many files, all of them committed.
fn make(root: &Path, n_files: usize) -> Result<PathBuf, Box<dyn Error>> {
    let project = root.join("project");
    for n in 0..n_files {
        let dir = project.join(format!("d{}/e{}", n / A_DIR / 20, n / A_DIR % 20));
        if n % A_DIR == 0 {
            fs::create_dir_all(&dir)?;
        }
        fs::write(dir.join(format!("f{n}.rs")), text(n, 0))?;
    }
    git(&project, &["init", "-q"])?;
    git(&project, &["add", "-A"])?;
    git(&project, &["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "all"])?;
    // The index must be younger than the files.
    std::thread::sleep(Duration::from_millis(50));
    fs::write(project.join("last"), "x")?;
    git(&project, &["add", "-A"])?;
    std::thread::sleep(Duration::from_millis(50));
    Ok(project)
}

fn text(n: usize, call: usize) -> String {
    (0..40).map(|line| format!("fn f{n}_{line}() -> u64 {{ {} }}\n", n * 31 + line * 7 + call)).collect()
}

fn git(dir: &Path, args: &[&str]) -> Result<(), Box<dyn Error>> {
    let status =
        Command::new("git").args(args).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").status()?;
    if status.success() { Ok(()) } else { Err(format!("git {args:?} failed").into()) }
}

/// Changes some files, others in each call; returns how many bytes that are.
fn change(project: &Path, call: usize) -> std::io::Result<u64> {
    let mut n_bytes = 0;
    for n in 0..CHANGED {
        let n = (call * CHANGED + n) % 1000;
        let text = text(n, call + 1);
        n_bytes += text.len() as u64;
        let dir = format!("d{}/e{}", n / A_DIR / 20, n / A_DIR % 20);
        fs::write(project.join(dir).join(format!("f{n}.rs")), text)?;
    }
    Ok(n_bytes)
}

type Ours = (Duration, Duration, Duration, (u64, u64));

fn ours(root: &Path, project: &Path) -> Result<Ours, Box<dyn Error>> {
    let mut env = Env::for_test(root.join("home"), project);
    env.clock = Arc::new(SystemClock::new());
    let home = ConfigHome::from_env(&env);
    let session = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001")?;
    let origin = ChangeOrigin { call: None, by: "Bash".to_owned() };
    let mut history = TreeHistory::new(&home, &session, project, &env);
    history.begin_prompt(&"p".into())?;
    let began = Instant::now();
    history.scan_before_call();
    let first = began.elapsed();
    std::thread::sleep(Duration::from_millis(50));
    history.scan_before_call();
    let store = BlobStore::new(&home);
    let before = store.usage()?.n_bytes;
    let (mut nothing, mut changing, mut n_changed) = (Vec::new(), Vec::new(), 0);
    for call in 0..CALLS {
        let began = Instant::now();
        history.scan_before_call();
        history.record_changes(&origin)?;
        nothing.push(began.elapsed());
        let began = Instant::now();
        history.scan_before_call();
        let looked = began.elapsed();
        n_changed += change(project, call)?;
        let began = Instant::now();
        let n_paths = history.record_changes(&origin)?;
        changing.push(looked + began.elapsed());
        if n_paths != CHANGED {
            return Err(format!("saw {n_paths} changes").into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let grown = store.usage()?.n_bytes - before;
    Ok((first, median(nothing), median(changing), (n_changed, grown)))
}

type Shadow = (Duration, Duration, (u64, u64));

/// What other agents do: a repository of their own that is given the whole tree after each call.
fn shadow(root: &Path, project: &Path) -> Result<Shadow, Box<dyn Error>> {
    let dir = root.join("shadow.git");
    let commit = || -> Result<(), Box<dyn Error>> {
        for args in [&["add", "-A"][..], &["commit", "-q", "--allow-empty", "--no-verify", "-m", "call"]] {
            let mut command = Command::new("git");
            command
                .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "gc.auto=0"])
                .args(args);
            command.env("GIT_DIR", &dir).env("GIT_WORK_TREE", project).env("GIT_CONFIG_GLOBAL", "/dev/null");
            if !command.current_dir(project).status()?.success() {
                return Err("the shadow repository failed".into());
            }
        }
        Ok(())
    };
    git(root, &["init", "-q", "--bare", "shadow.git"])?;
    commit()?;
    let first = size(&dir)?;
    let (mut nothing, mut changing) = (Vec::new(), Vec::new());
    for call in 0..CALLS {
        let began = Instant::now();
        commit()?;
        nothing.push(began.elapsed());
        change(project, CALLS + call)?;
        let began = Instant::now();
        commit()?;
        changing.push(began.elapsed());
    }
    Ok((median(nothing), median(changing), (first, size(&dir)? - first)))
}

fn size(dir: &Path) -> std::io::Result<u64> {
    let mut n_bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        n_bytes += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(n_bytes)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
