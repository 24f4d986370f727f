//! What is odd about a catalogue or a manifest: it works here, and would not everywhere, or not for long.

use serde_json::{Map, Value};

/// Names that a marketplace may not have where organisations hand marketplaces out.
const RESERVED: [&str; 3] = ["org", "org-provisioned", "unknown"];
/// Parts whose place is under `experimental`.
const EXPERIMENTAL: [&str; 2] = ["themes", "monitors"];
/// Fields that nothing here reads, and what each has to be for those who do.
const UNREAD: [(&str, Kind); 4] = [
    ("keywords", Kind::Texts),
    ("homepage", Kind::Text),
    ("repository", Kind::Text),
    ("license", Kind::Text),
];

enum Kind {
    Text,
    Texts,
}

/// Says what is odd about a catalogue, apart from the plugins themselves.
pub fn catalogue_oddities(catalogue: &Map<String, Value>) -> Vec<String> {
    let mut oddities = Vec::new();
    let entries = catalogue.get("plugins").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if entries.is_empty() {
        oddities.push("the marketplace has no plugins".to_owned());
    }
    let described =
        [catalogue.get("description"), catalogue.get("metadata").and_then(|it| it.get("description"))];
    if described.iter().all(Option::is_none) {
        oddities.push("the marketplace has no `description`".to_owned());
    }
    let name = catalogue.get("name").and_then(Value::as_str).unwrap_or_default();
    if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
        oddities.push(format!("the name `{name}` of the marketplace is reserved in Claude Desktop"));
    }
    let names = entries.iter().map(|entry| entry.get("name").and_then(Value::as_str).unwrap_or_default());
    oddities.extend(
        names.enumerate().filter_map(|(idx, name)| Some(format!("plugins[{idx}]: {}", odd_name(name)?))),
    );
    oddities
}

/// Says what is odd about a manifest.
pub fn manifest_oddities(manifest: &Map<String, Value>) -> Vec<String> {
    let mut oddities: Vec<String> =
        manifest.get("name").and_then(Value::as_str).and_then(odd_name).into_iter().collect();
    for key in ["experimental", "metadata"] {
        if manifest.get(key).is_some_and(|value| !value.is_object()) {
            oddities.push(format!("`{key}` is no object, and is passed over"));
        }
    }
    let early = EXPERIMENTAL.into_iter().filter(|key| manifest.contains_key(*key));
    oddities.extend(early.map(|key| format!("`{key}` belongs under `experimental`")));
    oddities
}

/// Says which fields of a manifest are of another kind than they should be, though nothing here reads them: other programs do
/// not load the plugin then.
pub fn unread_field_problems(manifest: &Map<String, Value>) -> Vec<String> {
    let problem = |(key, kind): &(&str, Kind)| {
        let value = manifest.get(*key)?;
        let (is_fit, words) = match kind {
            Kind::Text => (value.is_string(), "a text"),
            Kind::Texts => {
                let items = value.as_array();
                (items.is_some_and(|items| items.iter().all(Value::is_string)), "a list of texts")
            }
        };
        (!is_fit).then(|| format!("`{key}` should be {words}"))
    };
    UNREAD.iter().filter_map(problem).collect()
}

/// Says that a name is of another form than those who list plugins take; none where it is one, or no name at all.
fn odd_name(name: &str) -> Option<String> {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_odd = !name.is_empty() && !name.chars().all(is_fit);
    is_odd.then(|| {
        let name: String = name.escape_debug().take(80).collect();
        format!(
            "the name `{name}` is not kebab-case (lower-case letters, digits and `-`), which claude.ai wants"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn catalogue_that_works_here_alone_is_odd() {
        let plugins = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Value>();
        for (catalogue, expected) in [
            (json!({"name": "m", "description": "d", "plugins": plugins(&["my-kit2"])}), vec![]),
            (json!({"name": "m", "metadata": {"description": "d"}, "plugins": plugins(&["a"])}), vec![]),
            (json!({"name": "m", "plugins": []}), vec!["has no plugins", "no `description`"]),
            (
                json!({"name": "ORG", "description": "d", "plugins": plugins(&["a"])}),
                vec!["`ORG` of the marketplace is reserved"],
            ),
            (
                json!({"name": "m", "description": "d", "plugins": plugins(&["a", "My_Kit", ""])}),
                vec!["plugins[1]: the name `My_Kit` is not kebab-case"],
            ),
        ] {
            let oddities = catalogue_oddities(&fields(catalogue));
            assert_eq!(oddities.len(), expected.len(), "{oddities:?}");
            assert!(oddities.iter().zip(&expected).all(|(said, part)| said.contains(part)), "{oddities:?}");
        }
    }

    #[test]
    fn manifest_that_works_here_alone_is_odd() {
        let odd = manifest_oddities(&fields(json!({
            "name": "Kit", "metadata": 5, "experimental": [], "themes": "./t", "keywords": ["a"],
        })));
        let parts = [
            "`Kit` is not kebab-case",
            "`experimental` is no object",
            "`metadata` is no",
            "`themes` belongs",
        ];
        assert!(odd.len() == 4 && odd.iter().zip(parts).all(|(said, part)| said.contains(part)), "{odd:?}");
        assert_eq!(manifest_oddities(&fields(json!({"name": "kit-2", "metadata": {}}))), [""; 0]);
    }

    #[test]
    fn fields_that_nothing_here_reads_have_a_kind_all_the_same() {
        let wrong = json!({"keywords": "a", "homepage": 1, "repository": {}, "license": "MIT"});
        let said = unread_field_problems(&fields(wrong));
        assert_eq!(
            said,
            [
                "`keywords` should be a list of texts",
                "`homepage` should be a text",
                "`repository` should be a text"
            ]
        );
        assert_eq!(unread_field_problems(&fields(json!({"keywords": ["a"], "license": "MIT"}))), [""; 0]);
    }
}
