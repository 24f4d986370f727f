//! Output styles on disk: Markdown files in `output-styles` directories.

use loci_core::output_style::{OutputStyle, parse_style};

use super::definition_files::{DefinitionPlaces, markdown_files, read_limited};

/// Reads the styles of every place: the administrator's, then the project's, the closest first, then the user's. The first
/// of a name counts; directories that were added bring none. A file that cannot be read is left out and told beside them.
pub fn discover_output_styles(places: &DefinitionPlaces) -> (Vec<OutputStyle>, Vec<String>) {
    let (mut styles, mut problems) = (Vec::new(), Vec::new());
    let places = DefinitionPlaces { extra_dirs: Vec::new(), ..places.clone() };
    for file in places.dirs("output-styles").iter().flat_map(|(dir, _)| markdown_files(dir)) {
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        match read_limited(&file) {
            Ok(text) => styles.push(parse_style(&text, &name, Some(file))),
            Err(why) => problems.push(format!("Output style `{}` {why}", file.display())),
        }
    }
    (styles, problems)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingsSources;

    #[test]
    fn styles_of_every_place_are_found_and_unreadable_ones_told() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for (file, text) in [
            ("home/.claude/output-styles/a.md", "---\nname: Mine\n---\nx"),
            ("p/.claude/output-styles/b.md", "far"),
            ("added/.claude/output-styles/c.md", "of a directory that was added"),
            ("p/sub/.claude/output-styles/b.md", "near"),
        ] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), text).unwrap();
        }
        std::fs::write(root.join("home/.claude/output-styles/bad.md"), [0xff]).unwrap();
        let places = DefinitionPlaces {
            managed_dir: root.join("etc"),
            user: root.join("home/.claude"),
            cwd: root.join("p/sub"),
            root: root.join("p"),
            extra_dirs: vec![root.join("added")],
            sources: SettingsSources::ALL,
            is_trusted: true,
        };
        let (styles, problems) = discover_output_styles(&places);
        let found: Vec<_> = styles.iter().map(|style| (style.name.as_str(), style.text.as_str())).collect();
        assert_eq!(found, [("b", "near"), ("b", "far"), ("Mine", "x")]);
        assert_eq!(problems.len(), 1);
    }
}
