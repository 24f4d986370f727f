//! Keys that have another spelling.

use super::*;

#[test]
fn other_spelling_of_a_key_is_the_key_itself() {
    let text = r#"{"allowedMarketplaces": [], "additionalMarketplaces": {"m": {}}}"#;
    let (layer, said) = Layer::parse(text, Origin::new(Scope::Managed, "m"));
    assert_eq!(show(&layer), "strictKnownMarketplaces=[] extraKnownMarketplaces={\"m\":{}}");
    assert_eq!((said, layer.unknown), (Vec::new(), Vec::new()));
    let refused = "this file cannot set it";
    check_gate(Scope::User, r#"{"allowedMarketplaces": []}"#, refused, refused);
}

#[test]
fn of_two_spellings_in_one_file_the_first_name_counts() {
    for text in [
        r#"{"allowedMarketplaces": ["a"], "strictKnownMarketplaces": []}"#,
        r#"{"strictKnownMarketplaces": [], "allowedMarketplaces": ["a"]}"#,
    ] {
        let (layer, said) = Layer::parse(text, Origin::new(Scope::Managed, "m"));
        assert_eq!(show(&layer), "strictKnownMarketplaces=[]", "{text}");
        assert!(said[0].message.contains("`strictKnownMarketplaces` is set, too"), "{said:?}");
    }
}

#[test]
fn what_turns_bypassing_off_does_so_wherever_it_stands_and_however_it_says_yes() {
    for text in [
        r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#,
        r#"{"permissions": {"disableBypassPermissionsMode": true}}"#,
        r#"{"disableBypassPermissionsMode": "disable"}"#,
        r#"{"disableBypassPermissionsMode": true}"#,
    ] {
        let (layer, _) = Layer::parse(text, Origin::new(Scope::User, "u"));
        assert_eq!(show(&layer), r#"permissions.disableBypassPermissionsMode="disable""#, "{text}");
    }
    let (layer, said) = Layer::parse(r#"{"disableAutoMode": false}"#, Origin::new(Scope::User, "u"));
    assert_eq!((show(&layer).as_str(), said.len()), ("", 1));
}

#[test]
fn one_text_is_a_list_of_one_where_a_list_restricts() {
    let text = r#"{"availableModels": "haiku", "sandbox": {"filesystem": {"denyRead": "~/.ssh", "allowRead": "/x"}}}"#;
    let (layer, said) = Layer::parse(text, Origin::new(Scope::User, "u"));
    assert_eq!(show(&layer), r#"availableModels=["haiku"] sandbox.filesystem.denyRead=["~/.ssh"]"#);
    assert_eq!(said.len(), 3, "{said:?}");
    let (managed, _) = Layer::parse(text, Origin::new(Scope::Managed, "m"));
    assert!(show(&managed).starts_with("availableModels=[] "), "{}", show(&managed));
}

#[test]
fn unknown_keys_that_sound_as_if_they_restrict_are_said_aloud() {
    let text = r#"{"disallowedTools": ["Bash"], "sandbox": {"blockHosts": []}, "someNewThing": 1}"#;
    let (_, said) = Layer::parse(text, Origin::new(Scope::User, "u"));
    let aloud = said.iter().filter(|it| it.severity > Severity::Note).filter_map(|it| it.key.as_deref());
    assert_eq!(aloud.collect::<Vec<_>>(), ["disallowedTools", "sandbox.blockHosts"]);
}
