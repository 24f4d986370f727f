//! What a task in the background has printed.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Value, json};

/// How much of a task's output is passed on, its end: what clients are promised.
const TAIL_BYTES: u64 = 8 * 1024;

/// Reads the end of what a task has printed.
pub(super) fn tail(file: &Path) -> std::io::Result<Value> {
    let mut file = loci_stdx::open_regular(file)?;
    let total = file.metadata()?.len();
    let skipped = total.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let output = String::from_utf8_lossy(&bytes);
    Ok(json!({"output": output, "total_bytes": total, "truncated": skipped > 0}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_long_output_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        std::fs::write(&file, "short").unwrap();
        assert_eq!(tail(&file).unwrap(), json!({"output": "short", "total_bytes": 5, "truncated": false}));
        std::fs::write(&file, "x".repeat(9000) + "end").unwrap();
        let long = tail(&file).unwrap();
        assert_eq!((&long["total_bytes"], &long["truncated"]), (&json!(9003), &json!(true)));
        let output = long["output"].as_str().unwrap();
        assert!(output.len() == 8192 && output.ends_with("end"), "{}", output.len());
    }
}
