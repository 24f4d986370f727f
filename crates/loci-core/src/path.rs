//! Paths as values: lexical normalisation, containment, and the name of a project's directory.
//!
//! Nothing here touches the disk; symlinks are resolved by whoever has a disk and handed in.

use std::path::{Component, Path, PathBuf};

/// Makes `path` absolute against `base` and removes `.`, `..` and doubled separators by their letters alone.
pub fn normalise(base: &Path, path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in base.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Expands a leading `~` or `~/` to the home directory; other users' homes are left alone.
pub fn expand_home(home: &Path, path: &str) -> PathBuf {
    match path.strip_prefix('~') {
        Some("") => home.to_path_buf(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

/// Returns true when `path` is `dir` or lies below it, compared by components.
pub fn is_inside(path: &Path, dir: &Path) -> bool {
    path.starts_with(dir)
}

/// Shows `path` relative to `base` when it lies inside, else whole.
pub fn display_relative(base: &Path, path: &Path) -> String {
    match path.strip_prefix(base) {
        Ok(rest) if !rest.as_os_str().is_empty() => rest.display().to_string(),
        _ => path.display().to_string(),
    }
}

/// The longest project directory name that is not shortened, in UTF-16 units.
const SLUG_LIMIT: usize = 200;

/// Returns the name of a project's directory under `projects/`.
///
/// Every UTF-16 unit outside `[A-Za-z0-9]` becomes a dash; a name of more than 200 units is cut there and gets
/// a hash of the whole path, `-` and base 36.
pub fn project_slug(real_cwd: &str) -> String {
    let units: Vec<u16> = real_cwd.encode_utf16().collect();
    let slug: String = units
        .iter()
        .map(|unit| match u8::try_from(*unit) {
            Ok(byte) if byte.is_ascii_alphanumeric() => byte as char,
            _ => '-',
        })
        .collect();
    if slug.len() <= SLUG_LIMIT {
        return slug;
    }
    let hash = units.iter().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(*unit)));
    format!("{}-{}", &slug[..SLUG_LIMIT], base36(hash.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalise_is_lexical() {
        for (base, path, expected) in [
            ("/a/b", "c", "/a/b/c"),
            ("/a/b", "../c", "/a/c"),
            ("/a/b", "/x/./y//z", "/x/y/z"),
            ("/a", "../../..", "/"),
            ("/a", "", "/a"),
        ] {
            assert_eq!(normalise(Path::new(base), Path::new(path)), Path::new(expected));
        }
    }

    #[test]
    fn inside_is_by_component() {
        assert!(is_inside(Path::new("/a/b/c"), Path::new("/a/b")));
        assert!(is_inside(Path::new("/a/b"), Path::new("/a/b")));
        assert!(!is_inside(Path::new("/a/bc"), Path::new("/a/b")));
    }

    #[test]
    fn home_expands_for_ourselves_only() {
        let home = Path::new("/home/dev");
        for (path, expected) in
            [("~", "/home/dev"), ("~/x", "/home/dev/x"), ("~other/x", "~other/x"), ("/a/~", "/a/~")]
        {
            assert_eq!(expand_home(home, path), Path::new(expected));
        }
    }

    #[test]
    fn slugs_are_those_of_the_format() {
        for (cwd, slug) in [
            ("/home/dev/p.dot_name x", "-home-dev-p-dot-name-x"),
            ("/home/dev/ünï-日本", "-home-dev--n----"),
            ("/home/dev/emoji😀x", "-home-dev-emoji--x"),
        ] {
            assert_eq!(project_slug(cwd), slug);
        }
        let exactly = format!("/{}", "a".repeat(199));
        assert_eq!(project_slug(&exactly).len(), 200);
        let longer = format!("/{}", "a".repeat(200));
        let slug = project_slug(&longer);
        assert!(slug.len() > 201 && slug.starts_with(&format!("-{}-", "a".repeat(199))), "{slug}");
    }
}
