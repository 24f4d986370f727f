use std::os::unix::fs::symlink;

use expect_test::{Expect, expect};
use loci_core::tool::ToolContent;

use super::*;
use crate::testing::TestHost;

pub(super) fn text_of(outcome: &ToolOutcome) -> String {
    match &outcome.content {
        ToolContent::Text(text) => text.clone(),
        ToolContent::Blocks(blocks) => format!("{} blocks", blocks.len()),
    }
}

/// Reads `name` with more input and compares what the model sees, the project's path shortened.
async fn check(host: &TestHost, input: Value, expected: Expect) -> ToolOutcome {
    let outcome = host.call(&Read::default(), input).await;
    let text = text_of(&outcome).replace(&host.project().display().to_string(), "/project");
    expected.assert_eq(&text);
    outcome
}

#[tokio::test]
async fn text_is_numbered_as_the_format_has_it() {
    let host = TestHost::new();
    let path = host.write("settings.ini", "port=9000\nhost=local\n");
    let outcome = host.call(&Read::default(), json!({"file_path": path})).await;
    assert_eq!(text_of(&outcome), "1\tport=9000\n2\thost=local\n3\t");
    assert_eq!(outcome.is_error, None);
    assert_eq!(
        outcome.structured,
        json!({"type": "text", "file": {
            "filePath": path, "content": "port=9000\nhost=local\n",
            "numLines": 3, "startLine": 1, "totalLines": 3,
        }})
    );
}

#[tokio::test]
async fn a_part_can_be_asked_for() {
    let host = TestHost::new();
    host.write("a.txt", "one\ntwo\nthree\nfour");
    for (input, text, start) in [
        (json!({"offset": 2, "limit": 2}), "2\ttwo\n3\tthree", 2),
        (json!({"offset": 0, "limit": 1}), "1\tone", 1),
        (json!({"offset": 4}), "4\tfour", 4),
        (json!({"limit": "1"}), "1\tone", 1),
    ] {
        let mut input = input;
        input["file_path"] = json!("a.txt");
        let outcome = host.call(&Read::default(), input.clone()).await;
        assert_eq!(text_of(&outcome), text, "{input}");
        assert_eq!(outcome.structured["file"]["startLine"], start);
        assert_eq!(outcome.structured["file"]["totalLines"], 4);
    }
}

#[tokio::test]
async fn paths_may_be_relative_or_begin_at_home() {
    let host = TestHost::new();
    std::fs::write(host.workspace().home.join("note"), "at home").unwrap();
    host.write("sub/a.txt", "below");
    for (path, text) in [("~/note", "1\tat home"), ("sub/../sub/a.txt", "1\tbelow")] {
        assert_eq!(text_of(&host.call(&Read::default(), json!({"file_path": path})).await), text);
    }
}

#[tokio::test]
async fn empty_or_missing_content_is_explained() {
    let host = TestHost::new();
    host.write("empty", "");
    host.write("bom", "\u{feff}");
    host.write("short", "a\nb\n");
    host.write("config.toml", "");
    let path = |name: &str| json!({"file_path": name});
    check(&host, path("empty"), expect!["<system-reminder>The file exists but is empty.</system-reminder>"])
        .await;
    check(&host, path("bom"), expect!["<system-reminder>The file exists but is empty.</system-reminder>"])
        .await;
    check(
        &host,
        json!({"file_path": "short", "offset": 9}),
        expect![
            "<system-reminder>The file has only 3 lines: there is nothing at offset 9.</system-reminder>"
        ],
    )
    .await;
    let outcome = check(
        &host,
        path("missing"),
        expect!["File does not exist. Note: your current working directory is /project."],
    )
    .await;
    assert!(outcome.is_failure());
    check(
        &host,
        path("config.tml"),
        expect![
            "File does not exist. Note: your current working directory is /project. Did you mean `/project/config.toml`?"
        ],
    )
    .await;
    host.denied.lock().unwrap().push(host.project().join("config.toml"));
    check(
        &host,
        path("config.tml"),
        expect!["File does not exist. Note: your current working directory is /project."],
    )
    .await;
}

