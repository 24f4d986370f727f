//! The date on which the conversation began. A later date arrives as an attachment, never by changing this.

pub(super) fn section(date: &str) -> String {
    format!("# currentDate\nToday is {date}.")
}
