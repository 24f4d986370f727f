//! PDF files: short ones whole, pages of longer ones as pictures.
//!
//! A document the model's interface can take goes to it as it is, which keeps its text exact. Pages asked for by
//! number are drawn here.

use std::ops::RangeInclusive;
use std::sync::Arc;

use base64::Engine;
use hayro::hayro_interpret::InterpreterSettings;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::vello_cpu::peniko::ImageAlphaType;
use hayro::{PixmapSettings, RenderCache, RenderSettings, render};
use hayro_syntax::page::Page;
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use image::{DynamicImage, RgbaImage};
use loci_core::message::Block;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::image::{self as picture, MAX_EDGE, Picture};

/// Documents of more pages are not handed over whole.
const MAX_WHOLE_PAGES: usize = 10;

/// Nor are those of more bytes.
const MAX_WHOLE_BYTES: usize = 20 * 1024 * 1024;

/// The most pages of one call.
const MAX_PAGES: usize = 20;

/// Small pages are not drawn larger than this many times their size in points.
const MAX_SCALE: f32 = 4.0;

/// What a PDF file gives.
pub(super) struct Document {
    pub(super) blocks: Vec<Block>,
    pub(super) structured: Value,
}

/// Reads a PDF file; errors are sentences for the model.
pub(super) fn read(
    shown: &str,
    bytes: Vec<u8>,
    pages: Option<&str>,
    cancel: &CancellationToken,
) -> Result<Document, String> {
    let bytes = Arc::new(bytes);
    let pdf = Pdf::new(Arc::clone(&bytes)).map_err(|error| load_error(shown, error))?;
    let n_pages = pdf.pages().len();
    let Some(wanted) = pages else { return whole(shown, &bytes, n_pages) };
    let wanted =
        page_range(wanted, n_pages).map_err(|problem| format!("{problem} `{shown}` has {n_pages} pages."))?;
    let cache = RenderCache::new();
    let mut blocks = Vec::new();
    let count = wanted.clone().count();
    for number in wanted {
        if cancel.is_cancelled() {
            return Err(format!("Read of `{shown}` was interrupted"));
        }
        let page = &pdf.pages()[number - 1];
        let drawn = draw(page, &cache)
            .map_err(|error| format!("Failed to draw page {number} of `{shown}`: {error}"))?;
        blocks.push(Block::new_text(&format!("Page {number} of {n_pages}:")));
        blocks.push(drawn.to_block());
    }
    let file = json!({"filePath": shown, "originalSize": bytes.len(), "count": count});
    Ok(Document { blocks, structured: json!({"type": "parts", "file": file}) })
}

fn whole(shown: &str, bytes: &[u8], n_pages: usize) -> Result<Document, String> {
    if n_pages > MAX_WHOLE_PAGES || bytes.len() > MAX_WHOLE_BYTES {
        return Err(format!(
            "`{shown}` has {n_pages} pages and {} bytes, too much to read whole. Name the pages you need in `pages`, \
             such as \"1-5\", at most {MAX_PAGES} in one call.",
            bytes.len()
        ));
    }
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": base64});
    let block = Block::from_value(&json!({"type": "document", "source": source}))
        .map_err(|error| error.to_string())?;
    let file = json!({"filePath": shown, "base64": base64, "originalSize": bytes.len()});
    Ok(Document { blocks: vec![block], structured: json!({"type": "pdf", "file": file}) })
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

/// Draws a page on white, its longer edge as long as the model sees.
fn draw<'a>(page: &'a Page<'a>, cache: &RenderCache<'a>) -> Result<Picture, String> {
    let (width, height) = page.render_dimensions();
    // Half a pixel more, since sizes are rounded down.
    let scale = ((MAX_EDGE as f32 + 0.5) / width.max(height)).min(MAX_SCALE);
    if !(width * scale >= 1.0 && height * scale >= 1.0) {
        return Err(format!("it measures {width} x {height} points"));
    }
    let pixmap_settings = PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE };
    let pixmap =
        render(page, cache, &InterpreterSettings::default(), &RenderSettings::default(), &pixmap_settings);
    let size = (u32::from(pixmap.width()), u32::from(pixmap.height()));
    let pixels = RgbaImage::from_raw(size.0, size.1, pixmap.take_rgba8(ImageAlphaType::Alpha));
    let image = DynamicImage::ImageRgba8(pixels.ok_or("its picture has an odd size")?);
    picture::encode(&image, size, true)
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
        read("/a.pdf", pdf_of(n_pages), pages, &CancellationToken::new())
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
        let kinds: Vec<Option<String>> = document.blocks.iter().map(Block::text).collect();
        assert_eq!(kinds, [Some("Page 10 of 11:".to_owned()), None, Some("Page 11 of 11:".to_owned()), None]);
        assert_eq!(document.structured["file"]["count"], 2);
    }

    #[test]
    fn pages_are_drawn_to_scale() {
        let pdf = Pdf::new(pdf_of(1)).unwrap();
        let page = &pdf.pages()[0];
        let drawn = draw(page, &RenderCache::new()).unwrap();
        let value = drawn.to_block().to_value();
        assert_eq!(value["source"]["media_type"], "image/png");
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(value["source"]["data"].as_str().unwrap())
            .unwrap();
        let image = ::image::load_from_memory(&bytes).unwrap().to_rgb8();
        assert_eq!(image.dimensions(), (784, 1_568));
        assert_eq!(image.get_pixel(10, 1_550).0, [0, 0, 0], "the square");
        assert_eq!(image.get_pixel(700, 10).0, [255, 255, 255], "the paper");
        let ink = |rows: std::ops::Range<u32>| {
            rows.flat_map(|y| (260..600).map(move |x| (x, y)))
                .filter(|(x, y)| image.get_pixel(*x, *y).0[0] < 128)
                .count()
        };
        assert!(ink(440..530) > 200, "the words");
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
    fn broken_documents_are_said_to_be() {
        let error =
            read("/a.pdf", b"%PDF-1.4\nnothing".to_vec(), None, &CancellationToken::new()).err().unwrap();
        assert!(error.contains("cannot be read as one"), "{error}");
    }
}
