//! PDF files: short ones whole, of longer ones the pages that are asked for.
//!
//! The model's interface takes documents as they are, which keeps their text exact. So pages asked for by number
//! become a document of their own; nothing is drawn here.

use std::ops::RangeInclusive;
use std::sync::Arc;

use base64::Engine;
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_write::pdf_writer::{self, Ref};
use hayro_write::{ChunkSettings, ExtractionError, ExtractionQuery};
use loci_core::message::Block;
use loci_stdx::counted;
use serde_json::{Value, json};

/// Documents of more pages are not handed over whole.
const MAX_WHOLE_PAGES: usize = 10;

/// Nor are those of more bytes.
const MAX_WHOLE_BYTES: usize = 20 * 1024 * 1024;

/// The most pages of one call.
const MAX_PAGES: usize = 20;

/// What a PDF file gives.
pub(super) struct Document {
    pub(super) blocks: Vec<Block>,
    pub(super) structured: Value,
}

/// Reads a PDF file; errors are sentences for the model.
pub(super) fn read(shown: &str, bytes: Vec<u8>, wanted: Option<&str>) -> Result<Document, String> {
    let bytes = Arc::new(bytes);
    let pdf = Pdf::new(Arc::clone(&bytes)).map_err(|error| load_error(shown, error))?;
    let n_pages = pdf.pages().len();
    let Some(wanted) = wanted else { return whole_document(shown, &bytes, n_pages) };
    let wanted = page_range(wanted, n_pages)
        .map_err(|problem| format!("{problem} `{shown}` has {}.", pages(n_pages)))?;
    part(shown, &pdf, wanted, bytes.len())
}

fn pages(n: usize) -> String {
    counted(n as u64, "page", "pages")
}

fn whole_document(shown: &str, bytes: &[u8], n_pages: usize) -> Result<Document, String> {
    if n_pages > MAX_WHOLE_PAGES || bytes.len() > MAX_WHOLE_BYTES {
        return Err(format!(
            "`{shown}` has {} and {} bytes, too much to read whole. Name the pages you need in `pages`, such as \
             \"1-5\", at most {MAX_PAGES} in one call.",
            pages(n_pages),
            bytes.len()
        ));
    }
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
    let block = document_block(&base64)?;
    let file = json!({"filePath": shown, "base64": base64, "originalSize": bytes.len()});
    Ok(Document { blocks: vec![block], structured: json!({"type": "pdf", "file": file}) })
}

fn part(shown: &str, pdf: &Pdf, wanted: RangeInclusive<usize>, size: usize) -> Result<Document, String> {
    let n_pages = pdf.pages().len();
    let (first, last, count) = (*wanted.start(), *wanted.end(), wanted.clone().count());
    let taken = take_out(pdf, wanted)
        .map_err(|error| format!("Failed to take pages {first}-{last} out of `{shown}`: {error:?}"))?;
    if taken.len() > MAX_WHOLE_BYTES {
        return Err(format!(
            "Pages {first}-{last} of `{shown}` are {} bytes, too much for one call. Ask for fewer.",
            taken.len()
        ));
    }
    let which = if first == last { format!("Page {first}") } else { format!("Pages {first} to {last}") };
    let base64 = base64::engine::general_purpose::STANDARD.encode(taken);
    let blocks = vec![Block::new_text(&format!("{which} of {n_pages}:")), document_block(&base64)?];
    let file = json!({"filePath": shown, "originalSize": size, "count": count});
    Ok(Document { blocks, structured: json!({"type": "parts", "file": file}) })
}

fn document_block(base64: &str) -> Result<Block, String> {
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": base64});
    Block::from_value(&json!({"type": "document", "source": source})).map_err(|error| error.to_string())
}

/// Makes a document of some pages, with all they refer to.
fn take_out(pdf: &Pdf, pages: RangeInclusive<usize>) -> Result<Vec<u8>, ExtractionError> {
    let queries: Vec<ExtractionQuery> = pages.map(|page| ExtractionQuery::new_page(page - 1)).collect();
    let mut next = Ref::new(1);
    let catalog = next.bump();
    let taken = hayro_write::extract(pdf, Box::new(move || next.bump()), ChunkSettings::default(), &queries)?;
    let kids = taken.root_refs.into_iter().collect::<Result<Vec<Ref>, _>>()?;
    let mut out = pdf_writer::Pdf::new();
    out.catalog(catalog).pages(taken.page_tree_parent_ref);
    let count = i32::try_from(kids.len()).unwrap_or(i32::MAX);
    out.pages(taken.page_tree_parent_ref).kids(kids).count(count);
    out.extend(&taken.chunk);
    Ok(out.finish())
}

fn load_error(shown: &str, error: LoadPdfError) -> String {
    match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            format!("`{shown}` is protected by a password. Ask the user for a copy without one.")
        }
        LoadPdfError::Decryption(_) | LoadPdfError::Invalid => {
            format!(
                "`{shown}` begins like a PDF file but cannot be read as one: it is damaged or of an unknown kind."
            )
        }
    }
}

