//! Perl, Ruby and JavaScript on the command line, known by their words to run no command and to write no file.
//!
//! These languages are not taken apart: a word of the lists is refused wherever it stands, in a text too, rather than
//! asking once too seldom.

/// Words of Perl that lead to commands, to files, or to code that is made when it runs.
#[rustfmt::skip]
const PERL: &[&str] = &[
    "system", "exec", "qx", "readpipe", "open", "sysopen", "fork", "eval", "evalbytes", "require", "unlink", "rename", "rmdir",
    "mkdir", "link", "symlink", "chmod", "chown", "utime", "truncate", "socket", "connect", "bind", "kill", "syscall",
    "dbmopen", "dump", "chroot", "ioctl", "fcntl", "pipe", "tie", "IO", "File", "CORE", "DynaLoader", "XSLoader", "INC",
    "AUTOLOAD", "can", "CODE", "SIG", "UNIVERSAL", "new", "goto", "creat", "mkfifo", "execl", "execv", "execle", "execve", "execlp", "execvp", "glob",
];

/// Modules of Perl that bring none of them.
const PERL_MODULES: &[&str] =
    &["strict", "warnings", "utf8", "feature", "integer", "bigint", "List::Util", "Data::Dumper", "JSON::PP"];

/// Words of Ruby.
#[rustfmt::skip]
const RUBY: &[&str] = &[
    "system", "exec", "spawn", "fork", "eval", "instance_eval", "class_eval", "module_eval", "instance_exec", "binding", "send",
    "__send__", "public_send", "method", "load", "require_relative", "autoload", "open", "popen", "IO", "File", "Dir", "FileUtils",
    "Tempfile", "Pathname", "Process", "Kernel", "syscall", "trap", "ObjectSpace", "const_get", "define_method", "Open3", "PTY",
    "Socket", "TCPSocket", "Net", "URI", "x", "RubyVM", "Fiddle", "Marshal", "ARGF",
];

/// Libraries of Ruby that bring none of them.
const RUBY_LIBRARIES: &[&str] = &["json", "date", "time", "set", "digest", "csv", "pp", "bigdecimal"];

/// Words of JavaScript.
#[rustfmt::skip]
const JAVASCRIPT: &[&str] = &[
    "import", "eval", "Function", "constructor", "globalThis", "global", "module", "fs", "child_process", "Reflect", "Proxy",
    "WebAssembly", "Deno", "Bun", "fetch", "__proto__", "prototype", "mainModule", "binding", "dlopen", "Worker", "getBuiltinModule",
    "getOwnPropertyDescriptor", "getOwnPropertyDescriptors", "getOwnPropertyNames", "getOwnPropertySymbols", "getPrototypeOf",
    "setPrototypeOf", "defineProperty", "defineProperties", "prepareStackTrace", "__lookupGetter__", "__lookupSetter__", "entries",
    "with", "arguments", "callee", "execPath", "chdir", "kill", "setuid", "AsyncFunction", "setTimeout", "setInterval",
];

/// What of `process` may be used.
#[rustfmt::skip]
const OF_PROCESS: &[&str] =
    &["argv", "env", "version", "versions", "platform", "arch", "stdout", "stderr", "stdin", "exit", "cwd", "pid", "uptime"];

/// Modules of JavaScript that may be required.
const REQUIRED: &[&str] = &["path", "url", "util", "os", "assert", "querystring"];

/// Returns true when Perl is known to run nothing.
pub(crate) fn is_tame_perl(code: &str, reads_arguments: bool) -> bool {
    let found = words(code);
    let is_refused = |(at, word): &(usize, &str)| {
        let behind = code[at + word.len()..].trim_start();
        match *word {
            "use" | "no" => !PERL_MODULES.iter().any(|module| behind.starts_with(module)),
            "do" => !behind.starts_with('{'),
            // `while (<>)` runs an argument that ends in a pipe.
            "ARGV" => reads_arguments || code.contains("<>") || code.contains("<ARGV>"),
            word => PERL.contains(&word) || evaluates_twice(word),
        }
    };
    !code.contains('`') && !code.contains("$^I") && !calls_by_name(code) && !found.iter().any(is_refused)
}

