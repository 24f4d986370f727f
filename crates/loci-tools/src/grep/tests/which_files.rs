//! Which files a search looks at.

use super::*;

#[tokio::test]
async fn ignored_files_and_version_control_are_left_out() {
    let host = project(&[
        ("a.txt", "x"),
        (".hidden", "x"),
        (".config/b.txt", "x"),
        ("c.log", "x"),
        ("build/d.txt", "x"),
        ("e.mine", "x"),
        ("f.secret", "x"),
        (".git/HEAD", "x"),
        ("sub/.svn/x", "x"),
        ("sub/.hg/x", "x"),
        ("sub/.bzr/x", "x"),
        ("sub/.jj/x", "x"),
        ("sub/.sl/x", "x"),
    ]);
    host.write(".gitignore", "*.log\n/build/\n");
    host.write(".ignore", "*.secret\n");
    host.write("../home/.config/git/ignore", "*.mine\n");
    check(&host, json!({"pattern": "x"}), "Found 3 files\na.txt\n.hidden\n.config/b.txt").await;
    // Naming a file or directory is asking for it; so is a glob, in a directory that is not ignored itself.
    check(&host, json!({"pattern": "x", "glob": "{*.log,d.txt}"}), "Found 1 file\nc.log").await;
    check(&host, json!({"pattern": "x", "path": "c.log"}), "Found 1 file\nc.log").await;
    check(&host, json!({"pattern": "x", "path": ".git"}), "Found 1 file\n.git/HEAD").await;
}

#[tokio::test]
async fn globs_and_types_choose_files() {
    let host = project(&[
        ("a.rs", "x"),
        ("src/b.rs", "x"),
        ("src/c.ts", "x"),
        ("src/d.tsx", "x"),
        ("e.md", "x"),
        ("src/deep/f.md", "x"),
    ]);
    for (options, expected) in [
        (json!({"glob": "*.rs"}), "a.rs src/b.rs"),
        (json!({"glob": "*.{ts,tsx}"}), "src/c.ts src/d.tsx"),
        (json!({"glob": "*.rs *.ts"}), "a.rs src/b.rs src/c.ts"),
        (json!({"glob": "*.rs,*.md"}), "a.rs src/b.rs e.md src/deep/f.md"),
        (json!({"glob": "!*.rs"}), "src/c.ts src/d.tsx e.md src/deep/f.md"),
        (json!({"glob": "*.rs !src/**"}), "a.rs"),
        (json!({"glob": "src/*.rs"}), "src/b.rs"),
        (json!({"glob": "**/deep/*"}), "src/deep/f.md"),
        (json!({"glob": "deep/*", "path": "src"}), "src/deep/f.md"),
        (json!({"glob": "src/deep/*", "path": "src"}), "src/deep/f.md"),
        (json!({"glob": "*.ts", "path": "a.rs"}), "a.rs"),
        (json!({"glob": ""}), "a.rs src/b.rs src/c.ts src/d.tsx e.md src/deep/f.md"),
        (json!({"type": "rust"}), "a.rs src/b.rs"),
        (json!({"type": "ts"}), "src/c.ts src/d.tsx"),
        (json!({"type": ""}), "a.rs src/b.rs src/c.ts src/d.tsx e.md src/deep/f.md"),
    ] {
        let mut input = json!({"pattern": "x"});
        input.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let shown = grep(&host, input).await;
        let names: Vec<&str> = shown.lines().skip(1).collect();
        assert_eq!(names.join(" "), expected, "{options}");
    }
}

#[tokio::test]
async fn denied_files_are_not_searched() {
    let host = project(&[("a", "x"), ("private/b", "x"), ("c", "x")]);
    symlink("private", host.project().join("alias")).unwrap();
    host.denied.lock().unwrap().extend([host.project().join("private"), host.project().join("c")]);
    for (path, expected) in [
        (".", "Found 1 file\na"),
        ("private", "No files found"),
        ("private/b", "No files found"),
        ("c", "No files found"),
        ("alias", "No files found"),
        ("alias/b", "No files found"),
    ] {
        check(&host, json!({"pattern": "x", "path": path}), expected).await;
    }
    let input = json!({"pattern": "x", "output_mode": "count"});
    check(&host, input, "a:1\n\nFound 1 matching line in 1 file").await;
}

#[tokio::test]
async fn symlinks_are_not_followed() {
    let host = project(&[("dir/a", "x"), ("../else/b", "x")]);
    let project = host.project();
    symlink("..", project.join("dir/loop")).unwrap();
    symlink("../else", project.join("outside")).unwrap();
    symlink("dir/a", project.join("link")).unwrap();
    check(&host, json!({"pattern": "x"}), "Found 1 file\ndir/a").await;
    // A symlink that is named is followed, and its own name is shown.
    check(&host, json!({"pattern": "x", "path": "outside"}), "Found 1 file\noutside/b").await;
    check(&host, json!({"pattern": "x", "path": "link"}), "Found 1 file\nlink").await;
    check(&host, json!({"pattern": "x", "path": "dir/loop/dir"}), "Found 1 file\ndir/loop/dir/a").await;
}

#[tokio::test]
async fn paths_outside_are_absolute() {
    let host = project(&[("../else/b", "x")]);
    let path = host.project().with_file_name("else/b");
    let input = json!({"pattern": "x", "path": "../else", "output_mode": "content"});
    check(&host, input, &format!("{}:1:x", path.display())).await;
}

