//! The shape of the house: how many fields and methods one type has, how long a function is, how many results have a
//! string as their error.
//!
//! A type that has everything in it is not divided by cutting its `impl` into files, so fields and methods are counted by
//! type. What is over a limit today stands in `ceilings.txt` with its number, which may only fall: more is a problem, less
//! is a reason to lower the line there.

use std::collections::BTreeMap;
use std::ops::Range;

use super::rust_source::{closing, line_at, words};
use super::tree::Tree;

/// Fields of a struct that has methods of its own.
const MOST_FIELDS: usize = 24;
/// Methods of a type.
const MOST_METHODS: usize = 80;
/// Lines of a function.
const MOST_LINES: usize = 120;
/// What is over a limit, a line each: kind, name, number; or `exempt`, the kind, the name, and why.
const CEILINGS: &str = include_str!("ceilings.txt");

/// Finds what is larger than it may be.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let ceilings = Ceilings::parse(CEILINGS);
    measures(tree).iter().filter_map(|measure| ceilings.problem(measure)).collect()
}

/// Finds lines of the list that say more than there is.
pub(crate) fn warnings(tree: &Tree) -> Vec<String> {
    let measures = measures(tree);
    Ceilings::parse(CEILINGS).outgrown(&measures)
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Fields,
    Methods,
    Lines,
    StringErrors,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Fields, Self::Methods, Self::Lines, Self::StringErrors];

    fn word(self) -> &'static str {
        match self {
            Self::Fields => "fields",
            Self::Methods => "methods",
            Self::Lines => "lines",
            Self::StringErrors => "string-errors",
        }
    }

    /// Returns what is fine wherever the list says nothing.
    fn limit(self) -> usize {
        match self {
            Self::Fields => MOST_FIELDS,
            Self::Methods => MOST_METHODS,
            Self::Lines => MOST_LINES,
            Self::StringErrors => 0,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Fields => "divide it by what lives together",
            Self::Methods => "divide the type; more files with `impl` divide nothing",
            Self::Lines => "give its parts names",
            Self::StringErrors => "give the errors kinds (an enum with thiserror)",
        }
    }
}

/// Something that was counted.
#[derive(Debug, PartialEq, Eq)]
struct Measure {
    kind: Kind,
    /// `crate::Type`, `crate::file::function`, or the crate.
    name: String,
    number: usize,
    /// Where it is.
    place: String,
}

/// What the list allows.
struct Ceilings<'a> {
    numbers: BTreeMap<(Kind, &'a str), usize>,
    exempt: Vec<(Kind, &'a str)>,
}

impl<'a> Ceilings<'a> {
    fn parse(text: &'a str) -> Self {
        let mut ceilings = Self { numbers: BTreeMap::new(), exempt: Vec::new() };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let kind = |word: &str| Kind::ALL.into_iter().find(|kind| kind.word() == word);
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["exempt", word, name, ..] => ceilings.exempt.extend(kind(word).map(|kind| (kind, *name))),
                [word, name, number] => {
                    let row = kind(word).zip(number.parse().ok());
                    ceilings.numbers.extend(row.map(|(kind, number)| ((kind, *name), number)));
                }
                _ => {}
            }
        }
        ceilings
    }

    fn problem(&self, measure: &Measure) -> Option<String> {
        let Measure { kind, name, number, place } = measure;
        if self.exempt.contains(&(*kind, name)) {
            return None;
        }
        let listed = self.numbers.get(&(*kind, name.as_str())).copied();
        let most = listed.unwrap_or(0).max(kind.limit());
        (*number > most).then(|| {
            let word = kind.word();
            format!("{place}: `{name}` has {number} {word}, and {most} is the most; {}", kind.advice())
        })
    }

    /// Says which lines could be lower, or go.
    fn outgrown(&self, measures: &[Measure]) -> Vec<String> {
        let now = |kind: Kind, name: &str| {
            let mut same = measures.iter().filter(|it| it.kind == kind && it.name == name);
            same.next().map_or(0, |it| it.number)
        };
        let rows =
            self.numbers.iter().map(|((kind, name), listed)| (*kind, *name, *listed, now(*kind, name)));
        let lower = rows.filter(|(_, _, listed, now)| now < listed).map(|(kind, name, listed, now)| {
            let word = kind.word();
            let advice = if now > kind.limit() { "lower its line" } else { "take its line out" };
            format!(
                "xtask/src/tidy/ceilings.txt: `{name}` has {now} {word} and not {listed} any more; {advice}"
            )
        });
        lower.collect()
    }
}

