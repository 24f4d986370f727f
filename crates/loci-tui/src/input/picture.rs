//! Pictures for the prompt: from the clipboard, or from files whose paths were pasted or dropped.
//!
//! The clipboard belongs to the window system, so programs of it are asked: `wl-paste` under Wayland, `xclip` under X11,
//! `pngpaste` on macOS. Reading blocks and decodes, so it happens on a thread of its own; [`image_paths`] alone is pure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_core::hex::decode_percent;
use loci_stdx::Vars;
use loci_stdx::{CommandFailure, CommandLimits, CommandOutput, run_bounded};

use super::chip::PastedImage;
use crate::clipboard::clipboard_program;

/// How long a program of the clipboard has, and how much it may print.
const LIMITS: CommandLimits = CommandLimits { patience: Duration::from_secs(5), output: MOST_BYTES };
/// Files and clipboards beyond this are not read.
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// The kinds of pictures that the model takes, the best first.
const MEDIA_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
/// How names of pictures end.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// Where a picture is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PictureSource {
    /// On the clipboard.
    Clipboard,
    /// In a file.
    File(PathBuf),
}

/// Reads a picture and makes it fit for the model; the error is a sentence for the person.
pub fn read_picture(source: &PictureSource, vars: &Vars) -> Result<PastedImage, String> {
    let (bytes, path) = match source {
        PictureSource::Clipboard => (read_clipboard(vars)?, None),
        PictureSource::File(path) => {
            let shown = path.display().to_string();
            let failed = |why: String| format!("The picture `{shown}` cannot be read: {why}");
            let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
            if size > MOST_BYTES {
                return Err(failed("it is larger than 64 MB".to_owned()));
            }
            (loci_stdx::read_regular(path).map_err(|error| failed(error.to_string()))?, Some(shown))
        }
    };
    let what = path.as_ref().map_or("the clipboard".to_owned(), |path| format!("`{path}`"));
    match loci_app::picture_block(&bytes) {
        Some(Ok(block)) => Ok(PastedImage { block, path }),
        Some(Err(why)) => Err(format!("The picture of {what} cannot be sent: {why}")),
        None => {
            Err(format!("What is in {what} is no picture of a kind that can be sent (PNG, JPEG, GIF, WebP)"))
        }
    }
}

fn read_clipboard(vars: &Vars) -> Result<Vec<u8>, String> {
    let programs: Vec<&ClipboardProgram> = PROGRAMS.iter().filter(|program| program.is_for(vars)).collect();
    for program in &programs {
        match program.read(vars) {
            Ok(found) => return found.ok_or_else(|| "There is no picture on the clipboard".to_owned()),
            Err(CommandFailure::NotFound) => {}
            Err(CommandFailure::TimedOut) => {
                return Err(format!("`{}` did not give the clipboard in time", program.name));
            }
            Err(CommandFailure::Start(_) | CommandFailure::Read) => {
                return Err(format!("`{}` could not read the clipboard", program.name));
            }
        }
    }
    let names: Vec<String> = programs.iter().map(|program| format!("`{}`", program.name)).collect();
    Err(match names.is_empty() {
        true => {
            "This terminal has no clipboard that loci can read: neither WAYLAND_DISPLAY nor DISPLAY is set. \
                 Name the picture with @ and its path, or drop the file on the window"
                .to_owned()
        }
        false => format!(
            "Pictures are pasted with {}, which is not installed. Name the picture with @ and its path instead",
            names.join(" or ")
        ),
    })
}

/// A program that prints what is on the clipboard.
struct ClipboardProgram {
    name: &'static str,
    /// The variable that says that there is such a clipboard; on macOS there always is one.
    variable: Option<&'static str>,
    /// What makes it list the kinds of what is there, one a line.
    list: Option<&'static [&'static str]>,
    /// What makes it print a kind, which stands in the place of `{}`.
    read: &'static [&'static str],
}

const PROGRAMS: &[ClipboardProgram] = &[
    ClipboardProgram {
        name: "wl-paste",
        variable: Some("WAYLAND_DISPLAY"),
        list: Some(&["--list-types"]),
        read: &["--no-newline", "--type", "{}"],
    },
    ClipboardProgram {
        name: "xclip",
        variable: Some("DISPLAY"),
        list: Some(&["-selection", "clipboard", "-t", "TARGETS", "-o"]),
        read: &["-selection", "clipboard", "-t", "{}", "-o"],
    },
    #[cfg(target_os = "macos")]
    ClipboardProgram { name: "pngpaste", variable: None, list: None, read: &["-"] },
];