/// Tells whether Perl could call what a text names: `&$x`, `$x->(..)`, `"CORE"->name`, `*x = ..`, `sort $x ..`.
fn calls_by_name(code: &str) -> bool {
    let code = &code.replace("&&", "  ");
    let behind = |sign: &str| -> Vec<&str> {
        code.match_indices(sign).map(|(at, _)| code[at + sign.len()..].trim_start()).collect()
    };
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let is_element = |rest: &&str| rest.starts_with(['[', '{', '@', '%']);
    let is_assigned_glob = |rest: &&str| {
        let behind_name = rest.trim_start_matches(is_name).trim_start();
        rest.starts_with(is_name)
            && behind_name.starts_with('=')
            && !["==", "=~"].iter().any(|sign| behind_name.starts_with(sign))
    };
    behind("&").iter().any(|rest| rest.starts_with(['$', '{', '"', '\'']))
        || behind("->").iter().any(|rest| !is_element(rest))
        || code.contains("*{")
        || behind("*").iter().any(is_assigned_glob)
        || behind("sort").iter().any(|rest| rest.starts_with('$'))
}

/// Flags of a substitution that evaluate what they evaluated.
fn evaluates_twice(word: &str) -> bool {
    word.matches('e').count() > 1 && word.chars().all(|c| "msixpodualngcer".contains(c))
}

/// Returns true when a module of Perl named by a flag is known to bring nothing that runs.
pub(crate) fn is_tame_perl_module(name: &str) -> bool {
    PERL_MODULES.iter().any(|module| name == *module || name.starts_with(&format!("{module}=")))
}

/// Returns true when Ruby is known to run nothing.
pub(crate) fn is_tame_ruby(code: &str) -> bool {
    let is_refused = |(at, word): &(usize, &str)| {
        let behind = code[at + word.len()..].trim_start().trim_start_matches(['(', '"', '\'']);
        match *word {
            "require" => !RUBY_LIBRARIES.iter().any(|library| is_whole(behind, library)),
            word => RUBY.contains(&word),
        }
    };
    !code.contains('`') && !code.contains('%') && !words(code).iter().any(is_refused)
}

/// Returns true when a library of Ruby named by a flag is known to bring nothing that runs.
pub(crate) fn is_tame_ruby_library(name: &str) -> bool {
    RUBY_LIBRARIES.contains(&name)
}

/// Returns true when JavaScript is known to run nothing: members by a name that is made when it runs are not known.
pub(crate) fn is_tame_javascript(code: &str) -> bool {
    let is_refused = |(at, word): &(usize, &str)| {
        let behind = code[at + word.len()..].trim_start();
        match *word {
            "require" => !requires_known(behind),
            "process" => {
                let member = behind.strip_prefix('.').unwrap_or_default();
                !OF_PROCESS.iter().any(|name| is_whole(member, name))
            }
            word => JAVASCRIPT.contains(&word),
        }
    };
    let computes = code.match_indices('[').any(|(at, _)| {
        let inside = code[at + 1..].split(']').next().unwrap_or_default();
        let is_text =
            inside.len() > 1 && inside.starts_with(['"', '\'']) && !inside.contains(['+', '\\', '$']);
        !is_text && !inside.is_empty() && !inside.chars().all(|c| c.is_ascii_digit())
    });
    !computes && !code.contains(['`', '\\']) && !words(code).iter().any(is_refused)
}

