use super::*;

/// Returns the bytes of an index of one version, its paths spelled as that version has them.
fn index(version: u32, id_len: usize, paths: &[&str], extensions: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut bytes = b"DIRC".to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.extend(u32::try_from(paths.len()).unwrap().to_be_bytes());
    let mut last = "";
    for path in paths {
        let start = bytes.len();
        for n in 0..10_u32 {
            bytes.extend(if n == 6 { 0o100_644 } else { n }.to_be_bytes());
        }
        bytes.extend(vec![7; id_len]);
        bytes.extend(if version == 3 { HAS_MORE_FLAGS } else { 0 }.to_be_bytes());
        if version == 3 {
            bytes.extend([0x20, 0]);
        }
        if version == 4 {
            let n_common = last.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count();
            bytes.push(u8::try_from(last.len() - n_common).unwrap());
            bytes.extend(path[n_common..].bytes());
            bytes.push(0);
        } else {
            bytes.extend(path.bytes());
            bytes.extend(vec![0; 8 - (bytes.len() - start) % 8]);
        }
        last = path;
    }
    for (signature, data) in extensions {
        bytes.extend(*signature);
        bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        bytes.extend(*data);
    }
    bytes.extend(vec![0; id_len]);
    bytes
}

fn paths_in(bytes: &[u8], id_len: usize) -> Option<Vec<String>> {
    let mut paths = Vec::new();
    read_git_index(bytes, id_len, |entry| {
        paths.push(String::from_utf8(entry.path.to_owned()).ok()?);
        Some(())
    })?;
    Some(paths)
}

#[test]
fn entries_of_every_version_and_hash_are_read() {
    let paths = ["a", "a/deep/name.rs", "a/deep/other", "exactly/eight/zeros", "z"];
    for version in 2..=4 {
        for id_len in [SHA1_LEN, SHA256_LEN] {
            let bytes = index(version, id_len, &paths, &[(b"TREE", b"data")]);
            assert_eq!(paths_in(&bytes, id_len).unwrap(), paths, "version {version}, ids of {id_len}");
        }
    }
}

#[test]
fn fields_of_an_entry_are_those_of_the_format() {
    let bytes = index(3, SHA1_LEN, &["file"], &[]);
    let mut n_entries = 0;
    let extensions = read_git_index(&bytes, SHA1_LEN, |entry| {
        n_entries += 1;
        let expected = GitIndexEntry {
            changed: (0, 1),
            modified: (2, 3),
            inode: 5,
            mode: 0o100_644,
            owner: (7, 8),
            size: 9,
            id: &[7; 20],
            flags: HAS_MORE_FLAGS,
            more_flags: 0x2000,
            path: b"file",
        };
        assert_eq!(entry, expected);
        assert!(entry.is_file() && !entry.is_submodule());
        Some(())
    });
    assert_eq!((n_entries, extensions), (1, Some(vec![])));
}

#[test]
fn extensions_that_must_be_understood_are_told_apart() {
    let bytes = index(2, SHA1_LEN, &["a"], &[(b"TREE", b""), (b"link", b"somewhere"), (b"sdir", b"")]);
    let extensions = read_git_index(&bytes, SHA1_LEN, |_| Some(())).unwrap();
    let told: Vec<_> = extensions.iter().map(|it| (it.signature, it.data, it.is_required())).collect();
    let expected: [(&[u8], &[u8], bool); 3] =
        [(b"TREE", b"", false), (b"link", b"somewhere", true), (b"sdir", b"", true)];
    assert_eq!(told, expected);
}

#[test]
fn index_that_is_cut_short_is_none_and_never_a_part_of_one() {
    for version in 2..=4 {
        let bytes = index(version, SHA1_LEN, &["a", "a/b"], &[(b"TREE", b"data")]);
        assert!(paths_in(&bytes, SHA1_LEN).is_some());
        let without_extension = bytes.len() - b"TREE1234data".len();
        for length in (0..bytes.len()).filter(|length| *length != without_extension) {
            assert_eq!(paths_in(&bytes[..length], SHA1_LEN), None, "version {version}, cut at {length}");
        }
    }
    for bytes in [&b""[..], b"DIRC", b"JUNK\0\0\0\x02\0\0\0\0", b"DIRC\0\0\0\x05\0\0\0\0"] {
        assert_eq!(paths_in(&[bytes, &[0; 20]].concat(), SHA1_LEN), None, "{bytes:?}");
    }
}

#[test]
fn visitor_can_refuse_an_index() {
    let bytes = index(2, SHA1_LEN, &["a", "b"], &[]);
    assert_eq!(read_git_index(&bytes, SHA1_LEN, |entry| (entry.path != b"b").then_some(())), None);
}

#[test]
fn numbers_of_variable_length_are_decoded_like_git() {
    for (bytes, expected) in [
        (&[0u8][..], Some(0)),
        (&[127], Some(127)),
        (&[128, 0], Some(128)),
        (&[129, 0], Some(256)),
        (&[128], None),
        (&[255; 12], None),
    ] {
        assert_eq!(variable_number(bytes, &mut 0), expected, "{bytes:?}");
    }
}