impl ClipboardProgram {
    fn is_for(&self, vars: &Vars) -> bool {
        self.variable.is_none_or(|name| vars.non_empty(name).is_some())
    }

    /// Returns the picture on the clipboard; none where there is something else, or nothing.
    fn read(&self, vars: &Vars) -> Result<Option<Vec<u8>>, CommandFailure> {
        let kind = match self.list {
            Some(list) => {
                let kinds = self.run(vars, list.iter().copied())?;
                let kinds = String::from_utf8_lossy(&kinds.bytes).into_owned();
                match MEDIA_TYPES.iter().find(|wanted| kinds.lines().any(|kind| kind.trim() == **wanted)) {
                    Some(kind) => *kind,
                    None => return Ok(None),
                }
            }
            None => "",
        };
        let arguments = self.read.iter().map(|argument| if *argument == "{}" { kind } else { argument });
        let output = self.run(vars, arguments)?;
        let is_good = output.status.is_some_and(|status| status.success()) && !output.bytes.is_empty();
        Ok(is_good.then_some(output.bytes))
    }

    fn run<'a>(
        &self,
        vars: &Vars,
        arguments: impl Iterator<Item = &'a str>,
    ) -> Result<CommandOutput, CommandFailure> {
        let mut command = clipboard_program(self.name, vars);
        command.args(arguments);
        run_bounded(command, b"", LIMITS)
    }
}

/// Returns the paths in a pasted text, each with the text it was, if all of it is paths of pictures: what terminals send
/// when files are dropped on them.
pub fn image_paths(pasted: &str, cwd: &Path, home: &Path) -> Option<Vec<(String, PathBuf)>> {
    let text = pasted.trim();
    if text.is_empty() || text.len() > 16_384 {
        return None;
    }
    let resolve = |path: &str| match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => cwd.join(path),
    };
    // A path with blanks that nobody quoted is one all the same, where it is the whole text.
    if !text.contains('\n') && is_plain_path(text) && is_image_name(text) {
        let n_paths = text.match_indices(" /").count() + text.match_indices(" ~/").count();
        if n_paths == 0 && !text.contains(['\\', '\'', '"']) {
            return Some(vec![(text.to_owned(), resolve(text))]);
        }
    }
    // Whoever quotes closes the quote: where one stays open it is a part of a name.
    let lines = || text.lines().map(|line| (line.trim().to_owned(), line.trim().to_owned())).collect();
    let words = split_words(text).unwrap_or_else(lines);
    let paths = words.into_iter().map(|(written, word)| {
        let path = match word.strip_prefix("file://") {
            Some(address) => decode_percent(address.strip_prefix("localhost").unwrap_or(address))?,
            None => word,
        };
        (is_plain_path(&path) && is_image_name(&path)).then(|| (written, resolve(&path)))
    });
    paths.collect()
}

fn is_plain_path(text: &str) -> bool {
    ["/", "~/", "./", "../"].iter().any(|start| text.starts_with(start))
}

fn is_image_name(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| lower.ends_with(ending))
}

