//! Probe 22 in a repository inside the project: `git status` outside goes into what the index says is one, and runs nothing
//! that a command has left there.

use loci_sandbox::policy::Layers;

use super::kit::{World, has_full};

/// A project with a submodule below `.git/modules`, and one that has its own `.git`, whose configuration names a program.
fn repository() -> World {
    let world = World::new();
    world.write(
        "home/.gitconfig",
        "[user]\nname=a\nemail=a@b\n[init]\ndefaultBranch=main\n[protocol \"file\"]\nallow=always\n",
    );
    let script = "rm file; git init -q ../o && cd ../o && echo x > x && git add x && git commit -qm one && cd ../p && git init -q . \
        && git submodule --quiet add ../o sub && git init -q own && cd own && echo y > y && git add y && git commit -qm own \
        && git config core.pager 'less -F' && cd .. && git add own 2>/dev/null && git commit -qm all";
    world.script_outside(script);
    world
}

/// What commands try, one after the other, so that git outside leaves `home/ran`, and what is said of the last.
const TRIED: &[(&[&str], &str)] = &[
    (
        &[
            "git init -q e && cd e && git commit -q --allow-empty -m e && git config core.fsmonitor RUN && cd .. && git add e",
        ],
        "core.fsmonitor",
    ),
    // In two steps: the repository first, what makes git go there later, and the other way round.
    (
        &[
            "git init -q e && cd e && git commit -q --allow-empty -m e && git config core.fsmonitor RUN",
            "git add e",
        ],
        "core.fsmonitor",
    ),
    (
        &[
            "mkdir e && git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),e",
            "git init -q e && cd e && echo x > x && git add x && git commit -qm e && git config core.fsmonitor RUN",
        ],
        "core.fsmonitor",
    ),
    (&["cd own && git config core.fsmonitor RUN"], "core.fsmonitor"),
    (
        &[
            "printf '#!/bin/sh\\ntouch %s\\n' PATH > own/.git/hooks/post-index-change && chmod +x own/.git/hooks/post-index-change && touch own/y",
        ],
        "post-index-change",
    ),
    (
        &[
            "rm sub/.git && git init -q sub && cd sub && git add . && git commit -qm e && git config core.fsmonitor RUN",
        ],
        "core.fsmonitor",
    ),
    (
        &[
            "git init -q e && cd e && git commit -q --allow-empty -m e && git config core.fsmonitor RUN && cd .. && echo 'gitdir: ../e/.git' > sub/.git",
        ],
        "sub/.git",
    ),
    (
        &[
            "git init -q e && cd e && git commit -q --allow-empty -m e && git config core.fsmonitor RUN && cd .. && rm sub/.git && ln -s ../e/.git sub/.git",
        ],
        "sub/.git",
    ),
    (
        &[
            "cd own && git init -q e && cd e && git commit -q --allow-empty -m e && git config core.fsmonitor RUN && cd .. && git add e",
        ],
        "core.fsmonitor",
    ),
    (
        &[
            "git init -q e && cd e && git commit -q --allow-empty -m e && git config core.fsmonitor RUN && cd .. && git add e && git update-index --split-index",
        ],
        "core.fsmonitor",
    ),
];

/// Returns the script, by which git is to make a file.
fn leaving(script: &str, ran: &std::path::Path) -> String {
    let path = ran.display().to_string();
    script.replace("RUN", &format!("'touch {path}; false'")).replace("PATH", &path)
}

#[test]
fn status_outside_runs_nothing_that_a_command_leaves_in_a_repository_inside() {
    if !has_full() {
        return;
    }
    for (scripts, expected) in TRIED {
        let unheld = repository();
        let ran = unheld.path("home/ran");
        scripts.iter().for_each(|script| drop(unheld.script_outside(&leaving(script, &ran))));
        unheld.outside("git", &["status"]);
        assert!(ran.exists(), "{scripts:?}: git does not run it anyway");
        let world = repository();
        let ran = world.path("home/ran");
        let mut told = String::new();
        for script in *scripts {
            let (output, report) =
                world.run(&world.policy(Layers::FULL), "sh", &["-ec", &leaving(script, &ran)]);
            let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(output.status.success() && report.why_not_run().is_none(), "{script}: {printed}");
            told = report.removed.join("\n");
        }
        world.outside("git", &["status"]);
        world.outside("git", &["diff"]);
        assert!(!ran.exists(), "{scripts:?}: git outside ran it; {told}");
        assert!(told.contains(expected) && told.contains("sandbox-set-aside"), "{scripts:?}: {told}");
    }
}

#[test]
fn repositories_inside_work_as_ever_and_keep_what_is_their_own() {
    if !has_full() {
        return;
    }
    let world = repository();
    let script = "cd own && echo z > z && git add z && git commit -qm z && git config user.name b && cd ../ && git status --short && git add own && git commit -qm more";
    let (output, report) = world.run(&world.policy(Layers::FULL), "sh", &["-ec", script]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(report.removed, Vec::<String>::new());
    let config = std::fs::read_to_string(world.path("home/p/own/.git/config")).unwrap();
    assert!(config.contains("name = \"b\"") && config.contains("pager = \"less -F\""), "{config}");
    let (_, report) = world.run(&world.policy(Layers::FULL), "git", &["status"]);
    assert_eq!(report.removed, Vec::<String>::new());
    let world = repository();
    let (_, report) = world.run(
        &world.policy(Layers::FULL),
        "sh",
        &["-c", "cd own && git commit -q --allow-empty -m x; git status"],
    );
    assert_eq!(report.removed, Vec::<String>::new(), "what nobody changed is somebody's own");
    assert!(world.script_outside("git -C own config core.pager").contains("less"));
}

/// A repository that the command itself makes is looked through in the same way once it has its place.
#[test]
fn repository_that_a_command_makes_leads_into_none_of_its_own() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let ran = world.path("home/ran");
    let script = format!(
        "git init -q . && git init -q e && cd e && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m e && git config core.fsmonitor 'touch {}; false' && cd .. && git add e",
        ran.display()
    );
    let (output, report) = world.run(&world.policy(Layers::FULL), "sh", &["-ec", &script]);
    assert!(output.status.success(), "{output:?}");
    world.outside("git", &["status"]);
    assert!(!ran.exists() && report.removed.join("").contains("core.fsmonitor"), "{report:?}");
}
