//! What each field of the front matter does, typed and used by the model, and what settings say about skills.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::{bash, result_of, skill};
use crate::support::{MODEL, World, assert_fine, is_result, print, stream, user};

fn use_skill(name: &str) -> Step {
    Step::call("Skill", json!({"skill": name}))
}

fn body(world: &World) -> String {
    String::from_utf8_lossy(&world.last_request().body).into_owned()
}

#[tokio::test]
async fn model_and_effort_of_a_skill_that_the_model_uses_hold_for_the_rest_of_the_turn() {
    let script = [use_skill("deep"), Step::text("done"), Step::text("again")];
    let world = World::new(script).await;
    skill(&world, "deep", "---\nmodel: claude-opus-4-5\neffort: low\n---\nThink.");
    let mut session = world.start(&stream([]));
    for prompt in ["go", "once more"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    session.finish();
    let asked: Vec<(Value, Value)> = world
        .requests()
        .iter()
        .map(|it| (it.json["model"].clone(), it.json["output_config"]["effort"].clone()))
        .collect();
    let usual = (json!(MODEL), Value::Null);
    assert_eq!(asked, [usual.clone(), (json!("claude-opus-4-5"), json!("low")), usual]);
}

#[tokio::test]
async fn model_is_told_where_the_files_of_a_skill_lie() {
    let world = World::new([use_skill("ship"), Step::text("done"), Step::text("again")]).await;
    skill(&world, "ship", "Read guide.md.");
    skill(&world, "pack", "Run scripts/pack.sh.");
    world.home.write(".claude/commands/tell.md", "Tell.");
    assert_fine(&world.print(["go"]));
    let dir = |name: &str| world.home.config_home().join("skills").join(name).display().to_string();
    let line = |name: &str| format!("This skill lies in {}, where relative paths in it begin.", dir(name));
    assert!(body(&world).contains(&format!("{}\\n\\nRead guide.md.", line("ship"))), "{}", body(&world));
    assert_fine(&world.print(["/pack /tell"]));
    let last = body(&world);
    assert!(last.contains(&format!("{}\\n\\nRun scripts/pack.sh.", line("pack"))), "{last}");
    assert!(last.contains("\"Tell.\""), "a command has no directory of its own: {last}");
}

#[tokio::test]
async fn effort_in_a_text_is_the_one_that_the_request_asks_for() {
    for (model, flags, effort, expected) in [
        ("claude-opus-5-5", None, "", "medium"),
        ("claude-opus-5-5", Some("max"), "", "max"),
        ("claude-opus-5-5", Some("max"), "effort: low\n", "low"),
        ("claude-haiku-4-5", None, "", "high"),
    ] {
        let world = World::new(Step::text("done")).await;
        skill(&world, "think", &format!("---\ndescription: d\n{effort}---\nThink: ${{CLAUDE_EFFORT}}."));
        let flags = flags.map(|level| ["--effort", level]).into_iter().flatten();
        assert_fine(&world.run(&print(["/think", "--model", model]).args(flags)));
        let asked = world.last_request().json["output_config"]["effort"].clone();
        assert!(body(&world).contains(&format!("Think: {expected}.")), "{model}: {}", body(&world));
        assert!(asked.is_null() || asked == expected, "{model}: {asked}");
    }
}

#[tokio::test]
async fn disallowed_tools_may_not_be_used_in_the_turn_and_the_model_is_told() {
    for prompt in ["/careful", "use it"] {
        let begin = (prompt == "use it").then(|| use_skill("careful"));
        let script: Vec<Step> = begin
            .into_iter()
            .chain([bash("touch made"), Step::text("done"), bash("touch late"), Step::text("x")])
            .collect();
        let world = World::new(loci_testkit::Script::new(script)).await;
        skill(&world, "careful", "---\ndisallowed-tools: Bash\n---\nBe careful.");
        let mut session = world.start(&stream(["--allowedTools", "Bash(touch *)"]));
        for prompt in [prompt, "next"] {
            session.write_json(&user(prompt));
            session.wait_for_json(is_result);
        }
        session.finish();
        let exists = |name: &str| world.home.project().join(name).exists();
        assert_eq!([exists("made"), exists("late")], [false, true], "{prompt}");
        assert!(body(&world).contains("(Not to be used in this turn: Bash)"));
    }
}

#[tokio::test]
async fn same_text_is_not_told_twice_and_another_one_is() {
    let again = |args: &str| Step::call("Skill", json!({"skill": "ship", "args": args}));
    let world = World::new([again("v1"), again("v1"), again("v2"), Step::text("done")]).await;
    skill(&world, "ship", "Ship $0.");
    assert_fine(&world.print(["go"]));
    let last = body(&world);
    assert_eq!([last.matches("Ship v1.").count(), last.matches("Ship v2.").count()], [1, 1], "{last}");
    assert_eq!(last.matches("its text stands above").count(), 1);
}

#[tokio::test]
async fn skill_for_the_model_alone_is_not_typed_and_one_for_people_is_not_used() {
    let world = World::new(Step::text("never asked")).await;
    skill(&world, "known", "---\nuser-invocable: false\n---\nx");
    skill(&world, "off", "x");
    world.home.write_config("settings.json", r#"{"skillOverrides": {"off": "off"}}"#);
    for (typed, why) in [("/known", "for the model alone"), ("/off now", "`skillOverrides`")] {
        let output = world.run(&print([typed, "--output-format", "json"]));
        assert!(result_of(&output)["result"].as_str().unwrap().contains(why), "{output:?}");
    }
    assert!(world.model.requests().is_empty());

    for (text, settings) in [
        ("---\ndisable-model-invocation: yes\n---\nSECRET", "{}"),
        ("SECRET", r#"{"skillOverrides": {"mine": "user-invocable-only"}}"#),
    ] {
        let world = World::new([use_skill("mine"), Step::text("done")]).await;
        skill(&world, "mine", text);
        skill(&world, "other", "x");
        world.home.write_config("settings.json", settings);
        assert_fine(&world.print(["go"]));
        let last = body(&world);
        assert!(last.contains("is for the user alone") && !last.contains("SECRET"), "{last}");
    }
}

#[tokio::test]
async fn listing_keeps_to_its_budget_and_names_stay() {
    let listed = |settings: &str, budget: Option<&str>| {
        let (settings, budget) = (settings.to_owned(), budget.map(str::to_owned));
        async move {
            let world = World::new(Step::text("done")).await;
            skill(&world, "ship", &format!("---\ndescription: {}\n---\nx", "Ships. ".repeat(40)));
            skill(&world, "tidy", "---\ndescription: Tidies\n---\nx");
            world.home.write_config("settings.json", settings);
            let run = print(["go"]);
            let output = world.run(&match budget {
                Some(budget) => run.env("SLASH_COMMAND_TOOL_CHAR_BUDGET", budget),
                None => run,
            });
            (body(&world), output.stderr)
        }
    };
    let (whole, _) = listed("{}", None).await;
    assert!(whole.contains("- ship: Ships. Ships.") && whole.contains("- tidy: Tidies"));
    let (short, _) = listed("{}", Some("30")).await;
    assert!(short.contains("- ship\\n") && !short.contains("Ships. Ships."), "{short}");
    let world = World::new(Step::text("done")).await;
    skill(&world, "ship", "---\ndescription: Ships the build\n---\nx");
    let log = world.path("debug.log");
    world.run(&print(["go", "--debug-file", &log]).env("SLASH_COMMAND_TOOL_CHAR_BUDGET", "10"));
    let said = world.home.read(&log);
    assert!(said.contains("the list of skills has no room for all descriptions"), "{said}");
    let (cut, _) = listed(r#"{"skillListingMaxDescChars": 10}"#, None).await;
    assert!(cut.contains("- ship: Ships. Sh…"), "{cut}");
    let (none, _) = listed(r#"{"skillListingBudgetFraction": 0}"#, None).await;
    assert!(none.contains("- ship\\n- tidy\\n"), "{none}");
    let (_, said) = listed(r#"{"skillOverrides": {"ship": "loud"}}"#, Some("many")).await;
    assert!(
        said.contains("`skillOverrides` says \"loud\"") && said.contains("CHAR_BUDGET is no number"),
        "{said}"
    );
}

#[tokio::test]
async fn reload_says_what_came_changed_and_went() {
    let world = World::new(Step::text("done")).await;
    skill(&world, "stays", "x");
    skill(&world, "goes", "x");
    let mut session = world.start(&stream([]));
    session.write_json(&user("hello"));
    session.wait_for_json(is_result);
    skill(&world, "stays", "changed");
    skill(&world, "comes", "x");
    std::fs::remove_dir_all(world.home.config_home().join("skills/goes")).unwrap();
    session.write_json(&user("/reload-skills"));
    let said = session.wait_for_json(is_result)["result"].as_str().unwrap().to_owned();
    session.finish();
    assert!(said.ends_with(" skills; new: comes; changed: stays; gone: goes"), "{said}");
}

/// Typed and by the model: both count, in the file that other programs keep such figures in, and for the next session.
#[tokio::test]
async fn uses_of_skills_are_kept_and_decide_whose_descriptions_stay() {
    let done = || Step::text("done");
    let world = World::new([use_skill("tidy"), done(), done(), done(), done()]).await;
    for name in ["ship", "tidy", "wash"] {
        skill(&world, name, &format!("---\ndescription: Does {name}.\n---\nText of {name}."));
    }
    let state = || -> Value {
        serde_json::from_str(&world.home.read(world.home.home().join(".claude.json"))).unwrap()
    };
    assert_fine(&world.print(["go"]));
    assert_fine(&world.print(["/wash now"]));
    let kept = state()["skillUsage"].clone();
    assert_eq!((&kept["tidy"]["usageCount"], &kept["wash"]["usageCount"]), (&json!(1), &json!(1)), "{kept}");
    assert!(kept["wash"]["lastUsedAt"].as_i64() >= kept["tidy"]["lastUsedAt"].as_i64(), "{kept}");
    assert_eq!(kept["ship"], Value::Null);
    // Names take 21 characters, a description and what stands before it 12.
    let run = print(["hello", "--no-session-persistence"]);
    assert_fine(&world.run(&run.env("SLASH_COMMAND_TOOL_CHAR_BUDGET", "34")));
    let told = body(&world);
    assert!(told.contains("- ship\\n- tidy\\n- wash: Does wash."), "the one that was used last: {told}");
    assert_fine(&world.print(["/ship it", "--no-session-persistence"]));
    assert_eq!(state()["skillUsage"], kept, "a run that keeps nothing keeps no figures either");
}
