//! Pictures made fit for the model: checked, scaled down, and small enough to send.
//!
//! Known by magic bytes, never by name. The dimensions are read and bounded before anything is decoded, so that
//! a small file cannot unfold into gigabytes. A picture that is small enough goes as it is; the others are scaled
//! and encoded anew. Every picture is decoded once: a broken one in the conversation would spoil each request.

mod shrink;

use std::io::Cursor;

use base64::Engine;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use loci_core::message::Block;
use serde_json::{Value, json};

/// The longer edge the model sees at most; larger pictures would be scaled down on arrival.
const MAX_EDGE: u32 = 1_568;

/// Pictures beyond this many bytes are encoded anew.
const GOOD_BYTES: usize = 500 * 1024;

/// The most base64 characters the model's interface takes.
const MAX_BASE64: usize = 5 * 1024 * 1024;

/// The largest edge and area decoded.
const MAX_DECODED_EDGE: u32 = 30_000;
const MAX_DECODED_PIXELS: u64 = 100_000_000;

/// The most memory a decoder may take.
const MAX_DECODED_BYTES: u64 = 512 * 1024 * 1024;

/// Qualities tried until a picture is small enough.
const QUALITIES: [u8; 5] = [85, 70, 55, 40, 25];

/// A picture ready to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    media_type: &'static str,
    base64: String,
    original: (u32, u32),
    display: (u32, u32),
}

impl Picture {
    pub(super) fn to_block(&self) -> Block {
        Block::new_image(self.media_type, &self.base64)
    }

    /// Returns the `file` field of the structured result.
    pub(super) fn to_file_field(&self, original_size: usize) -> Value {
        json!({
            "base64": self.base64,
            "type": self.media_type,
            "originalSize": original_size,
            "dimensions": {
                "originalWidth": self.original.0,
                "originalHeight": self.original.1,
                "displayWidth": self.display.0,
                "displayHeight": self.display.1,
            },
        })
    }

    /// Returns the form of a notebook's output.
    pub(super) fn to_output_field(&self) -> Value {
        json!({"image_data": self.base64, "media_type": self.media_type})
    }
}

/// Returns the format of a picture by its magic bytes.
pub(super) fn format_of(head: &[u8]) -> Option<ImageFormat> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(ImageFormat::Png),
        [0xff, 0xd8, 0xff, ..] => Some(ImageFormat::Jpeg),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(ImageFormat::Gif),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(ImageFormat::WebP),
        _ => None,
    }
}

/// Returns a picture as a block for the model; none when the bytes are no picture that it takes. The error is a clause.
pub fn picture_block(bytes: &[u8]) -> Option<Result<Block, String>> {
    let format = format_of(bytes)?;
    Some(prepare(bytes, format).map(|picture| picture.to_block()))
}

/// Checks a picture and makes it fit; the error is a clause for the model.
pub(super) fn prepare(bytes: &[u8], format: ImageFormat) -> Result<Picture, String> {
    let decoded = decode(bytes, format)?;
    let original = (decoded.width(), decoded.height());
    if original.0.max(original.1) <= MAX_EDGE && bytes.len() <= GOOD_BYTES {
        return picture(bytes, format, original, original);
    }
    let scaled = scale_down(decoded);
    let keep_lossless = format == ImageFormat::Png;
    encode(&scaled, original, keep_lossless)
}

/// Encodes a picture that is in memory, losslessly if asked and small enough so, else as JPEG.
fn encode(image: &DynamicImage, original: (u32, u32), keep_lossless: bool) -> Result<Picture, String> {
    let display = (image.width(), image.height());
    if keep_lossless {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, ImageFormat::Png).map_err(|error| error.to_string())?;
        if bytes.get_ref().len() <= GOOD_BYTES {
            return picture(bytes.get_ref(), ImageFormat::Png, original, display);
        }
    }
    let opaque = on_white(image);
    let mut smallest = Vec::new();
    for quality in QUALITIES {
        smallest.clear();
        let encoder = JpegEncoder::new_with_quality(&mut smallest, quality);
        opaque.write_with_encoder(encoder).map_err(|error| error.to_string())?;
        if smallest.len() <= GOOD_BYTES {
            break;
        }
    }
    picture(&smallest, ImageFormat::Jpeg, original, display)
}

fn decode(bytes: &[u8], format: ImageFormat) -> Result<DynamicImage, String> {
    let broken = |error: image::ImageError| format!("it cannot be decoded: {error}");
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_DECODED_EDGE);
    limits.max_image_height = Some(MAX_DECODED_EDGE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(broken)?;
    let (width, height) = decoder.dimensions();
    let n_pixels = u64::from(width) * u64::from(height);
    if n_pixels > MAX_DECODED_PIXELS || decoder.total_bytes() > MAX_DECODED_BYTES {
        return Err(format!("it is too large to decode: {width} x {height} pixels"));
    }
    if n_pixels == 0 {
        return Err("it has no pixels".to_owned());
    }
    let orientation = decoder.orientation().map_err(broken)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(broken)?;
    image.apply_orientation(orientation);
    Ok(image)
}

/// Returns the picture with its longer edge within the limit.
fn scale_down(image: DynamicImage) -> DynamicImage {
    let (width, height) = scaled_size(image.width(), image.height());
    let has_alpha = image.color().has_alpha();
    let source = image.into_rgba8();
    let is_small = (width, height) == source.dimensions();
    let scaled =
        DynamicImage::ImageRgba8(if is_small { source } else { shrink::shrink(&source, width, height) });
    if has_alpha { scaled } else { DynamicImage::ImageRgb8(scaled.into_rgb8()) }
}

