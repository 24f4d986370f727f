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