#[tokio::test]
async fn directories_pipes_and_binaries_are_refused() {
    let host = TestHost::new();
    host.write("program", [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 60]].concat());
    let fifo = host.project().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    symlink(&fifo, host.project().join("link")).unwrap();
    for (path, needles) in [
        (".", ["is a directory", "Glob"]),
        ("fifo", ["a named pipe", "not read"]),
        ("link", ["a named pipe", "not read"]),
        ("/dev/zero", ["a device", "not read"]),
        ("/proc/self/environ", ["environment", "not read"]),
        ("program", ["binary file", "application/x-executable"]),
    ] {
        let outcome = host.call(&Read::default(), json!({"file_path": path})).await;
        assert!(outcome.is_failure(), "{path}");
        let text = text_of(&outcome);
        assert!(needles.iter().all(|needle| text.contains(needle)), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_long_file_gives_its_first_page_and_says_so() {
    let host = TestHost::new();
    let lines: Vec<String> = (1..=2_500).map(|n| format!("line {n}")).collect();
    host.write("long", lines.join("\n"));
    let outcome = host.call(&Read::default(), json!({"file_path": "long"})).await;
    let text = text_of(&outcome);
    assert!(
        text.contains("\n2000\tline 2000\n\n<system-reminder>PARTIAL view: lines 1 to 2000 of 2500"),
        "{text}"
    );
    assert!(text.contains("offset 2001"));
    assert_eq!(outcome.structured["file"]["numLines"], 2_000);
    let rest = text_of(&host.call(&Read::default(), json!({"file_path": "long", "offset": 2001})).await);
    assert!(rest.starts_with("2001\tline 2001\n") && rest.ends_with("2500\tline 2500"), "{rest}");
    let all = text_of(&host.call(&Read::default(), json!({"file_path": "long", "limit": 2500})).await);
    assert!(all.ends_with("2500\tline 2500"), "an explicit limit may be larger than the default page");
}

#[tokio::test]
async fn tokens_are_limited() {
    let mut host = TestHost::new();
    host.env_mut().vars = loci_stdx::Vars::default().with(TOKENS_VARIABLE, "100");
    let line = "x".repeat(97);
    host.write("wide", format!("{line}\n{line}\n{line}\n{line}\n{line}\n{line}"));
    let first = text_of(&host.call(&Read::default(), json!({"file_path": "wide"})).await);
    assert!(first.contains("PARTIAL view: lines 1 to 4 of 6"), "{first}");
    check(
        &host,
        json!({"file_path": "wide", "offset": 2, "limit": 5}),
        expect![
            "Lines 2 to 6 of `/project/wide` are more than the 100 tokens one Read may return. Use a `limit` of 4 or less here, or find the lines you need with Grep."
        ],
    )
    .await;
    let fits = host.call(&Read::default(), json!({"file_path": "wide", "offset": 2, "limit": 4})).await;
    assert!(!fits.is_failure());
    let all = json!({"file_path": "wide", "offset": 2, "limit": u64::MAX});
    assert!(text_of(&host.call(&Read::default(), all).await).contains("Lines 2 to 6 of"));
}

#[tokio::test]
async fn the_default_is_twenty_five_thousand_tokens() {
    let host = TestHost::new();
    host.write("wide", format!("{}\n", "x".repeat(1_000)).repeat(200));
    let text = text_of(&host.call(&Read::default(), json!({"file_path": "wide"})).await);
    assert!(text.contains("PARTIAL view: lines 1 to 99 of 201"), "{}", &text[text.len() - 300..]);
}

#[tokio::test]
async fn long_text_is_shown_whole_where_that_is_asked_for() {
    let host = TestHost::new();
    host.write("wide", format!("{}\n", "x".repeat(100)).repeat(2_999));
    let read = async |input: Value| {
        let mut input = input;
        input["file_path"] = json!("wide");
        text_of(&host.call(&Read::default(), input).await)
    };
    assert!(read(json!({"allow_large": false})).await.contains("PARTIAL view"));
    assert!(read(json!({"limit": 3_000})).await.contains("more than the 25000 tokens"));
    let large = json!({"limit": 3_000, "allow_large": true});
    assert!(read(large).await.ends_with("\n3000\t"), "a range may be large as well");
    host.write("wide", format!("{}\n", "x".repeat(1_000)).repeat(1_000));
    let cut = read(json!({"allow_large": true})).await;
    assert!(
        cut.contains("PARTIAL view: lines 1 to 39") && cut.contains("at most about 100000 tokens"),
        "it has a bound"
    );
    host.write("wide", format!("{}\n", "x".repeat(100)).repeat(2_999));
    assert!(read(json!({"allow_large": "true"})).await.ends_with("\n3000\t"));
}

#[tokio::test]
async fn encodings_are_shown_as_text() {
    let host = TestHost::new();
    let utf16: Vec<u8> = "\u{feff}schön\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    host.write("utf16", utf16);
    host.write("bom", "\u{feff}schön\r\n");
    host.write("latin", encoding_rs::WINDOWS_1252.encode("schön für die Größe\r\n").0);
    for (name, text) in [("utf16", "schön"), ("bom", "schön"), ("latin", "schön für die Größe")] {
        let outcome = host.call(&Read::default(), json!({"file_path": name})).await;
        assert_eq!(text_of(&outcome), format!("1\t{text}\n2\t"), "{name}");
    }
}

#[tokio::test]
async fn reading_again_is_short_while_nothing_changes() {
    let host = TestHost::new();
    let path = host.write("a.txt", "one\ntwo\n");
    let whole = json!({"file_path": path});
    let part = json!({"file_path": path, "offset": 2, "limit": 1});
    let stub = json!({"type": "file_unchanged", "file": {"filePath": path}});
    let read = Read::default();
    assert_ne!(host.call(&read, whole.clone()).await.structured, stub);
    let again = host.call(&read, whole.clone()).await;
    assert_eq!(again.structured, stub);
    assert!(text_of(&again).contains("has not changed"));
    assert_ne!(host.call(&read, part.clone()).await.structured, stub, "another part");
    assert_eq!(host.call(&read, part.clone()).await.structured, stub, "the same part");
    std::fs::write(&path, "one\nTWO\n").unwrap();
    assert_ne!(host.call(&read, part.clone()).await.structured, stub, "changed");
    host.files().lock().unwrap().forget_shown();
    assert_ne!(host.call(&read, part).await.structured, stub, "no longer in the conversation");
}

#[tokio::test]
async fn a_change_within_the_same_instant_is_noticed() {
    let host = TestHost::new();
    let path = host.write("a.txt", "one");
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    host.call(&Read::default(), json!({"file_path": path})).await;
    std::fs::write(&path, "two").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(text_of(&host.call(&Read::default(), json!({"file_path": path})).await), "1\ttwo");
}

#[tokio::test]
async fn read_file_is_remembered_in_file_states() {
    let host = TestHost::new();
    let path = host.write("a.txt", "one\r\ntwo\r\n");
    for (input, content, range) in [
        (json!({"file_path": path, "offset": 2, "limit": 1}), "two", (Some(2), Some(1))),
        (json!({"file_path": path, "limit": 2}), "one\ntwo", (Some(1), Some(2))),
        (json!({"file_path": path, "offset": 3, "limit": 1}), "one\ntwo\n", (None, None)), // pages join
        (json!({"file_path": path}), "one\ntwo\n", (None, None)),
        (json!({"file_path": path, "limit": 50}), "one\ntwo\n", (None, None)), // covers it all
    ] {
        host.call(&Read::default(), input.clone()).await;
        let mut files = host.files().lock().unwrap();
        let state = files.get(&path).unwrap();
        assert_eq!((state.content.as_str(), (state.offset, state.limit)), (content, range), "{input}");
        assert_eq!(state.modified, std::fs::metadata(&path).unwrap().modified().unwrap());
    }
}

#[tokio::test]
async fn an_interrupt_ends_a_read() {
    let host = TestHost::new();
    host.write("a.txt", "one");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = host.call_with(&Read::default(), json!({"file_path": "a.txt"}), cancel).await;
    assert!(outcome.is_failure() && text_of(&outcome).contains("interrupted"));
}

#[tokio::test]
async fn pictures_are_shown_whatever_their_name() {
    let host = TestHost::new();
    let red = ::image::RgbImage::from_pixel(4, 3, ::image::Rgb([255, 0, 0]));
    let bytes = image::tests::encoded(&::image::DynamicImage::ImageRgb8(red), ::image::ImageFormat::Png);
    let path = host.write("picture.txt", &bytes);
    let outcome = host.call(&Read::default(), json!({"file_path": path})).await;
    let ToolContent::Blocks(blocks) = &outcome.content else { panic!("no picture") };
    let source = &blocks[0].to_value()["source"];
    assert_eq!((blocks.len(), &source["media_type"]), (1, &json!("image/png")));
    let dimensions = json!({"originalWidth": 4, "originalHeight": 3, "displayWidth": 4, "displayHeight": 3});
    let file = json!({"base64": source["data"], "type": "image/png", "originalSize": bytes.len(),
        "dimensions": dimensions});
    assert_eq!(outcome.structured, json!({"type": "image", "file": file}));
    assert!(host.files().lock().unwrap().is_empty(), "nothing an edit could rest on");
    host.write("broken.png", &bytes[..40]);
    let outcome = host.call(&Read::default(), json!({"file_path": "broken.png"})).await;
    assert!(outcome.is_failure() && text_of(&outcome).contains("cannot be decoded"), "{}", text_of(&outcome));
}

#[tokio::test]
async fn notebooks_are_shown_as_cells() {
    let host = TestHost::new();
    let source = json!({"cells": [{"cell_type": "code", "id": "a", "source": ["x = 1\n", "x"]}]}).to_string();
    let path = host.write("n.ipynb", &source);
    let outcome = host.call(&Read::default(), json!({"file_path": path})).await;
    let ToolContent::Blocks(blocks) = &outcome.content else { panic!("no cells") };
    let text = blocks[0].text().unwrap();
    assert_eq!(text, "<cell id=\"a\" kind=\"python\">\nx = 1\nx\n</cell>");
    let cell = json!({"cellType": "code", "source": "x = 1\nx", "cell_id": "a", "language": "python"});
    assert_eq!(outcome.structured, json!({"type": "notebook", "file": {"filePath": path, "cells": [cell]}}));
    let again = host.call(&Read::default(), json!({"file_path": path})).await;
    assert_eq!(again.structured["type"], "notebook");
    assert!(host.files().lock().unwrap().get(&path).unwrap().is_whole());
    let lines = host.call(&Read::default(), json!({"file_path": path, "limit": 1})).await;
    assert_eq!(text_of(&lines), format!("1\t{source}"), "its JSON");
}

#[tokio::test]
async fn odd_notebooks_are_still_shown() {
    let mut host = TestHost::new();
    host.write("broken.ipynb", "{\"cells\": ");
    host.write("bare.ipynb", "{\"cells\": []}");
    for (name, text) in [
        ("broken.ipynb", "1\t{\"cells\": "),
        ("bare.ipynb", "<system-reminder>The notebook has no cells.</system-reminder>"),
    ] {
        assert_eq!(text_of(&host.call(&Read::default(), json!({"file_path": name})).await), text);
    }
    host.env_mut().vars = loci_stdx::Vars::default().with(TOKENS_VARIABLE, "10");
    let cell = json!({"cell_type": "code", "source": "x".repeat(100)});
    host.write("long.ipynb", json!({"cells": [cell]}).to_string());
    let outcome = host.call(&Read::default(), json!({"file_path": "long.ipynb"})).await;
    assert!(text_of(&outcome).contains("tokens, more than the 10"), "{}", text_of(&outcome));
}

#[test]
fn file_read_into_memory_is_bounded() {
    let host = TestHost::new();
    let path = host.write("file", "12345");
    for (max_bytes, fits) in [(5, true), (4, false)] {
        let mut file = File::open(&path).unwrap();
        let mut head = vec![0; 2];
        file.read_exact(&mut head).unwrap();
        let opened = Opened { head, file, size: 5, modified: SystemTime::UNIX_EPOCH };
        match opened.into_bytes("/file", max_bytes) {
            Ok(bytes) => assert!(fits && bytes == b"12345"),
            Err(Failure::Said(text)) => assert!(!fits && text.contains("`/file` has 5 bytes"), "{text}"),
            Err(Failure::Missing) => panic!("missing"),
        }
    }
}

#[cfg(feature = "pdf")]
#[tokio::test]
async fn pdf_files_come_whole_or_by_the_page() {
    let host = TestHost::new();
    host.write("short.pdf", pdf::tests::pdf_of(2));
    host.write("long.pdf", pdf::tests::pdf_of(12));
    let kinds = async |input: Value| {
        let outcome = host.call(&Read::default(), input).await;
        match &outcome.content {
            ToolContent::Text(text) => text.clone(),
            ToolContent::Blocks(blocks) => {
                let kinds: Vec<String> = blocks.iter().map(|block| format!("{:?}", block.kind())).collect();
                format!("{} {}", outcome.structured["type"], kinds.join(" "))
            }
        }
    };
    assert_eq!(kinds(json!({"file_path": "short.pdf"})).await, "\"pdf\" Document");
    assert_eq!(kinds(json!({"file_path": "short.pdf", "pages": " "})).await, "\"pdf\" Document");
    assert_eq!(kinds(json!({"file_path": "long.pdf", "pages": "12"})).await, "\"parts\" Text Document");
    assert!(kinds(json!({"file_path": "long.pdf"})).await.contains("has 12 pages"));
    assert!(kinds(json!({"file_path": "long.pdf", "pages": "13"})).await.contains("There is no page 13"));
}

#[test]
fn a_read_is_judged_by_where_it_leads() {
    let host = TestHost::new();
    let target = host.write("target", "");
    symlink(&target, host.project().join("link")).unwrap();
    let read = Read::default();
    let effects = read.effects(&json!({"file_path": "link"}), &host.workspace());
    assert_eq!(
        effects,
        CallEffects::read(PathEffect { requested: host.project().join("link"), real: target })
    );
    assert!(effects.is_read_only() && read.is_concurrency_safe(&json!({})));
    assert!(!read.effects(&json!({}), &host.workspace()).unknown.is_empty());
}