#[tokio::test]
async fn binary_files_are_treated_as_ripgrep_does() {
    let late = format!("needle\n{}needle\0\n", "filler\n".repeat(20_000));
    let host = project(&[("text", "needle\n"), ("early", "needle\n\0\n"), ("late", &late)]);
    check(
        &host,
        json!({"pattern": "needle", "output_mode": "count"}),
        "text:1\n\nFound 1 matching line in 1 file",
    )
    .await;
    check(
        &host,
        json!({"pattern": "needle", "output_mode": "content"}),
        "text:1:needle\nlate:1:needle\n\
         late: the search of this file stopped at binary data (NUL byte near offset 140013)",
    )
    .await;
    // A file that is named is searched, but what it holds is not shown.
    let early = |mode: &str| json!({"pattern": "needle", "path": "early", "output_mode": mode});
    check(&host, early("files_with_matches"), "Found 1 file\nearly").await;
    check(&host, early("content"), "early: binary file matches (NUL byte near offset 7)").await;
    check(&host, early("count"), "early:1\n\nFound 1 matching line in 1 file").await;
}

#[tokio::test]
async fn neither_names_nor_contents_need_be_utf_8() {
    let host = TestHost::new();
    std::fs::write(host.project().join(OsStr::from_bytes(b"n\xffme")), b"caf\xe9 x\n").unwrap();
    check(&host, json!({"pattern": "caf. ?x", "output_mode": "content"}), "No matches found").await;
    let expected = "n\u{fffd}me:1:caf\u{fffd} x";
    check(&host, json!({"pattern": "caf(?-u:.) x", "output_mode": "content"}), expected).await;
    let utf16: Vec<u8> = "\u{feff}größe\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    host.write("wide", utf16);
    check(&host, json!({"pattern": "größe", "output_mode": "content"}), "wide:1:größe").await;
}

#[tokio::test]
async fn a_file_that_vanished_is_no_error() {
    let host = project(&[("a", "x"), ("swapped", "x")]);
    let project = host.project();
    let found = |name: &str, age: u64| WalkEntry {
        path: name.into(),
        modified: SystemTime::UNIX_EPOCH - Duration::from_secs(age),
        target: None,
    };
    std::fs::remove_file(project.join("swapped")).unwrap();
    symlink("a", project.join("swapped")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, project.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let files =
        vec![found("gone", 0), found("a/gone", 1), found("swapped", 2), found("a", 3), found("pipe", 4)];
    let (hits, ending) = limits::search(&host, json!({"pattern": "x"}), files, CancellationToken::new());
    assert_eq!(ending, Ending::Complete);
    let paths: Vec<(&str, bool)> =
        hits.iter().map(|hits| (hits.path.as_str(), hits.problem.is_some())).collect();
    assert_eq!(paths, [("a", false), ("pipe", true)]);
}

#[tokio::test]
async fn files_that_cannot_be_read_are_mentioned() {
    let host = project(&[("a", "x"), ("b", "x")]);
    // A line longer than the memory of a search stands for anything that goes wrong in a file.
    host.write("big", vec![b'y'; 33 << 20]);
    let shown = grep(&host, json!({"pattern": "x"})).await;
    assert!(
        shown.starts_with("Found 2 files\na\nb\n\n(1 file could not be searched, such as big: "),
        "{shown}"
    );
    let outcome = host.call(&Grep::default(), json!({"pattern": "x", "path": "big"})).await;
    assert!(
        outcome.is_failure() && text(&outcome).starts_with("Failed to search `big: "),
        "{}",
        text(&outcome)
    );
}

/// A FIFO or a device in the place of an ignore file is not opened: the search ends, and what lies there is found, with the
/// ignore files of other directories still heeded.
#[tokio::test]
async fn special_ignore_file_does_not_block_the_search() {
    let fifo = |path: &Path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR).unwrap();
    for place in [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"] {
        for below in ["", "sub/"] {
            let host = project(&[
                ("sub/inner/a.txt", "run"),
                ("sub/b.txt", "run"),
                ("plain/.ignore", "hidden.txt\n"),
                ("plain/hidden.txt", "run"),
            ]);
            let path = host.project().join(below).join(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            fifo(&path);
            let found = grep(&host, json!({"pattern": "run"})).await;
            let expected = match below {
                "" => "Found 3 files\nsub/inner/a.txt\nsub/b.txt\nplain/hidden.txt",
                _ => "Found 2 files\nsub/inner/a.txt\nsub/b.txt",
            };
            assert_eq!(found, expected, "{below}{place}");
        }
    }
    let host = project(&[("a.txt", "run")]);
    symlink("/dev/zero", host.project().join(".gitignore")).unwrap();
    check(&host, json!({"pattern": "run"}), "Found 1 file\na.txt").await;
    // The `.git` file of a worktree leads to others.
    let host = project(&[("work/a.txt", "run"), ("git/HEAD", "")]);
    let git_dir = host.project().join("git");
    host.write("work/.git", format!("gitdir: {}\n", git_dir.display()));
    fifo(&git_dir.join("commondir"));
    check(&host, json!({"pattern": "run"}), "Found 1 file\nwork/a.txt").await;
}
