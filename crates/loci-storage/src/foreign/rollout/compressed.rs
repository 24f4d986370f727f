//! Rollouts that Codex compressed: `.jsonl.zst`.
//!
//! They are unpacked as a whole whenever they are read. Nobody writes to them any more, so what a list or the index knows of
//! one stays true.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use loci_stdx::{open_regular, read_regular};

use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

/// What is larger than this, unpacked, is no rollout that anybody could have written.
const MOST_BYTES: u64 = 1 << 30;

/// Returns true when a rollout is compressed.
pub(crate) fn is_compressed(file: &Path) -> bool {
    file.extension().is_some_and(|it| it == "zst")
}

/// Reads what Codex wrote, compressed or not.
pub(crate) fn rollout_bytes(file: &Path) -> io::Result<Vec<u8>> {
    match is_compressed(file) {
        true => decompress(&mut BufReader::new(open_regular(file)?), MOST_BYTES),
        false => read_regular(file),
    }
}

/// Unpacks all frames there are.
fn decompress(packed: &mut impl BufRead, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while !packed.fill_buf()?.is_empty() {
        match StreamingDecoder::new(&mut *packed) {
            Ok(frame) => {
                let left = most.saturating_sub(bytes.len() as u64);
                if frame.take(left + 1).read_to_end(&mut bytes)? as u64 > left {
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large when unpacked"));
                }
            }
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                io::copy(&mut (&mut *packed).take(u64::from(length)), &mut io::sink())?;
            }
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
    }

    #[test]
    fn all_frames_are_unpacked_and_those_without_content_passed_over() {
        let skipped = [&0x184d_2a50_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"xyz"].concat();
        let bytes = [packed("one\n"), skipped, packed(&"two ".repeat(50_000))].concat();
        let text = decompress(&mut bytes.as_slice(), 1 << 20).unwrap();
        assert_eq!(text, format!("one\n{}", "two ".repeat(50_000)).into_bytes());
        assert_eq!(decompress(&mut &b""[..], 9).unwrap(), b"");
    }

    #[test]
    fn torn_foreign_or_too_large_archive_is_an_error() {
        let whole = packed(&"some text ".repeat(400));
        assert_eq!(decompress(&mut whole.as_slice(), 4_000).unwrap().len(), 4_000);
        let error = decompress(&mut whole.as_slice(), 3_999).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        for n_bytes in 1..whole.len() {
            assert!(decompress(&mut &whole[..n_bytes], 4_000).is_err(), "{n_bytes} bytes");
        }
        assert!(decompress(&mut &b"plain text"[..], 4_000).is_err());
    }
}