fn scaled_size(width: u32, height: u32) -> (u32, u32) {
    let longer = width.max(height);
    if longer <= MAX_EDGE {
        return (width, height);
    }
    let scale =
        |edge: u32| (f64::from(edge) * f64::from(MAX_EDGE) / f64::from(longer)).round().max(1.0) as u32;
    (scale(width), scale(height))
}

/// Returns the picture as it looks on white paper: JPEG knows no transparency.
fn on_white(image: &DynamicImage) -> DynamicImage {
    if !image.color().has_alpha() {
        return DynamicImage::ImageRgb8(image.to_rgb8());
    }
    let mut rgba = image.to_rgba8();
    for pixel in rgba.pixels_mut() {
        let alpha = u16::from(pixel.0[3]);
        for channel in &mut pixel.0[..3] {
            *channel = ((u16::from(*channel) * alpha + 255 * (255 - alpha)) / 255) as u8;
        }
        pixel.0[3] = 255;
    }
    DynamicImage::ImageRgb8(DynamicImage::ImageRgba8(rgba).into_rgb8())
}

fn picture(
    bytes: &[u8],
    format: ImageFormat,
    original: (u32, u32),
    display: (u32, u32),
) -> Result<Picture, String> {
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
    if base64.len() > MAX_BASE64 {
        return Err("it is too large to send, even scaled down".to_owned());
    }
    Ok(Picture { media_type: format.to_mime_type(), base64, original, display })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A picture of noise, which no encoding makes small.
    fn noise(width: u32, height: u32) -> DynamicImage {
        let mut seed = 1u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        };
        let pixels = image::RgbImage::from_fn(width, height, |_, _| image::Rgb([next(), next(), next()]));
        DynamicImage::ImageRgb8(pixels)
    }

    pub(in crate::read) fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn bytes_of(picture: &Picture) -> Vec<u8> {
        base64::engine::general_purpose::STANDARD.decode(&picture.base64).unwrap()
    }

    #[test]
    fn small_pictures_go_as_they_are() {
        let red = DynamicImage::ImageRgb8(image::RgbImage::from_pixel(4, 3, image::Rgb([255, 0, 0])));
        for (format, media_type) in [
            (ImageFormat::Png, "image/png"),
            (ImageFormat::Jpeg, "image/jpeg"),
            (ImageFormat::Gif, "image/gif"),
            (ImageFormat::WebP, "image/webp"),
        ] {
            let bytes = encoded(&red, format);
            assert_eq!(format_of(&bytes), Some(format));
            let picture = prepare(&bytes, format).unwrap();
            assert_eq!((picture.media_type, bytes_of(&picture)), (media_type, bytes));
            assert_eq!((picture.original, picture.display), ((4, 3), (4, 3)));
        }
        assert_eq!(format_of(b"plain text"), None);
        assert_eq!(format_of(b"BM bitmap"), None);
    }

    #[test]
    fn large_pictures_are_scaled_to_the_edge() {
        let wide = DynamicImage::ImageRgba8(image::RgbaImage::new(1_960, 600));
        let picture = prepare(&encoded(&wide, ImageFormat::Png), ImageFormat::Png).unwrap();
        assert_eq!((picture.original, picture.display), ((1_960, 600), (1_568, 480)));
        assert_eq!(picture.media_type, "image/png", "small enough without loss");
        for (width, height, expected) in
            [(1_568, 1_568, (1_568, 1_568)), (1_000, 3_136, (500, 1_568)), (20_000, 1, (1_568, 1))]
        {
            assert_eq!(scaled_size(width, height), expected);
        }
    }

    #[test]
    fn heavy_pictures_are_encoded_until_they_are_light() {
        let bytes = encoded(&noise(500, 400), ImageFormat::Png);
        assert!(bytes.len() > GOOD_BYTES);
        let picture = prepare(&bytes, ImageFormat::Png).unwrap();
        assert_eq!((picture.media_type, picture.display), ("image/jpeg", (500, 400)));
        assert!(bytes_of(&picture).len() <= GOOD_BYTES, "{}", bytes_of(&picture).len());
    }

    #[test]
    fn transparency_becomes_white() {
        let clear = DynamicImage::ImageRgba8(image::RgbaImage::new(2, 2));
        assert_eq!(on_white(&clear).to_rgb8().get_pixel(0, 0).0, [255, 255, 255]);
        let half = DynamicImage::ImageRgba8(image::RgbaImage::from_pixel(1, 1, image::Rgba([0, 0, 0, 128])));
        assert_eq!(on_white(&half).to_rgb8().get_pixel(0, 0).0, [127, 127, 127]);
    }

    #[test]
    fn broken_and_bursting_pictures_are_refused() {
        let whole = encoded(&noise(50, 50), ImageFormat::Png);
        let error = prepare(&whole[..whole.len() / 2], ImageFormat::Png).unwrap_err();
        assert!(error.contains("cannot be decoded"), "{error}");
        // A header that promises more pixels than may be decoded; its checksum is right.
        let mut bomb = whole;
        bomb[16..24].copy_from_slice(&[0, 0, 0x60, 0, 0, 0, 0x60, 0]);
        let crc = crc32(&bomb[12..29]);
        bomb[29..33].copy_from_slice(&crc.to_be_bytes());
        let error = prepare(&bomb, ImageFormat::Png).unwrap_err();
        assert!(error.contains("too large to decode: 24576 x 24576"), "{error}");
        bomb[16] = 0x7f;
        let crc = crc32(&bomb[12..29]);
        bomb[29..33].copy_from_slice(&crc.to_be_bytes());
        assert!(prepare(&bomb, ImageFormat::Png).is_err());
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0u32, |crc, byte| {
            (0..8)
                .fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
        })
    }
}