fn measures(tree: &Tree) -> Vec<Measure> {
    let mut types: BTreeMap<String, TypeShape> = BTreeMap::new();
    let mut functions: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut errors: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (file, rust) in tree.rust().filter(|(_, rust)| !rust.is_all_test()) {
        let Some(library) = crate_of(&file.path) else { continue };
        let code = rust.product_code();
        let place = |at: usize| format!("{}:{}", file.path, line_at(&code, at));
        for (at, name, n_fields) in structs(&code) {
            let shape = types.entry(format!("{library}::{name}")).or_default();
            if n_fields > shape.n_fields {
                (shape.n_fields, shape.fields_at) = (n_fields, place(at));
            }
        }
        for (at, name, n_methods) in impls(&code) {
            let shape = types.entry(format!("{library}::{name}")).or_default();
            shape.n_methods += n_methods;
            if shape.methods_at.is_empty() {
                shape.methods_at = place(at);
            }
        }
        for (at, name, n_lines) in functions_of(&code).filter(|(_, _, n_lines)| *n_lines > MOST_LINES) {
            let longest = functions.entry(format!("{library}::{}::{name}", stem(&file.path))).or_default();
            if n_lines > longest.0 {
                *longest = (n_lines, place(at));
            }
        }
        for at in string_errors(&code) {
            let counted = errors.entry(library.to_owned()).or_default();
            *counted = (counted.0 + 1, place(at));
        }
    }
    let measure = |kind, name, number, place| Measure { kind, name, number, place };
    let mut all = Vec::new();
    for (name, shape) in types {
        if shape.n_methods > 0 {
            all.push(measure(Kind::Fields, name.clone(), shape.n_fields, shape.fields_at));
        }
        all.push(measure(Kind::Methods, name, shape.n_methods, shape.methods_at));
    }
    all.extend(functions.into_iter().map(|(name, (n, place))| measure(Kind::Lines, name, n, place)));
    all.extend(errors.into_iter().map(|(name, (n, place))| measure(Kind::StringErrors, name, n, place)));
    all
}

#[derive(Default)]
struct TypeShape {
    n_fields: usize,
    fields_at: String,
    n_methods: usize,
    methods_at: String,
}

/// Returns the crate of a file of the product.
fn crate_of(path: &str) -> Option<&str> {
    let (name, inside) = path.strip_prefix("crates/")?.split_once('/')?;
    (inside.starts_with("src/") && name != "loci-testkit").then_some(name)
}

/// Returns the name of a file without what stands before and behind it.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".rs").unwrap_or(name)
}

/// Returns structs with named fields: where, what they are called, and how many fields they have.
fn structs(code: &str) -> impl Iterator<Item = (usize, &str, usize)> {
    items(code, "struct").filter_map(|at| {
        let rest = &code[at..];
        let name = identifier(rest.strip_prefix("struct")?.trim_start())?;
        let open = rest.find(['{', ';', '('])?;
        let body = rest[open..].starts_with('{').then(|| at + open..closing(code, at + open))?;
        Some((at, name, top_level_lines(code, body).filter(|line| is_field(line)).count()))
    })
}

