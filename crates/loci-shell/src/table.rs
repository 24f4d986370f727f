//! The commands that only read, with every flag that keeps them so.
//!
//! A letter or name alone takes nothing; `:` marks a value, `@` a value that names a file to read, `*` one that names files
//! to look into at any depth, `?` a value that is attached or absent. Left out on purpose: flags that write (`sort -o`), run programs
//! (`sort --compress-program`), take file lists from a file (`--files0-from`, `md5sum -c`), or follow symlinks
//! met on the way (`grep -R`, `du -L`, `diff -r`).

/// What a command's operands are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    /// There are none.
    None,
    /// Text that names no file.
    Text,
    /// At most one, starting with `+`.
    Format,
    /// Files to read; standard input when there are none.
    Paths,
    /// Files to read; the current directory when there are none.
    PathsOrHere,
    /// At most one file to read.
    OnePath,
    /// A pattern, unless a flag gave it, then files to read.
    PatternThenPaths,
    /// The same, with the current directory when there are no files.
    PatternThenPathsOrHere,
}

/// One command of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) short: &'static str,
    pub(crate) long: &'static [&'static str],
    pub(crate) operands: Operands,
    /// Whether `-5` is a flag.
    pub(crate) takes_number: bool,
}

const fn spec(
    name: &'static str,
    operands: Operands,
    short: &'static str,
    long: &'static [&'static str],
) -> Spec {
    Spec { name, short, long, operands, takes_number: false }
}

const fn with_number(spec: Spec) -> Spec {
    Spec { takes_number: true, ..spec }
}

use Operands::{Format, None, OnePath, Paths, PathsOrHere, PatternThenPaths, PatternThenPathsOrHere, Text};

const GREP_SHORT: &str = "EFGPivwxclLoqshHnraIbTZzUye:f@m:A:B:C:";
const GREP_LONG: &[&str] = &[
    "extended-regexp",
    "fixed-strings",
    "basic-regexp",
    "perl-regexp",
    "ignore-case",
    "no-ignore-case",
    "invert-match",
    "word-regexp",
    "line-regexp",
    "count",
    "files-with-matches",
    "files-without-match",
    "only-matching",
    "quiet",
    "silent",
    "no-messages",
    "no-filename",
    "with-filename",
    "line-number",
    "recursive",
    "text",
    "byte-offset",
    "initial-tab",
    "null",
    "null-data",
    "binary",
    "line-buffered",
    "regexp:",
    "file@",
    "max-count:",
    "after-context:",
    "before-context:",
    "context:",
    "include*",
    "exclude:",
    "exclude-dir:",
    "color?",
    "colour?",
    "label:",
];
const SUM_LONG: &[&str] = &["binary", "text", "zero", "tag"];

