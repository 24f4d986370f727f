//! Words beside the spinner: verbs of one's own, and a tip below it for whoever waits.

use std::time::Duration;

use serde_json::Value;

/// A turn that is over sooner shows no tip.
pub(crate) const TIP_DELAY: Duration = Duration::from_secs(3);

/// What loci has to say to whoever waits.
const TIPS: &[&str] = &[
    "Shift+Tab changes what runs without asking; plan mode looks and changes nothing",
    "Esc Esc on an empty prompt goes back to an earlier one: conversation, code or both",
    "Type while loci works: it is heard with the next results, and ↑ takes it back",
    "Ctrl+O shows the whole transcript, / searches in it",
    "@ names a file, @file#L10-20 lines of it; ! runs a command of the shell",
    "Ctrl+G writes the prompt in your own editor",
    "Ctrl+S puts the prompt aside, and brings it back",
    "/search finds what was said in any session, and goes on from there",
    "/btw asks something on the side, and nothing of it is recorded",
    "/context shows what fills the window",
    "Ctrl+B has a long command go on in the background; /tasks shows it",
    "/theme has colours for dark, light and high contrast, and yours",
    "/rename gives a session a name to find it by; loci -r NAME goes on with it",
    "CLAUDE.md holds what every session should know; /init writes one",
];

/// What settings say about the words beside the spinner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpinnerWords {
    /// Tips (`spinnerTipsEnabled`, `spinnerTipsOverride`); none where they are not wanted.
    tips: Vec<String>,
    /// Verbs of one's own (`spinnerVerbs`).
    verbs: Vec<String>,
    /// Whether they take the place of what the spinner says by itself.
    replaces_verbs: bool,
}

impl SpinnerWords {
    /// Reads the settings in force.
    pub(crate) fn from_settings(settings: &Value) -> Self {
        let texts = |value: &Value| -> Vec<String> {
            let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.filter(|text| !text.trim().is_empty()).map(str::to_owned).collect()
        };
        let own = &settings["spinnerTipsOverride"];
        let own_tips = texts(&own["tips"]);
        let is_own_only = own["excludeDefault"] == true && !own_tips.is_empty();
        let defaults = TIPS.iter().filter(|_| !is_own_only).map(|tip| (*tip).to_owned());
        let tips = match settings["spinnerTipsEnabled"] == false {
            true => Vec::new(),
            false => defaults.chain(own_tips).collect(),
        };
        let verbs = &settings["spinnerVerbs"];
        Self { tips, verbs: texts(&verbs["verbs"]), replaces_verbs: verbs["mode"] == "replace" }
    }

    /// Returns the tip of a turn, by its number.
    pub(crate) fn tip(&self, n_turn: usize) -> Option<&str> {
        let place = n_turn.checked_rem(self.tips.len())?;
        self.tips.get(place).map(String::as_str)
    }

    /// Returns the verb of a turn, by its number; none where the spinner says what goes on.
    pub(crate) fn verb(&self, n_turn: usize) -> Option<&str> {
        let n_words = self.verbs.len() + usize::from(!self.replaces_verbs);
        let place = n_turn.checked_rem(n_words)?;
        self.verbs.get(place).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tips(settings: Value) -> Vec<String> {
        SpinnerWords::from_settings(&settings).tips
    }

    #[test]
    fn tips_are_added_replaced_or_switched_off() {
        let all = tips(json!({}));
        assert_eq!(all.len(), TIPS.len());
        assert!(
            tips(json!({"spinnerTipsEnabled": false, "spinnerTipsOverride": {"tips": ["x"]}})).is_empty()
        );
        let added = tips(json!({"spinnerTipsOverride": {"tips": ["mine", " ", 3]}}));
        assert_eq!((added.len(), added.last().unwrap().as_str()), (TIPS.len() + 1, "mine"));
        let own = tips(json!({"spinnerTipsOverride": {"tips": ["mine"], "excludeDefault": true}}));
        assert_eq!(own, ["mine"]);
        let none = tips(json!({"spinnerTipsOverride": {"tips": [], "excludeDefault": true}}));
        assert_eq!(none.len(), TIPS.len(), "without any of one's own the others stay");
    }

    #[test]
    fn verbs_take_turns_with_what_goes_on_or_take_its_place() {
        let verbs = |mode: &str, verbs: Value| {
            let words = SpinnerWords::from_settings(&json!({"spinnerVerbs": {"mode": mode, "verbs": verbs}}));
            (0..4).map(|n| words.verb(n).unwrap_or("-").to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(verbs("append", json!(["Baking", "Sewing"])), "Baking Sewing - Baking");
        assert_eq!(verbs("replace", json!(["Baking", "Sewing"])), "Baking Sewing Baking Sewing");
        assert_eq!(verbs("replace", json!([])), "- - - -");
    }
}