/// `("x.json")`, or a module of the list.
fn requires_known(behind: &str) -> bool {
    let argument = behind.strip_prefix('(').map(str::trim_start).unwrap_or_default();
    let quote = argument.chars().next().filter(|c| matches!(c, '"' | '\''));
    let name = quote.and_then(|quote| argument[1..].split_once(quote));
    name.is_some_and(|(name, rest)| {
        let name_is_known = name.ends_with(".json") || REQUIRED.contains(&name.trim_start_matches("node:"));
        name_is_known && rest.trim_start().starts_with(')')
    })
}

/// Returns true when a text begins with a word and not with a longer one.
fn is_whole(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Returns every word and where it begins.
fn words(code: &str) -> Vec<(usize, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(is_part) {
        let word = &rest[start..];
        let word = &word[..word.find(|c| !is_part(c)).unwrap_or(word.len())];
        found.push((code.len() - rest.len() + start, word));
        rest = &rest[start + word.len()..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_lead_to_commands_are_refused() {
        for (code, expected) in [
            ("s/a/b/g", true),
            ("print if /foo/", true),
            ("$n++; END { print $n }", true),
            ("use strict; print 1", true),
            ("print uc($1) while /(x)/g", true),
            ("do { print 1 } while 0", true),
            ("system 'touch z'", false),
            ("`touch z`", false),
            ("s/a/system(1)/e", false),
            ("s/a/$x/ee", false),
            ("open F, '>z'", false),
            ("do 'file.pl'", false),
            ("use POSIX; 1", false),
            ("@ARGV = ('touch z|'); while (<>) {}", false),
            ("print $ARGV[0]", true),
            ("&{'x'}()", false),
            // Names that are put together when it runs (L1 of the hostile trial).
            ("$x = 'CO'.'RE::readp'.'ipe'; &$x('touch z')", false),
            ("$x = 'CO'.'RE::readp'.'ipe'; $x->('touch z')", false),
            ("'CO'->can('x')", false),
            ("$c = 'I'.'O::File'; $c->new('touch z|')", false),
            ("$c = 'I'.'O::File'; new $c('touch z|')", false),
            ("*{'CO'.'RE::x'}{CODE}", false),
            ("*x = $y; x('touch z')", false),
            ("$s = 'CO'.'RE::x'; sort $s 1, 2", false),
            ("$SIG{__WARN__} = 'CO'.'RE::x'; warn 'touch z'", false),
            ("print $x->{a}[0], $y->[1], $a * $b, $a && $b", true),
            ("print sort { $a <=> $b } @x", true),
        ] {
            assert_eq!(is_tame_perl(code, false), expected, "perl {code}");
        }
        for (code, expected) in [
            ("puts 1", true),
            ("require 'json'; puts JSON.parse(STDIN.read)['a']", true),
            ("require 'open3'", false),
            ("system('x')", false),
            ("%x(touch z)", false),
            ("File.write('z', 1)", false),
            ("1.send(:system)", false),
        ] {
            assert_eq!(is_tame_ruby(code), expected, "ruby {code}");
        }
        for (code, expected) in [
            ("console.log(1 + 1)", true),
            ("console.log(require('./package.json').version)", true),
            ("console.log(process.argv[2], process.version)", true),
            ("console.log(require(\"path\").join('a', 'b'))", true),
            ("require('child_process').execSync('x')", false),
            ("require('child_' + 'process')", false),
            ("process.binding('fs')", false),
            ("[].filter['constr' + 'uctor']('x')()", false),
            ("const k = 'x'; [].filter[k]", false),
            ("import('fs')", false),
            ("eval('x')", false),
            // L1 of the hostile trial.
            (
                "Object.getOwnPropertyDescriptor(Object.getPrototypeOf(()=>0),'constr'+'uctor').value('x')()",
                false,
            ),
            ("Object.entries(console).map(it => it)", false),
            ("console.log(Object.keys({a: 1}), Object.values({a: 1}))", true),
        ] {
            assert_eq!(is_tame_javascript(code), expected, "node {code}");
        }
    }
}