/// Reads `3`, `1-5` or `7-` against the number of pages.
fn page_range(text: &str, n_pages: usize) -> Result<RangeInclusive<usize>, String> {
    let number = |part: &str| part.trim().parse::<usize>().ok();
    let range = match text.split_once('-') {
        None => number(text).map(|page| page..=page),
        Some((first, "")) => number(first).map(|first| first..=n_pages.max(first)),
        Some((first, last)) => number(first).zip(number(last)).map(|(first, last)| first..=last),
    };
    let range =
        range.filter(|range| *range.start() > 0 && range.start() <= range.end()).ok_or_else(|| {
            format!("`pages` must be a page such as \"3\" or a range such as \"1-5\", not \"{text}\".")
        })?;
    if *range.start() > n_pages {
        return Err(format!("There is no page {}.", range.start()));
    }
    let range = *range.start()..=(*range.end()).min(n_pages);
    if range.clone().count() > MAX_PAGES {
        return Err(format!("At most {MAX_PAGES} pages can be read in one call, not \"{text}\"."));
    }
    Ok(range)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A PDF file in which page `n` says `Page n` and has a black square.
    pub(in crate::read) fn pdf_of(n_pages: usize) -> Vec<u8> {
        let kids: Vec<String> = (0..n_pages).map(|n| format!("{} 0 R", 4 + 2 * n)).collect();
        let mut objects = vec![
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            format!("<< /Type /Pages /Kids [{}] /Count {n_pages} >>", kids.join(" ")),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        ];
        for n in 0..n_pages {
            let content = format!("0 0 100 100 re f BT /F1 24 Tf 100 400 Td (Page {}) Tj ET", n + 1);
            objects.push(format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 600] /Contents {} 0 R \
                 /Resources << /Font << /F1 3 0 R >> >> >>",
                5 + 2 * n
            ));
            objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
        }
        let mut out = "%PDF-1.4\n".to_owned();
        let mut offsets = Vec::new();
        for (n, object) in objects.iter().enumerate() {
            offsets.push(out.len());
            out.push_str(&format!("{} 0 obj\n{object}\nendobj\n", n + 1));
        }
        let xref = out.len();
        out.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
        for offset in offsets {
            out.push_str(&format!("{offset:010} 00000 n \n"));
        }
        out.push_str(&format!(
            "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n",
            objects.len() + 1
        ));
        out.into_bytes()
    }

    fn read_pages(n_pages: usize, pages: Option<&str>) -> Result<Document, String> {
        read("/a.pdf", pdf_of(n_pages), pages)
    }

    #[test]
    fn short_documents_go_whole() {
        let bytes = pdf_of(10);
        let document = read_pages(10, None).unwrap_or_else(|error| panic!("{error}"));
        let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
        assert_eq!(
            document.blocks[0].to_value(),
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}})
        );
        assert_eq!(document.structured["type"], "pdf");
        assert_eq!(document.structured["file"]["originalSize"], bytes.len());
    }

    #[test]
    fn long_documents_need_pages() {
        let error = read_pages(11, None).err().unwrap();
        assert!(error.contains("has 11 pages") && error.contains("Name the pages"), "{error}");
        let document = read_pages(11, Some("10-11")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(document.blocks[0].text().as_deref(), Some("Pages 10 to 11 of 11:"));
        assert_eq!(document.structured["file"]["count"], 2);
        let one = read_pages(11, Some("3")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(one.blocks[0].text().as_deref(), Some("Page 3 of 11:"));
    }

    #[test]
    fn pages_taken_out_are_a_document_of_just_those_pages() {
        let document = read_pages(12, Some("11-12")).unwrap_or_else(|error| panic!("{error}"));
        let value = document.blocks[1].to_value();
        assert_eq!(value["source"]["media_type"], "application/pdf");
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(value["source"]["data"].as_str().unwrap())
            .unwrap();
        let pdf = Pdf::new(bytes).unwrap();
        let said: Vec<String> = pdf
            .pages()
            .iter()
            .map(|page| String::from_utf8_lossy(page.page_stream().unwrap()).into_owned())
            .collect();
        assert_eq!(said.len(), 2);
        assert!(said[0].contains("(Page 11)") && said[1].contains("(Page 12)"), "{said:?}");
        for page in pdf.pages().iter() {
            assert!(page.raw().contains_key(b"Resources".as_slice()), "fonts come along");
            assert_eq!(page.render_dimensions(), (300.0, 600.0));
        }
    }

    #[test]
    fn ranges_are_checked() {
        for (text, n_pages, expected) in [
            ("3", 5, Ok(3..=3)),
            (" 1 - 4 ", 5, Ok(1..=4)),
            ("4-9", 5, Ok(4..=5)),
            ("4-", 5, Ok(4..=5)),
            ("1-20", 50, Ok(1..=20)),
            ("1-21", 50, Err("At most 20 pages")),
            ("1-", 50, Err("At most 20 pages")),
            ("6", 5, Err("There is no page 6")),
            ("6-", 5, Err("There is no page 6")),
            ("0", 5, Err("must be a page")),
            ("4-2", 5, Err("must be a page")),
            ("all", 5, Err("must be a page")),
            ("1,3", 5, Err("must be a page")),
        ] {
            match (page_range(text, n_pages), expected) {
                (Ok(range), Ok(expected)) => assert_eq!(range, expected, "{text}"),
                (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{text}: {problem}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn broken_pdf_is_an_error() {
        let error = read("/a.pdf", b"%PDF-1.4\nnothing".to_vec(), None).err().unwrap();
        assert!(error.contains("cannot be read as one"), "{error}");
    }
}
