//! Each step of the helper made to fail, started for its program or ahead of it: nothing ever runs.

use loci_sandbox::Policy;
use loci_sandbox::policy::{Fault, FaultKind, HelperStep, Layers};

use super::kit::{Run, World, has_full};

fn check(layers: Layers, steps: &[HelperStep]) {
    for (way, run) in [("for it", World::run as Run), ("ahead", World::run_by_waiting_helper)] {
        check_way(layers, steps, way, run);
    }
}

fn check_way(layers: Layers, steps: &[HelperStep], way: &str, run: Run) {
    for step in steps {
        for kind in [FaultKind::Refused, FaultKind::Killed] {
            let world = World::new();
            let before = world.names();
            let policy = Policy { fault: Some(Fault { at: *step, kind }), ..world.policy(layers) };
            let (output, report) = run(&world, &policy, "sh", &["-c", "echo ran; touch ran"]);
            let label = format!("{step:?} {kind:?}, started {way}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{label}");
            assert!(!world.path("home/p/ran").exists(), "{label}");
            assert!(!output.status.success(), "{label}");
            let why = report.why_not_run().unwrap_or_else(|| panic!("{label}: it says that it ran"));
            if kind == FaultKind::Refused {
                assert!(why.starts_with(step.describe()), "{label}: {why}");
            }
            // One that is killed outside the namespaces cannot clean up; the next does.
            let (_, report) = world.run(&world.policy(Layers::FULL), "true", &[]);
            assert_eq!(report.why_not_run(), None, "{label}");
            assert_eq!(world.names(), before, "{label}");
        }
    }
}

#[test]
fn full_sandbox_that_fails_at_any_step_runs_nothing() {
    if has_full() {
        check(Layers::FULL, &HelperStep::ALL);
    }
}

#[test]
fn weak_sandbox_that_fails_at_any_step_runs_nothing() {
    if has_full() {
        use HelperStep::{Capabilities, Exec, Landlock, Limits, Seccomp};
        check(Layers::WEAK, &[Capabilities, Limits, Landlock, Seccomp, Exec]);
    }
}

#[test]
fn policy_that_cannot_be_read_or_kept_runs_nothing() {
    let world = World::new();
    let mut policy = world.policy(Layers::FULL);
    policy.files.as_mut().unwrap().roots.push("/".into());
    let (output, report) = world.run(&policy, "echo", &["ran"]);
    assert!(output.stdout.is_empty() && report.why_not_run().is_some());
    let mut command = std::process::Command::new(super::kit::PROBE);
    std::os::unix::process::CommandExt::arg0(&mut command, loci_sandbox::HELPER_NAME);
    let output = command.args(["run", "77", "78", "echo", "ran"]).output().unwrap();
    assert!(output.stdout.is_empty() && !output.status.success(), "without descriptors");
}
