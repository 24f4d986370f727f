//! Comma-separated values, one line for each day, project and model.

use loci_app::reports::stats::Report;

const HEADER: &str = "day,project,model,sessions,turns,responses,input_tokens,output_tokens,cache_read_tokens,\
                      cache_creation_tokens,web_searches,cost_usd";

/// Returns the header and all lines. All columns but `sessions` can be added up; a cost that is unknown is empty.
pub(super) fn lines(report: &Report) -> String {
    let mut text = format!("{HEADER}\n");
    for ((day, project, model), used) in &report.by_cell {
        let usage = &used.usage;
        text.push_str(&format!(
            "{},{},{},{},{},{},{},{},{},{},{},{}\n",
            day.map(|day| day.to_string()).unwrap_or_default(),
            field(project),
            field(model),
            used.n_sessions,
            used.n_turns,
            used.n_responses,
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
            usage.web_search_requests,
            if report.unpriced.contains(model) { String::new() } else { format!("{:.6}", usage.cost_usd) }
        ));
    }
    text
}

/// Writes a value so that readers of RFC 4180 take it as one.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_separators_are_quoted() {
        for (text, expected) in [
            ("/p", "/p"),
            ("/a,b", "\"/a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("a\nb", "\"a\nb\""),
            ("", ""),
        ] {
            assert_eq!(field(text), expected, "{text}");
        }
    }
}