fn is_field(line: &str) -> bool {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')').map_or(rest, |(_, rest)| rest),
        Some(rest) if rest.starts_with(' ') => rest,
        _ => line,
    };
    let line = line.trim_start();
    identifier(line).is_some_and(|name| {
        let rest = &line[name.len()..];
        rest.starts_with(':') && !rest.starts_with("::")
    })
}

/// Returns `impl` blocks: where, the type that they are for, and how many functions they have.
fn impls(code: &str) -> impl Iterator<Item = (usize, &str, usize)> {
    items(code, "impl").filter_map(|at| {
        let open = at + code[at..].find('{')?;
        let header = code[at..open].strip_prefix("impl")?;
        let header = header.split(" where").next().unwrap_or(header);
        let of = match header.rsplit_once(" for ") {
            Some((_, of)) => of,
            None => without_generics(header),
        };
        let path = of.trim_start().trim_start_matches(['&', '*']);
        let path = path.split(['<', ' ', '\n']).next()?;
        let name = identifier(path.rsplit("::").next()?)?;
        let body = open..closing(code, open);
        let n_methods = top_level_lines(code, body).filter(|line| words(line, "fn").next().is_some()).count();
        Some((at, name, n_methods))
    })
}

/// Returns what follows the generics that a text begins with.
fn without_generics(text: &str) -> &str {
    let text = text.trim_start();
    if !text.starts_with('<') {
        return text;
    }
    angle_end(text).map_or(text, |end| &text[end..])
}

/// Returns the offset behind the `>` that closes the `<` a text begins with.
fn angle_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if !text[..at].ends_with(['-', '=']) => depth -= 1,
            ';' | '{' => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// Returns functions with bodies: where, what they are called, and how many lines they have.
fn functions_of(code: &str) -> impl Iterator<Item = (usize, &str, usize)> {
    words(code, "fn").filter_map(|at| {
        let rest = &code[at + "fn".len()..];
        let name = identifier(rest.trim_start()).filter(|_| rest.starts_with(' '))?;
        let params = at + code[at..].find('(')?;
        let after = closing(code, params);
        let open = after + code[after..].find(['{', ';'])?;
        if !code[open..].starts_with('{') {
            return None;
        }
        let end = closing(code, open);
        Some((at, name, code[at..end].matches('\n').count() + 1))
    })
}

/// Returns where results stand whose error is a string.
fn string_errors(code: &str) -> impl Iterator<Item = usize> + '_ {
    words(code, "Result").filter(|at| {
        let rest = &code[at + "Result".len()..];
        let Some(end) = rest.starts_with('<').then(|| angle_end(rest)).flatten() else { return false };
        let inside = rest[1..end - 1].trim_end().trim_end_matches(',').trim_end();
        inside.strip_suffix("String").is_some_and(|before| before.trim_end().ends_with(','))
    })
}

