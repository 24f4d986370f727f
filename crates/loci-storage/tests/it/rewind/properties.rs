//! Random operations, and every point of them brought back.

use loci_core::ids::EntryId;

use super::lab::Lab;

/// A small generator of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn file(&mut self) -> String {
        let dirs = ["", "", "d/", "d/e/", "q/", "q/r/"];
        let dir = dirs[self.below(dirs.len() as u64) as usize];
        format!("{dir}{}", ["a", "b", "c", "'s p'", "ü"][self.below(5) as usize])
    }

    fn dir(&mut self) -> &'static str {
        ["d", "d/e", "q", "q/r", "gen"][self.below(5) as usize]
    }
}

/// Returns a command that may do nothing and never fails.
fn command(n: usize, numbers: &mut Numbers) -> String {
    let (file, other, dir, to) = (numbers.file(), numbers.file(), numbers.dir(), numbers.dir());
    let parent = |file: &str| format!("mkdir -p \"$(dirname {file})\" 2>/dev/null");
    let command = match numbers.below(17) {
        0..=2 => format!("{}; printf 'text {n}\\n' > {file}", parent(&file)),
        3 => format!("{}; printf 'more {n}\\n' >> {file}", parent(&file)),
        4 => format!("sed -i 's/t/T{n}/' {file}"),
        5 => format!("rm -f {file}"),
        6 => format!("mv {file} {other}"),
        7 => format!("mv {dir} {to}"),
        8 => format!("mkdir -p {dir}/new{n}"),
        9 => format!("chmod {} {file}", ["644", "755", "600", "444"][n % 4]),
        10 => format!("rm -rf {file}; ln -s target{n} {file}"),
        11 => format!("rm -rf {dir}"),
        12 => format!("git checkout -qf {}", ["main", "other"][n % 2]),
        13 => format!("git add -A; git commit -qm {n}"),
        14 => format!("{}; head -c 300 /dev/urandom > {file}", parent(&file)),
        15 => format!("printf {n} > \"$(printf 'n\\377{}')\"", n % 3),
        _ => format!("chmod {} {dir}", ["755", "700"][n % 2]),
    };
    format!("{{ {command}; }} 2>/dev/null || true")
}

/// Does `n_operations` random things, a point before each, and goes back to each point, the last first. With odd
/// seeds the system is asked what changed.
fn travel(seed: u64, n_operations: usize, n_generated: usize) {
    let mut numbers = Numbers(seed);
    let mut lab = if seed % 2 == 1 { Lab::watching() } else { Lab::new() };
    lab.shell("git branch other");
    let mut points: Vec<(EntryId, String, String)> = Vec::new();
    for n in 0..n_operations {
        let point = lab.point();
        let command = match n {
            _ if n == n_operations - n_operations / 20 => {
                format!("mkdir -p gen && seq 1 {n_generated} | (cd gen && split -l 1 -a 4 -d - f)")
            }
            _ => command(n, &mut numbers),
        };
        points.push((point, lab.hash(), command.clone()));
        if n % 7 == 3 {
            lab.edit(&lab.project().join(format!("edited{}", n % 5)), &format!("edit {n}"));
        } else {
            lab.run(&command);
        }
        if n % 50 == 49 {
            lab.end_session();
        }
    }
    let git = lab.git_hash();
    for (at, (point, hash, command)) in points.iter().enumerate().rev() {
        lab.rewind(point);
        assert_eq!(lab.hash(), *hash, "seed {seed}, point {at} before `{command}`: {}", lab.listing());
    }
    for _ in 0..5 {
        let (point, hash, _) = &points[numbers.below(points.len() as u64) as usize];
        lab.rewind(point);
        assert_eq!(lab.hash(), *hash, "seed {seed}, forth and back");
    }
    assert_eq!(lab.git_hash(), git, "nothing below .git was touched");
}

/// Invariants 5, 6 and 10 of `docs/design/file-history.md`.
#[test]
fn five_hundred_operations_are_taken_back_one_by_one() {
    travel(1, 500, 100);
}

/// Invariants 5 and 10 of `docs/design/file-history.md`.
#[test]
fn ten_thousand_files_of_one_call_are_taken_back() {
    travel(11, 20, 10_000);
}

/// Invariants 5, 6 and 10 of `docs/design/file-history.md`.
#[test]
fn short_histories_of_many_kinds_are_taken_back() {
    for seed in 2..10 {
        travel(seed, 25, 20);
    }
}
