//! `loci memory search`.

use loci_app::UserError;
use loci_stdx::single_line;
use loci_storage::memory::memory_files;
use serde_json::{Value, json};

use super::MemoryContext;
use crate::config::pretty;

#[derive(Debug, clap::Args)]
pub(super) struct SearchArgs {
    /// Words that all must occur, in any case and order.
    #[arg(required = true)]
    words: Vec<String>,
    /// Print a JSON array.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(ctx: &MemoryContext, args: &SearchArgs) -> Result<String, UserError> {
    let words: Vec<String> = args.words.iter().map(|word| word.to_lowercase()).collect();
    let hits: Vec<(String, usize, String)> = memory_files(ctx.journal.dir())
        .into_iter()
        .filter(|it| {
            let text = format!("{}\n{}", it.file, it.text).to_lowercase();
            words.iter().all(|word| text.contains(word))
        })
        .map(|it| {
            let has_word = |line: &str| words.iter().any(|word| line.to_lowercase().contains(word));
            let hit = it.text.lines().enumerate().find(|(_, line)| has_word(line));
            let (n, line) = hit.unwrap_or((0, ""));
            (it.file.clone(), n + 1, single_line(line, 160))
        })
        .collect();
    if args.json {
        let values = hits.iter().map(|(file, line, text)| json!({"file": file, "line": line, "text": text}));
        return Ok(pretty(&Value::from_iter(values)));
    }
    if hits.is_empty() {
        return Ok("No memory has these words\n".to_owned());
    }
    Ok(hits.iter().map(|(file, line, text)| format!("{file}:{line}: {text}\n")).collect())
}
