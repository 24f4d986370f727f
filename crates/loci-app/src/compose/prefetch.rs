//! What is read from the project while other things are made ready: git's state on one thread, instruction files and
//! skills on another.

use std::thread::JoinHandle;

use loci_engine::ReadInstructions;
use loci_storage::config::{Instructions, LazyInstructions, discover_instructions};
use loci_storage::project::{GitSnapshot, git_snapshot};

use crate::extensions::skills::{ReadSkills, SkillOptions};
use crate::options::RunOptions;
use crate::settings::RunSettings;

/// Instruction files, and those that wait for their time.
type FoundInstructions = (Instructions, Option<LazyInstructions>);

/// Reading that is under way.
pub struct Prefetch {
    git: JoinHandle<Option<GitSnapshot>>,
    instructions: JoinHandle<(FoundInstructions, ReadInstructions, ReadSkills)>,
}

/// What was read.
#[derive(Default)]
pub struct Prefetched {
    /// The state of the repository, where there is one and it is wanted.
    pub git: Option<GitSnapshot>,
    /// Instruction files.
    pub instructions: Instructions,
    /// Those that wait until files are read.
    pub lazy_instructions: Option<LazyInstructions>,
    /// Reads them anew.
    pub read_instructions: Option<ReadInstructions>,
    /// Skills.
    pub skills: ReadSkills,
}

impl Prefetch {
    /// Starts asking git and reading instruction files.
    pub fn start(options: &RunOptions, run: &RunSettings) -> Self {
        let (mut read, skills) = (instruction_reader(run), SkillOptions::new(run));
        let prefetch = run.take_skills();
        let instructions =
            std::thread::spawn(move || (read(), read, ReadSkills::read_with(&skills, prefetch)));
        Self { git: ask_git(options, run), instructions }
    }

    /// Waits for both.
    pub fn join(self) -> Prefetched {
        let read = self.instructions.join().ok();
        let (found, read_instructions, skills) =
            read.map_or_else(Default::default, |(found, read, skills)| (found, Some(read), skills));
        let (instructions, lazy_instructions) = found;
        let git = self.git.join().ok().flatten();
        Prefetched { git, instructions, lazy_instructions, read_instructions, skills }
    }
}

fn ask_git(options: &RunOptions, run: &RunSettings) -> JoinHandle<Option<GitSnapshot>> {
    let is_wanted = run.settings.include_git_instructions != Some(false)
        && options.system_prompt.is_none()
        && !run.env.vars.is_truthy("CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS");
    let env = run.env.clone();
    std::thread::spawn(move || is_wanted.then(|| git_snapshot(&env.cwd, &env)).flatten())
}

fn instruction_reader(run: &RunSettings) -> ReadInstructions {
    let is_off = run.env.vars.is_truthy("CLAUDE_CODE_DISABLE_CLAUDE_MDS") || run.is_bare;
    let (env, home, options) = (run.env.clone(), run.home.clone(), run.instructions.clone());
    Box::new(move || {
        if is_off {
            return (Instructions::default(), None);
        }
        let places = options.places(&env, &home);
        let found = discover_instructions(&places);
        let lazy = LazyInstructions::new(places, &found);
        (found, Some(lazy))
    })
}
