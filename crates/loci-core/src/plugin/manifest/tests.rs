use super::*;

#[test]
fn every_field_of_a_manifest_is_read() {
    let text = r#"{
        "name": "tools", "displayName": "The Tools", "version": "1.2.0", "description": "d",
        "author": {"name": "Ann"}, "defaultEnabled": false, "skills": ["./more/", "."],
        "commands": "./cmd.md", "agents": ["./a/b.md"], "outputStyles": "./styles/",
        "hooks": ["./h.json", {"hooks": {}}], "mcpServers": {"db": {"command": "x"}},
        "userConfig": {"token": {"type": "string", "title": "t", "description": "d", "sensitive": true}},
        "dependencies": ["vault", {"name": "base@other", "version": "~2.1"}],
        "experimental": {"themes": "./t"}, "lspServers": {}, "futureField": 1
    }"#;
    let (manifest, problems) = parse_manifest(text, "dir").unwrap();
    assert_eq!(problems, Vec::<String>::new());
    let paths = |items: &[&str]| items.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!((manifest.name.as_str(), manifest.author.as_deref()), ("tools", Some("Ann")));
    assert_eq!((manifest.version.as_deref(), manifest.is_enabled_by_default), (Some("1.2.0"), false));
    assert_eq!(manifest.skills, paths(&["more", ""]));
    assert_eq!(manifest.commands, Some(paths(&["cmd.md"])));
    assert_eq!(manifest.agents, Some(paths(&["a/b.md"])));
    assert_eq!(manifest.output_styles, Some(paths(&["styles"])));
    assert_eq!(manifest.hooks.len(), 2);
    assert!(matches!(&manifest.mcp_servers[..], [Declared::Inline(_)]));
    assert_eq!(manifest.options.len(), 1);
    assert_eq!(manifest.dependencies[1].marketplace.as_deref(), Some("other"));
    assert_eq!(manifest.unsupported, ["LSP servers"]);
}

#[test]
fn bad_fields_cost_themselves_and_are_reported() {
    for (text, needle) in [
        (r#"{"name": "p", "version": 3}"#, "`version` is no text"),
        (r#"{"name": "p", "defaultEnabled": "no"}"#, "`defaultEnabled` is neither"),
        (r#"{"name": "p", "skills": 1}"#, "`skills` is neither a path"),
        (r#"{"name": "p", "commands": ["cmd.md"]}"#, "does not begin with `./`"),
        (r#"{"name": "p", "agents": ["./../x"]}"#, "leads out of the plugin"),
        (r#"{"name": "p", "hooks": "/etc/hooks.json"}"#, "does not begin with `./`"),
        (r#"{"name": "p", "mcpServers": [1]}"#, "neither a path nor an object"),
        (r#"{"name": "p", "dependencies": [{"name": "../x"}]}"#, "names no plugin"),
        (r#"{"name": "p", "userConfig": {"a b": {}}}"#, "`a b`"),
    ] {
        let (manifest, problems) = parse_manifest(text, "dir").unwrap();
        assert_eq!(manifest.name, "p");
        assert!(problems.len() == 1 && problems[0].contains(needle), "{text}: {problems:?}");
    }
}

#[test]
fn plugin_without_a_usable_name_is_none() {
    for (text, dir, expected) in [
        ("{}", "my-dir", Ok("my-dir")),
        ("{}", "my dir", Err("is no name")),
        (r#"{"name": "a:b"}"#, "d", Err("is no name")),
        (r#"{"name": "../../x"}"#, "d", Err("is no name")),
        (r#"{"name": 1}"#, "d", Err("no text")),
        ("[]", "d", Err("no object")),
        ("{", "d", Err("no JSON")),
    ] {
        match (parse_manifest(text, dir), expected) {
            (Ok((manifest, _)), Ok(name)) => assert_eq!(manifest.name, name),
            (Err(why), Err(needle)) => assert!(why.contains(needle), "{text}: {why}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
}

#[test]
fn paths_stay_inside_the_plugin() {
    for (text, expected) in [
        ("./a/b", Some("a/b")),
        ("./a/./b/", Some("a/b")),
        (".", Some("")),
        ("./", Some("")),
        ("a/b", None),
        ("/etc/passwd", None),
        ("./../x", None),
        ("./a/../../x", None),
        (".//etc/passwd", None),
        ("./a\\..\\x", None),
        ("./a\0b", None),
        ("~/x", None),
        ("", None),
    ] {
        assert_eq!(plugin_path(text).ok(), expected.map(PathBuf::from), "{text:?}");
    }
}
