//! Sessions as trees, one rule each.

use super::*;

/// Checks the leaves, each as `leaf(n_entries)` and the entry it forks from.
fn check(table: &str, expected: &str) {
    let entries = session(table);
    let branches = Branches::from_entries(&entries);
    let show = |leaf: &Leaf| {
        let fork = leaf.fork.as_ref().map(|fork| format!("<{fork}")).unwrap_or_default();
        format!("{}({}){fork}", leaf.id, leaf.n_entries)
    };
    let shown: Vec<String> = branches.leaves().iter().map(show).collect();
    assert_eq!(shown.join(" "), expected, "{table}");
}

fn check_lineage(table: &str, leaf: &str, expected: &str) {
    let entries = session(table);
    let lineage = Branches::from_entries(&entries)
        .lineage(&leaf.into())
        .into_iter()
        .map(|entry| id(entry))
        .collect::<Vec<_>>();
    assert_eq!(lineage.join(" "), expected, "{table}");
}

#[test]
fn every_branch_has_its_leaf() {
    check("", "");
    check("user u1 -\nassistant a1 u1", "a1(2)");
    check("user u1 -\nassistant a1 u1\nuser u2 a1\nuser u3 a1\nassistant a3 u3", "u2(3)<a1 a3(4)");
    check("user u1 -\nuser v1 -\nassistant b1 v1", "u1(1) b1(2)");
}

#[test]
fn results_of_parallel_calls_are_no_branches() {
    let table = "user u1 -
        assistant k u1 msg=m thinking
        assistant c1 k msg=m call=t1
        assistant c2 c1 msg=m call=t2
        user r2 c2 result=t2
        attachment h2 r2
        user r1 c1 result=t1
        assistant a2 r1
        user x k";
    check(table, "a2(5) x(3)<k");
    check_lineage(table, "a2", "u1 k c1 c2 r2 h2 r1 a2");
}

#[test]
fn branches_go_on_across_compactions() {
    let table = "user u1 -
        assistant a1 u1
        user u2 a1
        boundary b - logical=u2 segment=a1,u2
        user s b summary
        assistant a2 s
        user x a1";
    check(table, "a2(6) x(3)<a1");
    check_lineage(table, "a2", "u1 a1 u2 b s a2");
    let torn = "user u1 -\nassistant a1 u1\nboundary b - logical=a1\nuser u2 b\nassistant a2 u2";
    check(torn, "a2(4)");
    check_lineage(torn, "a2", "u1 a1 u2 a2");
}

#[test]
fn a_boundary_that_follows_its_own_child_is_no_circle() {
    check_lineage("boundary b - logical=u2\nuser s b summary\nuser u2 s", "u2", "b s u2");
}
