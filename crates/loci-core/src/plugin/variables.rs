//! What stands for something else in the files of a plugin: its directories, and what its options are set to.

use serde_json::Value;

use super::options::OptionValue;

/// The directories and options of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginVariables {
    /// The directory it lies in.
    pub root: String,
    /// The directory that outlasts its versions.
    pub data: String,
    /// Its options.
    pub options: Vec<OptionValue>,
}

impl PluginVariables {
    /// Returns its directories, by the names of their variables.
    pub fn directories(&self) -> [(String, String); 2] {
        let own = [("CLAUDE_PLUGIN_ROOT", &self.root), ("CLAUDE_PLUGIN_DATA", &self.data)];
        own.map(|(name, value)| (name.to_owned(), value.clone()))
    }

    /// Returns the variables that its hooks and servers have.
    pub fn env(&self) -> Vec<(String, String)> {
        let own = self.directories().into_iter();
        let options = self.options.iter().map(|option| {
            (format!("CLAUDE_PLUGIN_OPTION_{}", option.key.to_uppercase()), option.text.clone())
        });
        own.chain(options).collect()
    }

    /// Returns what the model may be told, by name: no secrets.
    pub fn for_prompts(&self) -> Vec<(String, String)> {
        let own = self.directories().into_iter();
        let told = self.options.iter().filter(|option| !option.is_sensitive);
        own.chain(told.map(|option| (format!("user_config.{}", option.key), option.text.clone()))).collect()
    }

    /// Puts values in the place of variables; what was put in is not looked at again.
    pub fn expand(&self, text: &str) -> String {
        let mut all = self.for_prompts();
        let secrets = self.options.iter().filter(|option| option.is_sensitive);
        all.extend(secrets.map(|option| (format!("user_config.{}", option.key), option.text.clone())));
        expand(&all, text)
    }

    /// Puts values into a text that the model is told: no secrets.
    pub fn expand_for_prompt(&self, text: &str) -> String {
        expand(&self.for_prompts(), text)
    }

    /// Puts values into every text of a value.
    pub fn expand_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.expand(text)),
            Value::Array(items) => items.iter().map(|item| self.expand_value(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| (key.clone(), self.expand_value(value)));
                Value::Object(fields.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// Tells whether a text names an option.
pub(super) fn names_option(text: &str) -> bool {
    text.contains("${user_config.")
}

fn expand(values: &[(String, String)], text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let from = &rest[at + 2..];
        let found = from.split_once('}').and_then(|(name, behind)| {
            let (_, value) = values.iter().find(|(known, _)| known == name)?;
            Some((value, behind))
        });
        match found {
            Some((value, behind)) => {
                out.push_str(value);
                rest = behind;
            }
            None => {
                out.push_str("${");
                rest = from;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> PluginVariables {
        let option = |key: &str, text: &str, is_sensitive| OptionValue {
            key: key.to_owned(),
            text: text.to_owned(),
            is_sensitive,
        };
        PluginVariables {
            root: "/p/${CLAUDE_PLUGIN_DATA}".to_owned(),
            data: "/d".to_owned(),
            options: vec![option("url", "https://x", false), option("token", "hush", true)],
        }
    }

    #[test]
    fn variables_are_put_in_once() {
        for (text, expected) in [
            ("${CLAUDE_PLUGIN_DATA}/x", "/d/x"),
            ("${CLAUDE_PLUGIN_ROOT}", "/p/${CLAUDE_PLUGIN_DATA}"),
            ("${user_config.url}?t=${user_config.token}", "https://x?t=hush"),
            (
                "${user_config.none} ${HOME} $CLAUDE_PLUGIN_DATA",
                "${user_config.none} ${HOME} $CLAUDE_PLUGIN_DATA",
            ),
            ("${", "${"),
            ("${a${CLAUDE_PLUGIN_DATA}}", "${a/d}"),
        ] {
            assert_eq!(variables().expand(text), expected, "{text}");
        }
    }

    #[test]
    fn model_is_told_no_secret_and_children_have_all() {
        assert_eq!(variables().expand_for_prompt("${user_config.token}"), "${user_config.token}");
        let env = variables().env();
        assert!(env.contains(&("CLAUDE_PLUGIN_OPTION_TOKEN".to_owned(), "hush".to_owned())));
        assert!(env.contains(&("CLAUDE_PLUGIN_DATA".to_owned(), "/d".to_owned())));
    }
}
