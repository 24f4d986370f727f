//! Measures what a start spends on settings and instruction files, in an empty project and in a typical one.
//!
//! `cargo xtask bench settings` runs it. Each line of output is a project, the median and the 95th percentile of
//! many loads, and the first load, in microseconds.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement talks, and stops when it cannot go on"
)]

use std::fs;
use std::path::Path;
use std::time::Instant;

use loci_stdx::Env;
use loci_storage::config::{
    InstructionPlaces, LazyInstructions, SettingsPlaces, SettingsSources, SettingsWatch,
    discover_instructions, external_imports,
};
use loci_storage::layout::ConfigHome;

/// How often each project is loaded.
const ROUNDS: usize = 400;

fn main() {
    for (name, fill) in [("empty", nothing as fn(&Path)), ("typical", typical)] {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("code/app/.git")).unwrap();
        fs::write(home.join("code/app/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fill(&home);
        let env = Env::for_test(&home, home.join("code/app"));
        let mut times: Vec<u128> = (0..ROUNDS).map(|_| load(&env)).collect();
        let first = times[0];
        times.sort_unstable();
        println!("{name} {} {} {first}", times[ROUNDS / 2], times[ROUNDS * 95 / 100]);
    }
}

/// Loads everything as a start does, and returns how long it took.
fn load(env: &Env) -> u128 {
    let started = Instant::now();
    let home = ConfigHome::from_env(env);
    let places = SettingsPlaces::new(env, &home, &env.home.join("etc"), SettingsSources::ALL);
    let (watch, loaded) = SettingsWatch::start(places.clone(), None);
    let settings = loaded.settings();
    let places = InstructionPlaces {
        managed: env.home.join("etc/CLAUDE.md"),
        managed_text: settings.claude_md,
        user: home.user_instructions(),
        home: env.home.clone(),
        cwd: env.cwd.clone(),
        root: places.tree_root().to_owned(),
        main_checkout: places.main_checkout().map(Path::to_path_buf),
        extra_dirs: Vec::new(),
        sources: SettingsSources::ALL,
        excludes: settings.claude_md_excludes,
        allows_external: external_imports(&home, &loaded.trust.root) == Some(true),
        reads_agents: settings.read_agents_md,
    };
    let found = discover_instructions(&places);
    let lazy = LazyInstructions::new(places, &found);
    let elapsed = started.elapsed().as_micros();
    drop((watch, lazy));
    elapsed
}

fn nothing(_home: &Path) {}

/// Settings at every level, a state file that has seen fifty projects, instructions with imports and rules.
fn typical(home: &Path) {
    let write = |path: &str, text: String| {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let rules = |tool: &str, n: usize| {
        (0..n).map(|n| format!("\"{tool}(command-{n} *)\"")).collect::<Vec<_>>().join(",\n      ")
    };
    let prose = |n: usize| "- Prefer small functions, whole words and tests that are data.\n".repeat(n);
    write(
        ".claude/settings.json",
        format!(
            "{{\n  // mine\n  \"model\": \"opus\",\n  \"env\": {{\"EDITOR\": \"vi\", \"PAGER\": \"less\"}},\n  \
             \"permissions\": {{\"allow\": [{}], \"deny\": [{}]}}\n}}\n",
            rules("Bash", 30),
            rules("Read", 10)
        ),
    );
    write(
        "code/app/.claude/settings.json",
        format!(
            "{{\"permissions\": {{\"allow\": [{}], \"ask\": [{}]}}, \"hooks\": {{\"Stop\": []}}}}\n",
            rules("Bash", 40),
            rules("Edit", 5)
        ),
    );
    write(
        "code/app/.claude/settings.local.json",
        format!("{{\"permissions\": {{\"allow\": [{}]}}}}\n", rules("Bash", 60)),
    );
    let projects: Vec<String> = (0..50)
        .map(|n| {
            format!("\"/home/dev/code/project-{n}\": {{\"hasTrustDialogAccepted\": true, \"lastCost\": 1.5}}")
        })
        .collect();
    write(".claude.json", format!("{{\"userID\": \"x\", \"projects\": {{{}}}}}", projects.join(", ")));
    write(".claude/CLAUDE.md", prose(20));
    write("code/app/CLAUDE.md", format!("See @docs/style.md and @docs/tests.md.\n{}", prose(100)));
    write("code/app/docs/style.md", prose(60));
    write("code/app/docs/tests.md", prose(60));
    write("code/app/CLAUDE.local.md", prose(10));
    for n in 0..10 {
        let head = if n % 2 == 0 { String::new() } else { format!("---\npaths: src/{n}/**/*.rs\n---\n") };
        write(&format!("code/app/.claude/rules/{n}.md"), format!("{head}{}", prose(15)));
    }
}