/// Returns where a word begins an item: nothing but visibility and the like stands before it in its line.
fn items<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    words(code, word).filter(|&at| {
        let before = &code[code[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
        let mut before = before.split_whitespace();
        before.all(|word| word == "unsafe" || word.starts_with("pub") || word.starts_with("#["))
    })
}

/// Returns the lines of a body that stand within its brackets and no others.
fn top_level_lines(code: &str, body: Range<usize>) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    code[body].lines().filter(move |line| {
        let is_top = depth == 1;
        for byte in line.bytes() {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        is_top
    })
}

fn identifier(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        "# a comment\nfields a::Big 26\nstring-errors a 1\nexempt lines a::lib::table rows of a table\n";

    fn problems(text: &str) -> Vec<String> {
        let tree = Tree::new([("crates/a/src/lib.rs", text)]);
        let ceilings = Ceilings::parse(LIST);
        measures(&tree).iter().filter_map(|it| ceilings.problem(it)).collect()
    }

    fn fields(n: usize) -> String {
        (0..n).map(|n| format!("    /// One: it is.\n    pub(crate) f{n}: Vec<(u8, String)>,\n")).collect()
    }

    fn methods(n: usize) -> String {
        (0..n)
            .map(|n| format!("    pub async fn m{n}(&self) {{\n        let f = |x: u8| x;\n    }}\n"))
            .collect()
    }

    #[test]
    fn structs_with_methods_have_few_fields() {
        let state = |name: &str, n| {
            format!(
                "pub struct {name}<'a, T> {{\n{}}}\nimpl<'a, T: Fn() -> u8> {name}<'a, T> {{\n{}}}\n",
                fields(n),
                methods(1)
            )
        };
        assert_eq!(problems(&state("State", 24)), [""; 0]);
        let problem = "crates/a/src/lib.rs:1: `a::State` has 25 fields, and 24 is the most; divide it by what lives together";
        assert_eq!(problems(&state("State", 25)), [problem]);
        assert_eq!(
            problems(&format!("pub struct Rows {{\n{}}}\n", fields(30))),
            [""; 0],
            "it has no methods"
        );
        assert_eq!(problems(&state("Big", 26)), [""; 0], "it is listed");
        assert_eq!(problems(&state("Big", 27)).len(), 1);
    }

    #[test]
    fn methods_of_all_impls_of_a_type_count() {
        let text = |n: usize| {
            let (own, other) = (methods(n - 1), methods(1));
            format!(
                "impl State {{\n{own}}}\n#[cfg(unix)]\nimpl<T> Show<T> for crate::b::State\nwhere\n    T: X,\n{{\n{other}}}\n"
            )
        };
        assert_eq!(problems(&text(80)), [""; 0]);
        assert!(problems(&text(81))[0].contains("`a::State` has 81 methods, and 80 is the most"));
        assert_eq!(problems(&format!("#[cfg(test)]\nmod tests {{\n{}}}\n", text(81))), [""; 0]);
    }

    #[test]
    fn functions_fit_on_two_screens() {
        let function = |name: &str, n: usize| {
            format!("fn {name}(a: [u8; 2]) -> X {{\n{}}}\n", "    x();\n".repeat(n - 2))
        };
        assert_eq!(problems(&function("f", 120)), [""; 0]);
        assert!(problems(&function("f", 121))[0].contains("`a::lib::f` has 121 lines, and 120 is the most"));
        assert_eq!(problems(&function("table", 200)), [""; 0], "it is exempt");
        assert_eq!(problems("trait T { fn f(&self); }\ntype F = fn(u8);\n"), [""; 0]);
    }

    #[test]
    fn errors_that_are_strings_grow_no_more() {
        let one = "fn f() -> Result<Vec<(u8, String)>, String> {}\n";
        assert_eq!(problems(one), [""; 0]);
        let two = format!("{one}type B = Box<dyn Fn() -> Result<\n    u8,\n    String,\n>>;\n");
        let problem = "crates/a/src/lib.rs:2: `a` has 2 string-errors, and 1 is the most; give the errors kinds (an enum with thiserror)";
        assert_eq!(problems(&two), [problem]);
        assert_eq!(
            problems("fn f() -> Result<String, Error> {}\nfn g() -> io::Result<String> {}\n"),
            [""; 0]
        );
        assert_eq!(problems("fn f() -> Result<u8, MyString> {}\nfn g(a: u8) -> bool { a < B }\n"), [""; 0]);
    }

    #[test]
    fn lines_of_the_list_that_say_too_much_are_told() {
        let told = |text: &str| {
            Ceilings::parse(LIST).outgrown(&measures(&Tree::new([("crates/a/src/lib.rs", text)])))
        };
        let big = format!(
            "struct Big {{\n{}}}\nimpl Big {{\n{}}}\nfn f() -> Result<u8, String> {{}}\n",
            fields(25),
            methods(1)
        );
        assert_eq!(
            told(&big),
            ["xtask/src/tidy/ceilings.txt: `a::Big` has 25 fields and not 26 any more; lower its line"]
        );
        assert_eq!(told("struct Big {}\n").len(), 2, "lines of what is gone");
    }
}
