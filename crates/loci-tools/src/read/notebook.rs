//! Jupyter notebooks as their cells: sources and outputs as text, pictures as pictures.

use base64::Engine;
use loci_core::message::Block;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::image::{self, Picture};

/// Text of one output beyond this is cut.
const MAX_OUTPUT_CHARS: usize = 10_000;

/// Pictures beyond this are left out.
const MAX_PICTURES: usize = 20;

/// A notebook as it is shown.
pub(super) struct Notebook {
    /// What the model sees: text and pictures in the order of the cells.
    pub(super) parts: Vec<Part>,
    /// The `cells` of the structured result.
    pub(super) cells: Vec<Value>,
}

/// A stretch of text or a picture.
pub(super) enum Part {
    Text(String),
    Picture(Picture),
}

impl Notebook {
    /// Returns the parts as content blocks, neighbouring texts joined.
    pub(super) fn to_blocks(&self) -> Vec<Block> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => Block::new_text(text),
                Part::Picture(picture) => picture.to_block(),
            })
            .collect()
    }

    /// Returns how many bytes of text it has.
    pub(super) fn text_bytes(&self) -> usize {
        self.parts.iter().map(|part| if let Part::Text(text) = part { text.len() } else { 0 }).sum()
    }

    fn push_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(last)) => last.extend(["\n", text]),
            Some(Part::Picture(_)) | None => self.parts.push(Part::Text(text.to_owned())),
        }
    }
}

/// Reads a notebook; `None` when the JSON is not one.
pub(super) fn parse(bytes: &[u8]) -> Option<Notebook> {
    let source: Source = serde_json::from_slice(bytes).ok()?;
    let language = source.metadata.language();
    let mut notebook = Notebook { parts: Vec::new(), cells: Vec::new() };
    let mut n_pictures = 0;
    for (n, cell) in source.cells.iter().enumerate() {
        show_cell(n, cell, &language, &mut n_pictures, &mut notebook);
    }
    Some(notebook)
}

fn show_cell(n: usize, cell: &Cell, language: &str, n_pictures: &mut usize, notebook: &mut Notebook) {
    let id = cell.id.clone().unwrap_or_else(|| format!("cell-{n}"));
    let source = cell.source.joined();
    let is_code = cell.cell_type == "code";
    let kind = if is_code { language } else { cell.cell_type.as_str() };
    notebook.push_text(&format!("<cell id=\"{id}\" kind=\"{kind}\">\n{source}\n</cell>"));
    let mut field = json!({"cellType": cell.cell_type, "source": source, "cell_id": id});
    if is_code {
        field["language"] = Value::from(language);
        if let Some(count) = cell.execution_count {
            field["execution_count"] = Value::from(count);
        }
    }
    let outputs: Vec<Value> =
        cell.outputs.iter().map(|output| show_output(output, n_pictures, notebook)).collect();
    if !outputs.is_empty() {
        field["outputs"] = Value::from(outputs);
    }
    notebook.cells.push(field);
}

fn show_output(output: &Output, n_pictures: &mut usize, notebook: &mut Notebook) -> Value {
    let mut field = json!({"output_type": output.output_type});
    let text = cut(&strip_escapes(&output.text()));
    if !text.is_empty() {
        notebook.push_text(&format!("<output>\n{text}\n</output>"));
        field["text"] = Value::from(text);
    }
    match output.picture() {
        Some(Ok(picture)) if *n_pictures < MAX_PICTURES => {
            *n_pictures += 1;
            field["image"] = picture.to_output_field();
            notebook.parts.push(Part::Picture(picture));
        }
        Some(Ok(_)) => notebook.push_text("[picture left out: there are too many]"),
        Some(Err(problem)) => notebook.push_text(&format!("[picture left out: {problem}]")),
        None => {}
    }
    field
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_OUTPUT_CHARS) {
        Some((at, _)) => {
            format!("{}… [output cut here: it has {} characters]", &text[..at], text.chars().count())
        }
        None => text.to_owned(),
    }
}

/// Removes the colours of terminal output.
fn strip_escapes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(
            part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').get(1..).unwrap_or_default(),
        );
    }
    out
}

/// The parts of the format that are shown.
#[derive(Deserialize)]
struct Source {
    cells: Vec<Cell>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    language_info: Map<String, Value>,
    #[serde(default)]
    kernelspec: Map<String, Value>,
}

impl Metadata {
    fn language(&self) -> String {
        let name = self.language_info.get("name").or_else(|| self.kernelspec.get("language"));
        name.and_then(Value::as_str).unwrap_or("python").to_owned()
    }
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    id: Option<String>,
    #[serde(default)]
    source: Text,
    #[serde(default)]
    outputs: Vec<Output>,
    execution_count: Option<u64>,
}

/// Text as one string or a list of lines.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    One(String),
    Lines(Vec<String>),
    Other(Value),
}

impl Default for Text {
    fn default() -> Self {
        Self::One(String::new())
    }
}

