//! The second opinion: tree-sitter's grammar of bash must see the same words and nothing it calls an error (S-11).
//!
//! Two parsers rarely make the same mistake. Where they differ about where a word begins or ends, or where this one
//! finds a construct that is not on the list, the line counts as not understood.

use std::cell::RefCell;

use tree_sitter::{Node, Parser};

use crate::parse::Parsed;

/// Kinds of nodes that are known; a new version of the grammar cannot bring in one unseen.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "program", "list", "pipeline", "command", "command_name", "word", "string", "string_content", "raw_string",
    "concatenation", "number", "simple_expansion", "variable_name", "special_variable_name", "expansion",
    "command_substitution", "process_substitution", "arithmetic_expansion", "binary_expression", "unary_expression",
    "parenthesized_expression", "postfix_expression", "ternary_expression", "ansi_c_string", "brace_expression",
    "variable_assignment", "variable_assignments", "file_redirect", "file_descriptor", "herestring_redirect",
    "heredoc_redirect", "heredoc_start", "heredoc_body", "heredoc_end", "heredoc_content", "redirected_statement",
    "subshell", "compound_statement", "if_statement", "elif_clause", "else_clause", "while_statement", "for_statement",
    "do_group", "case_statement", "case_item", "extglob_pattern", "function_definition", "negated_command",
    "test_command", "test_operator", "declaration_command", "unset_command", "comment", "regex", "subscript",
];

thread_local! {
    /// Made on first use: a session that never runs a command never pays for it.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Returns why the line is not understood after all.
pub(crate) fn objection(line: &str, parsed: &Parsed) -> Option<String> {
    let line = &in_ascii(line);
    let tree = PARSER.with(|cell| {
        let mut parser = cell.borrow_mut();
        if parser.is_none() {
            let mut fresh = Parser::new();
            fresh.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *parser = Some(fresh);
        }
        parser.as_mut()?.parse(line, None)
    });
    let Some(tree) = tree else { return Some("the second parser gave up".to_owned()) };
    let mut seen = CommandSpans { spans: Vec::new(), skipped: parsed.skipped.clone() };
    if let Some(objection) = seen.visit(tree.root_node()) {
        return Some(objection);
    }
    let is_skipped =
        |span: &(usize, usize)| seen.skipped.iter().any(|(start, end)| span.0 >= *start && span.1 <= *end);
    let sorted = |spans: &[(usize, usize)]| {
        let mut spans: Vec<_> = spans.iter().copied().filter(|span| !is_skipped(span)).collect();
        spans.sort_unstable();
        spans
    };
    let (ours, theirs) = (sorted(&parsed.spans), sorted(&seen.spans));
    // Before a here-document the grammar loses a lone `-`, which can hide nothing.
    let is_dash = |span: &(usize, usize)| line.get(span.0..span.1) == Some("-");
    let differs = ours
        .iter()
        .find(|span| !theirs.contains(span) && !is_dash(span))
        .or_else(|| theirs.iter().find(|span| !ours.contains(span)));
    differs
        .map(|(start, end)| format!("two parsers differ about `{}`", line.get(*start..*end).unwrap_or("…")))
}

/// Puts letters where other than ASCII characters stand, byte for byte. To the shell both are parts of words; the
/// grammar's scanner asks C's `isdigit` about them, which must not be asked about such (it crashes).
fn in_ascii(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c.is_ascii() {
            true => out.push(c),
            false => (0..c.len_utf8()).for_each(|_| out.push('x')),
        }
    }
    out
}

struct CommandSpans {
    /// Where the words of commands stand.
    spans: Vec<(usize, usize)>,
    skipped: Vec<(usize, usize)>,
}

impl CommandSpans {
    fn visit(&mut self, node: Node<'_>) -> Option<String> {
        if node.is_error() || node.is_missing() {
            return Some("the line has a part that is no bash".to_owned());
        }
        if node.is_named() && !KNOWN.contains(&node.kind()) {
            return Some(format!("the construct `{}`", node.kind()));
        }
        let span = (node.start_byte(), node.end_byte());
        match node.kind() {
            "command" => {
                self.fields(node, "name");
                self.fields(node, "argument");
            }
            "declaration_command" | "unset_command" => {
                let keyword = node.child(0)?;
                self.spans.push((keyword.start_byte(), keyword.end_byte()));
                self.words(node);
            }
            "test_command" => self.skipped.push(span),
            // Words behind a redirection belong to the command before it.
            "file_redirect" => self.behind_redirect(node),
            "heredoc_redirect" => self.fields(node, "argument"),
            _ => {}
        }
        let mut cursor = node.walk();
        node.children(&mut cursor).find_map(|child| self.visit(child))
    }

    fn words(&mut self, node: Node<'_>) {
        const REDIRECTS: &[&str] = &["file_redirect", "herestring_redirect", "heredoc_redirect"];
        let mut cursor = node.walk();
        let words = node.named_children(&mut cursor).filter(|child| !REDIRECTS.contains(&child.kind()));
        self.spans.extend(words.map(|child| (child.start_byte(), child.end_byte())));
    }

    fn behind_redirect(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let targets = node.children_by_field_name("destination", &mut cursor).skip(1);
        self.spans.extend(targets.map(|child| (child.start_byte(), child.end_byte())));
    }

    fn fields(&mut self, node: Node<'_>, name: &str) {
        let mut cursor = node.walk();
        let words = node.children_by_field_name(name, &mut cursor);
        self.spans.extend(words.map(|child| (child.start_byte(), child.end_byte())));
    }
}