/// Splits words as a shell does, with quotes and backslashes; each with the text it was. None where a quote is open.
fn split_words(text: &str) -> Option<Vec<(String, String)>> {
    let mut words = Vec::new();
    let (mut written, mut word) = (String::new(), String::new());
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if quote.is_none() && char.is_whitespace() {
            if !written.is_empty() {
                words.push((std::mem::take(&mut written), std::mem::take(&mut word)));
            }
            continue;
        }
        written.push(char);
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (None, '\'' | '"') => quote = Some(char),
            (None | Some('"'), '\\') => {
                let next = chars.next()?;
                written.push(next);
                word.push(next);
            }
            _ => word.push(char),
        }
    }
    if !written.is_empty() {
        words.push((written, word));
    }
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn dropped_pictures_are_found_however_terminals_write_them() {
        let (cwd, home) = (Path::new("/p"), Path::new("/home/me"));
        for (pasted, expected) in [
            ("/tmp/a.png", vec!["/tmp/a.png"]),
            ("/tmp/a.PNG\n", vec!["/tmp/a.PNG"]),
            ("'/tmp/my pictures/a b.jpg' ", vec!["/tmp/my pictures/a b.jpg"]),
            ("\"/tmp/a b.jpeg\"", vec!["/tmp/a b.jpeg"]),
            ("/tmp/a\\ b.webp", vec!["/tmp/a b.webp"]),
            ("/tmp/Screenshot 2026 at 10.gif", vec!["/tmp/Screenshot 2026 at 10.gif"]),
            ("file:///tmp/a%20b.png", vec!["/tmp/a b.png"]),
            ("~/a.png ./b.png\n/c.png", vec!["/home/me/a.png", "/p/./b.png", "/c.png"]),
            ("look at /tmp/a.png", vec![]),
            ("/tmp/a.png and more", vec![]),
            ("/tmp/a.txt", vec![]),
            ("a.png", vec![]),
            ("/tmp/it's.png", vec!["/tmp/it's.png"]),
            ("/tmp/a.png\n/tmp/it's one.png\n", vec!["/tmp/a.png", "/tmp/it's one.png"]),
            ("/tmp/it\\'s.png", vec!["/tmp/it's.png"]),
            ("it's /tmp/a.png", vec![]),
            ("'/tmp/a.png", vec![]),
            ("", vec![]),
        ] {
            let found = image_paths(pasted, cwd, home).unwrap_or_default();
            let found: Vec<&str> = found.iter().filter_map(|(_, path)| path.to_str()).collect();
            assert_eq!(found, expected, "{pasted:?}");
        }
        let written = image_paths("'/a b.png' /c.png", cwd, home).unwrap();
        assert_eq!((written[0].0.as_str(), written[1].0.as_str()), ("'/a b.png'", "/c.png"));
    }

    /// A picture of one pixel.
    const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

    fn program(directory: &Path, name: &str, script: &str) {
        let path = directory.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn clipboard_is_read_by_the_program_of_the_window_system() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path();
        std::fs::write(dir.join("pixel.gif"), PIXEL).unwrap();
        let path = format!("{}:/usr/bin:/bin", dir.display());
        let vars = Vars::default().with("WAYLAND_DISPLAY", "wayland-0").with("PATH", path.as_str());
        let missing =
            read_picture(&PictureSource::Clipboard, &vars.clone().with("PATH", dir.to_str().unwrap()));
        assert!(missing.unwrap_err().contains("`wl-paste`, which is not installed"));
        let script = format!(
            "[ -z \"$CARGO_MANIFEST_DIR\" ] || exit 1 # inherited, as keys would be\n\
             case \"$*\" in --list-types) echo text/plain; echo image/gif;; '--no-newline --type image/gif') cat '{}';; *) exit 1;; esac",
            dir.join("pixel.gif").display()
        );
        program(dir, "wl-paste", &script);
        let image = read_picture(&PictureSource::Clipboard, &vars).unwrap();
        assert_eq!(image.block.to_value()["source"]["media_type"], "image/gif");
        program(dir, "wl-paste", "echo text/plain");
        let none = read_picture(&PictureSource::Clipboard, &vars).unwrap_err();
        assert!(none.contains("no picture on the clipboard"), "{none}");
        let nowhere = read_picture(&PictureSource::Clipboard, &Vars::default()).unwrap_err();
        assert!(nowhere.contains("no clipboard"), "{nowhere}");
    }

    #[test]
    fn file_that_is_no_picture_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let text = directory.path().join("a.png");
        std::fs::write(&text, "text").unwrap();
        let told = read_picture(&PictureSource::File(text.clone()), &Vars::default()).unwrap_err();
        assert!(told.contains("is no picture"), "{told}");
        std::fs::write(&text, PIXEL).unwrap();
        let image = read_picture(&PictureSource::File(text), &Vars::default()).unwrap();
        assert_eq!(image.block.kind(), loci_core::message::BlockKind::Image);
        let gone = read_picture(&PictureSource::File("/nonexistent/a.png".into()), &Vars::default());
        assert!(gone.unwrap_err().contains("cannot be read"));
    }
}