impl Text {
    fn joined(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Lines(lines) => lines.concat(),
            Self::Other(value) => value.to_string(),
        }
    }
}

#[derive(Deserialize)]
struct Output {
    output_type: String,
    #[serde(default)]
    text: Text,
    #[serde(default)]
    traceback: Vec<String>,
    #[serde(default)]
    ename: String,
    #[serde(default)]
    evalue: String,
    #[serde(default)]
    data: std::collections::BTreeMap<String, Text>,
}

impl Output {
    fn text(&self) -> String {
        match self.output_type.as_str() {
            "stream" => self.text.joined(),
            "error" => format!("{}: {}\n{}", self.ename, self.evalue, self.traceback.join("\n")),
            _ => self.data.get("text/plain").map(Text::joined).unwrap_or_default(),
        }
    }

    fn picture(&self) -> Option<Result<Picture, String>> {
        let types = ["image/png", "image/jpeg", "image/gif", "image/webp"];
        let data = types.iter().find_map(|media_type| self.data.get(*media_type))?.joined();
        let base64: String = data.split_whitespace().collect();
        let bytes = match base64::engine::general_purpose::STANDARD.decode(base64) {
            Ok(bytes) => bytes,
            Err(error) => return Some(Err(format!("its base64 is broken: {error}"))),
        };
        let format = image::format_of(&bytes);
        Some(
            format
                .ok_or_else(|| "its format is not known".to_owned())
                .and_then(|format| image::prepare(&bytes, format)),
        )
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn red_dot() -> String {
        let red = ::image::RgbImage::from_pixel(1, 1, ::image::Rgb([255, 0, 0]));
        let bytes = image::tests::encoded(&::image::DynamicImage::ImageRgb8(red), ::image::ImageFormat::Png);
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }

    fn rendered(notebook: &Notebook) -> String {
        let parts = notebook.parts.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Picture(_) => "(picture)",
        });
        parts.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn cells_sources_and_outputs_are_shown() {
        let source = json!({
            "metadata": {"language_info": {"name": "julia"}},
            "cells": [
                {"cell_type": "markdown", "id": "a1", "source": ["# Title\n", "Text."]},
                {"cell_type": "code", "source": "plot(x)", "execution_count": 3, "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["one\n", "two"]},
                    {"output_type": "display_data", "data": {"image/png": red_dot(), "text/plain": "<Figure>"}},
                    {"output_type": "error", "ename": "Oops", "evalue": "bad", "traceback": ["\u{1b}[0;31mline 1\u{1b}[0m"]},
                    {"output_type": "display_data", "data": {"image/png": "AAAA", "application/json": {"a": 1}}},
                ]},
            ],
        });
        let notebook = parse(source.to_string().as_bytes()).unwrap();
        expect![[r##"
            <cell id="a1" kind="markdown">
            # Title
            Text.
            </cell>
            <cell id="cell-1" kind="julia">
            plot(x)
            </cell>
            <output>
            one
            two
            </output>
            <output>
            <Figure>
            </output>
            (picture)
            <output>
            Oops: bad
            line 1
            </output>
            [picture left out: its format is not known]"##]]
        .assert_eq(&rendered(&notebook));
        assert_eq!(
            notebook.cells[0],
            json!({"cellType": "markdown", "source": "# Title\nText.", "cell_id": "a1"})
        );
        let code = &notebook.cells[1];
        assert_eq!((&code["language"], &code["execution_count"]), (&json!("julia"), &json!(3)));
        assert_eq!(code["outputs"][0], json!({"output_type": "stream", "text": "one\ntwo"}));
        assert_eq!(code["outputs"][1]["image"]["media_type"], "image/png");
    }

    #[test]
    fn long_outputs_are_cut() {
        let source = json!({"cells": [{"cell_type": "code", "source": "", "outputs": [
            {"output_type": "stream", "text": "é".repeat(10_001)},
        ]}]});
        let text = rendered(&parse(source.to_string().as_bytes()).unwrap());
        assert!(text.contains("é… [output cut here: it has 10001 characters]"));
        assert_eq!(text.matches('é').count(), 10_000);
    }

    #[test]
    fn too_many_pictures_are_left_out() {
        let output = json!({"output_type": "display_data", "data": {"image/png": red_dot()}});
        let cell = json!({"cell_type": "code", "source": "", "outputs": vec![output; MAX_PICTURES + 1]});
        let notebook = parse(json!({"cells": [cell]}).to_string().as_bytes()).unwrap();
        let n_pictures = notebook.parts.iter().filter(|part| matches!(part, Part::Picture(_))).count();
        assert_eq!(n_pictures, MAX_PICTURES);
        assert!(rendered(&notebook).contains("there are too many"));
    }

    #[test]
    fn other_json_is_no_notebook() {
        for bytes in ["", "{", "[]", "{}", r#"{"cells": 3}"#] {
            assert!(parse(bytes.as_bytes()).is_none(), "{bytes}");
        }
    }
}
