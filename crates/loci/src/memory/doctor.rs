//! `loci memory doctor`.

use std::collections::HashSet;

use loci_app::UserError;
use loci_context::{IndexLevel, Mention, index_level, index_lines, mentions};
use loci_stdx::counted;
use loci_storage::memory::MEMORY_INDEX;
use serde_json::{Value, json};

use super::{Known, MemoryContext, known, stale};
use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Print a JSON array.
    #[arg(long)]
    pub(super) json: bool,
}

/// Returns what was found and the exit code.
pub(super) fn run(ctx: &MemoryContext, args: &DoctorArgs) -> Result<(String, u8), UserError> {
    let all = known::memories(ctx)?;
    let mut problems: Vec<(String, String)> = Vec::new();
    for it in &all {
        problems.extend(it.flags.iter().map(|flag| (it.file.clone(), flag.to_string())));
    }
    problems.extend(symbol_problems(ctx, &all));
    problems.extend(known::unreadable(ctx, &all));
    problems.extend(index_problems(ctx, &all));
    let code = u8::from(!problems.is_empty());
    if args.json {
        let values = problems.iter().map(|(file, problem)| json!({"file": file, "problem": problem}));
        return Ok((pretty(&Value::from_iter(values)), code));
    }
    let mut text: String = problems.iter().map(|(file, problem)| format!("{file}: {problem}\n")).collect();
    let n_memories = counted(all.len() as u64, "memory", "memories");
    text.push_str(&match problems.len() {
        0 => format!("{n_memories}, nothing to complain about\n"),
        n => format!("{n_memories}, {n} to look at: `loci memory edit` or `loci memory forget` them\n"),
    });
    Ok((text, code))
}

fn symbol_problems(ctx: &MemoryContext, all: &[Known]) -> Vec<(String, String)> {
    let symbols = |it: &Known| -> Vec<String> {
        let found = mentions(&it.memory.body).into_iter();
        found
            .filter_map(|mention| if let Mention::Symbol(name) = mention { Some(name) } else { None })
            .collect()
    };
    let mut wanted: Vec<String> = all.iter().flat_map(symbols).collect();
    wanted.sort();
    wanted.dedup();
    // Where there is too much to look through, nothing is said rather than something wrong.
    let Some(missing) = stale::missing_symbols(&ctx.root, wanted).filter(|it| !it.is_empty()) else {
        return Vec::new();
    };
    let missing: HashSet<String> = missing.into_iter().collect();
    let gone = all.iter().flat_map(|it| symbols(it).into_iter().map(|name| (it.file.clone(), name)));
    gone.filter(|(_, name)| missing.contains(name))
        .map(|(file, name)| (file, format!("it names `{name}`, which is nowhere in the project")))
        .collect()
}

fn index_problems(ctx: &MemoryContext, all: &[Known]) -> Vec<(String, String)> {
    let index = ctx.index().unwrap_or_default();
    let known: HashSet<&str> = all.iter().map(|it| it.file.as_str()).collect();
    let is_there =
        |file: &str| known.contains(file) || ctx.journal.dir().join(file).symlink_metadata().is_ok();
    let dangling = index_lines(&index).into_iter().filter(|line| !is_there(&line.file));
    let mut problems: Vec<(String, String)> = dangling
        .map(|line| (format!("{MEMORY_INDEX}:{}", line.number), format!("`{}` is not there", line.file)))
        .collect();
    match index_level(&index) {
        IndexLevel::Fine => {}
        IndexLevel::Near(words) | IndexLevel::Over(words) => problems.push((MEMORY_INDEX.to_owned(), words)),
    }
    problems
}