/// All of them, by name.
#[rustfmt::skip]
pub(crate) const TABLE: &[Spec] = &[
    spec("basename", Text, "as:z", &["multiple", "suffix:", "zero"]),
    spec("cat", Paths, "AbeEnstTuv", &["show-all", "number-nonblank", "show-ends", "number", "squeeze-blank",
        "show-tabs", "show-nonprinting"]),
    spec("cmp", Paths, "bi:ln:s", &["print-bytes", "ignore-initial:", "verbose", "bytes:", "quiet", "silent"]),
    spec("cut", Paths, "b:c:d:f:nsz", &["bytes:", "characters:", "delimiter:", "fields:", "complement",
        "only-delimited", "output-delimiter:", "zero-terminated"]),
    spec("date", Format, "d:I?r@Ru", &["date:", "iso-8601?", "reference@", "rfc-email", "rfc-3339:", "utc",
        "universal"]),
    spec("df", Paths, "ahHiklPTt:x:", &["all", "human-readable", "si", "inodes", "local", "portability", "print-type",
        "total", "type:", "exclude-type:", "output?", "block-size:"]),
    with_number(spec("diff", Paths, "abBcC:eiNpqstTuU:wyZ", &["text", "ignore-space-change", "ignore-blank-lines",
        "context?", "ed", "ignore-case", "new-file", "show-c-function", "brief", "report-identical-files",
        "expand-tabs", "initial-tab", "unified?", "ignore-all-space", "side-by-side", "ignore-trailing-space",
        "no-dereference", "strip-trailing-cr", "suppress-common-lines", "minimal", "color?", "width:", "label:"])),
    spec("dirname", Text, "z", &["zero"]),
    spec("du", PathsOrHere, "abcd:hkmsSxt:0B:", &["all", "apparent-size", "bytes", "total", "max-depth:",
        "human-readable", "si", "summarize", "separate-dirs", "one-file-system", "threshold:", "exclude:", "time?",
        "null", "block-size:", "inodes"]),
    with_number(spec("egrep", PatternThenPaths, GREP_SHORT, GREP_LONG)),
    with_number(spec("fgrep", PatternThenPaths, GREP_SHORT, GREP_LONG)),
    spec("file", Paths, "0bhikLN", &["brief", "no-dereference", "dereference", "mime", "mime-type", "mime-encoding",
        "keep-going", "no-pad", "print0", "extension"]),
    with_number(spec("grep", PatternThenPaths, GREP_SHORT, GREP_LONG)),
    with_number(spec("head", Paths, "c:n:qvz", &["bytes:", "lines:", "quiet", "silent", "verbose",
        "zero-terminated"])),
    spec("id", Text, "agGnruzZ", &["group", "groups", "name", "real", "user", "zero", "context"]),
    spec("ls", PathsOrHere, "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1", &["all", "almost-all", "author", "escape",
        "ignore-backups", "color?", "directory", "classify?", "file-type", "full-time", "group-directories-first",
        "no-group", "human-readable", "si", "dereference", "dereference-command-line", "hide:", "indicator-style:",
        "inode", "ignore:", "kibibytes", "numeric-uid-gid", "literal", "hide-control-chars", "show-control-chars",
        "quote-name", "quoting-style:", "reverse", "recursive", "size", "sort:", "time:", "time-style:", "tabsize:",
        "width:", "context", "format:", "block-size:", "zero"]),
    spec("md5sum", Paths, "btz", SUM_LONG),
    spec("nproc", None, "", &["all", "ignore:"]),
    spec("pwd", None, "LP", &["logical", "physical"]),
    spec("readlink", Paths, "femnqsvz", &["canonicalize", "canonicalize-existing", "canonicalize-missing",
        "no-newline", "quiet", "silent", "verbose", "zero"]),
    spec("realpath", Paths, "emLPqsz", &["canonicalize-existing", "canonicalize-missing", "logical", "physical",
        "quiet", "relative-to@", "relative-base@", "strip", "no-symlinks", "zero"]),
    spec("sha1sum", Paths, "btz", SUM_LONG),
    spec("sha256sum", Paths, "btz", SUM_LONG),
    spec("sort", Paths, "bcCdfghik:mMnrRst:uVz", &["ignore-leading-blanks", "check?", "dictionary-order",
        "ignore-case", "general-numeric-sort", "human-numeric-sort", "ignore-nonprinting", "key:", "merge",
        "month-sort", "numeric-sort", "reverse", "random-sort", "sort:", "stable", "field-separator:", "unique",
        "version-sort", "zero-terminated"]),
    spec("stat", Paths, "c:fLt", &["format:", "printf:", "file-system", "dereference", "terse"]),
    with_number(spec("tail", Paths, "c:n:qvz", &["bytes:", "lines:", "quiet", "silent", "verbose",
        "zero-terminated"])),
    spec("tr", Text, "cCdst", &["complement", "delete", "squeeze-repeats", "truncate-set1"]),
    spec("uname", None, "amnoprsvi", &["all", "kernel-name", "nodename", "kernel-release", "kernel-version",
        "machine", "processor", "hardware-platform", "operating-system"]),
    spec("wc", Paths, "clLmw", &["bytes", "chars", "lines", "max-line-length", "words", "total:"]),
    spec("which", Text, "as", &["all"]),
    spec("whoami", None, "", &[]),
    spec("base64", OnePath, "diw:", &["decode", "ignore-garbage", "wrap:"]),
    spec("cal", Text, "13jmyA:B:", &[]),
    spec("column", Paths, "ts:o:nxc:eJN:", &["table", "separator:", "output-separator:", "fillrows", "columns:",
        "table-columns:", "json"]),
    spec("comm", Paths, "123iz", &["check-order", "nocheck-order", "output-delimiter:", "total", "zero-terminated"]),
    spec("expr", Text, "", &[]),
    spec("fold", Paths, "bsw:", &["bytes", "spaces", "width:"]),
    spec("free", None, "bkmghtlw", &["human", "bytes", "kibi", "mebi", "gibi", "total", "wide", "si"]),
    spec("groups", Text, "", &[]),
    spec("hexdump", Paths, "bcCdoxvn:s:e:", &["canonical", "length:", "skip:", "no-squeezing"]),
    spec("hostname", None, "fiIsdA", &["fqdn", "short", "ip-address", "all-ip-addresses", "domain", "long"]),
    spec("locale", Text, "akcm", &["all-locales"]),
    spec("lsof", Paths, "niPp:tu:c:aUl", &[]),
    spec("nl", Paths, "b:d:f:h:i:l:n:ps:v:w:", &["body-numbering:", "number-format:", "number-width:",
        "number-separator:", "starting-line-number:", "line-increment:"]),
    spec("od", Paths, "A:j:N:t:vw?abcdfilosxDFHILOX", &["address-radix:", "skip-bytes:", "read-bytes:", "format:",
        "output-duplicates", "width?"]),
    spec("paste", Paths, "d:sz", &["delimiters:", "serial", "zero-terminated"]),
    spec("pgrep", Text, "flaxu:noci:P:U:", &["full", "list-name", "list-full", "exact", "newest", "oldest", "count",
        "parent:", "uid:", "euid:"]),
    spec("rev", Paths, "", &[]),
    spec("seq", Text, "f:s:w", &["format:", "separator:", "equal-width"]),
    spec("sleep", Text, "", &[]),
    with_number(spec("strings", Paths, "an:t:e:fw", &["all", "bytes:", "radix:", "encoding:", "print-file-name"])),
    spec("tac", Paths, "brs:", &["before", "regex", "separator:"]),
    spec("tree", PathsOrHere, "adfixspughDFCnJXI:P:L:", &["noreport", "dirsfirst", "prune", "gitignore", "charset:",
        "filelimit:", "sort:", "du", "si", "inodes", "device", "timefmt:", "matchdirs", "ignore-case"]),
    spec("type", Text, "afptP", &[]),
    spec("uptime", None, "ps", &["pretty", "since"]),
    with_number(spec("rg", PatternThenPathsOrHere, "nNilcwvxFSse:f@g*t:T:A:B:C:m:oUHIpj:quPabM:d:", &["line-number",
        "no-line-number", "ignore-case", "files-with-matches", "files-without-match", "count", "count-matches",
        "word-regexp", "line-regexp", "invert-match", "fixed-strings", "smart-case", "case-sensitive", "regexp:", "glob*",
        "iglob*", "type:", "type-not:", "after-context:", "before-context:", "context:", "max-count:", "only-matching",
        "multiline", "multiline-dotall", "with-filename", "no-filename", "heading", "no-heading", "hidden", "no-ignore",
        "no-ignore-vcs", "files", "json", "stats", "max-depth:", "sort:", "sortr:", "color:", "column", "pretty", "quiet",
        "text", "trim", "vimgrep", "pcre2", "replace:", "max-columns:", "max-filesize:", "type-list", "debug", "null",
        "no-messages", "passthru", "byte-offset", "threads:"])),
    spec("fd", PatternThenPathsOrHere, "HIuasigFt:e:d:E:0pl", &["hidden", "no-ignore", "absolute-path", "case-sensitive",
        "ignore-case", "glob", "fixed-strings", "type:", "extension:", "max-depth:", "min-depth:", "exact-depth:",
        "exclude:", "print0", "full-path", "size:", "changed-within:", "changed-before:", "color:", "list-details",
        "max-results:", "no-ignore-vcs", "strip-cwd-prefix", "threads:"]),
];
