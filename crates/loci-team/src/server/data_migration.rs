//! Moving everything from one database to another.
//!
//! Rows go over as text, a few at a time, in an order that all databases agree on. Nobody writes to the source meanwhile.
//! The target takes them in one transaction, in which they are read back at the end and held against what was sent: either
//! all of it is there and equal, or the target is as empty as before. Numbers that a database gives to rows are given anew,
//! in the same order; nothing refers to them.

use loci_context::ContentHash;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::store::StoreError;

/// Rows that travel together.
pub(super) const BATCH_ROWS: usize = 64;
/// Batches on their way at the same time.
const BATCHES_IN_FLIGHT: usize = 2;

/// A table and what of it is moved.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// All are text; the number of a row is left out.
    pub(super) columns: &'static [&'static str],
    /// What its rows are sorted by: a number, or text.
    order: Order,
}

#[derive(Debug, Clone, Copy)]
enum Order {
    Number(&'static str),
    Text([&'static str; 2]),
}

/// Everything that a database holds.
pub(super) const TABLES: [Table; 4] = [
    Table {
        name: "members",
        columns: &["name", "repository", "token_hash", "added_at"],
        order: Order::Number("id"),
    },
    Table {
        name: "entries",
        columns: &["repository", "name", "case_key", "text", "hash", "changed_at", "changed_by"],
        order: Order::Text(["repository", "name"]),
    },
    Table {
        name: "versions",
        columns: &["repository", "name", "text", "hash", "at", "by"],
        order: Order::Number("id"),
    },
    Table {
        name: "audit",
        columns: &["at", "member", "repository", "action", "name", "hash", "outcome"],
        order: Order::Number("id"),
    },
];

impl Table {
    /// Returns the query for all rows, in order; text is compared by its bytes, which `collation` names.
    pub(super) fn select(&self, collation: &str) -> String {
        let order = match self.order {
            Order::Number(column) => column.to_owned(),
            Order::Text(columns) => columns.map(|it| format!("\"{it}\" COLLATE {collation}")).join(", "),
        };
        format!("SELECT {} FROM {} ORDER BY {order}", self.column_list(), self.name)
    }

    /// Returns the query that tells whether there is any row.
    pub(super) fn is_used(&self) -> String {
        format!("SELECT EXISTS (SELECT 1 FROM {})", self.name)
    }

    /// Returns its columns, for a statement.
    pub(super) fn column_list(&self) -> String {
        self.columns.iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(", ")
    }

    fn cell<'a>(&self, column: &str, row: &'a Row) -> Option<&'a str> {
        let idx = self.columns.iter().position(|it| *it == column)?;
        row.get(idx)?.as_deref()
    }
}

/// The cells of a row, in the order of the columns.
pub(super) type Row = Vec<Option<String>>;

/// What travels.
#[derive(Debug)]
pub(super) enum RowBatch {
    /// Rows of the table with this index.
    Rows(usize, Vec<Row>),
    /// That was all, and this is what it was. What ends without it was cut short.
    End(Inventory),
}

/// What was moved: for each table how many rows, and a hash over all of them in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    tables: [(u64, [u8; 32]); TABLES.len()],
}

impl Inventory {
    /// Returns the name of each table and its number of rows.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        TABLES.iter().zip(&self.tables).map(|(table, (n, _))| (table.name, *n))
    }
}

/// Counts rows while they pass.
#[derive(Debug, Default)]
pub(super) struct InventoryBuilder {
    tables: [(u64, Sha256); TABLES.len()],
}

impl InventoryBuilder {
    /// Takes note of a row; a text that is not what its hash says is no row to be moved.
    pub(super) fn add(&mut self, idx: usize, row: &Row) -> Result<(), StoreError> {
        let table = &TABLES[idx];
        let (text, hash) = (table.cell("text", row), table.cell("hash", row));
        if text.is_some_and(|text| Some(ContentHash::of(text).as_str()) != hash) {
            let cell = |column| table.cell(column, row).unwrap_or_default();
            let (repository, name) = (cell("repository"), cell("name"));
            return Err(StoreError::Damaged(format!("`{name}` of `{repository}` in `{}`", table.name)));
        }
        let (n, hash) = &mut self.tables[idx];
        *n += 1;
        for cell in row {
            // The length goes first, so that no two rows read alike.
            let length = cell.as_ref().map_or(u64::MAX, |cell| cell.len() as u64);
            hash.update(length.to_le_bytes());
            hash.update(cell.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Inventory {
        Inventory { tables: self.tables.map(|(n, hash)| (n, hash.finalize().into())) }
    }
}

/// Compares what was sent with what is there.
pub(super) fn compare(sent: &Inventory, found: Inventory) -> Result<Inventory, StoreError> {
    if *sent == found { Ok(found) } else { Err(StoreError::NotEqual) }
}

/// Makes the way from a source to a target.
pub(super) fn batch_channel() -> (mpsc::Sender<RowBatch>, mpsc::Receiver<RowBatch>) {
    mpsc::channel(BATCHES_IN_FLIGHT)
}

/// Says which side stopped it, where both have stopped.
pub(super) fn outcome(
    sent: Result<(), StoreError>,
    taken: Result<Inventory, StoreError>,
) -> Result<Inventory, StoreError> {
    match (sent, taken) {
        (Ok(()), taken) | (Err(StoreError::CutShort), taken @ Err(_)) => taken,
        (Err(error), _) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [&str; 4]) -> Row {
        cells.map(|it| Some(it.to_owned())).to_vec()
    }

    #[test]
    fn any_difference_changes_the_inventory() {
        let taken = |rows: &[Row]| {
            let mut tally = InventoryBuilder::default();
            rows.iter().for_each(|row| tally.add(0, row).unwrap());
            tally.finish()
        };
        let (one, two) = (row(["ann", "r", "t", "now"]), row(["ben", "r", "u", "now"]));
        let whole = taken(&[one.clone(), two.clone()]);
        assert_eq!(whole.counts().next(), Some(("members", 2)));
        let mut absent = one.clone();
        absent[3] = None;
        for other in [
            vec![],
            vec![one.clone()],
            vec![two.clone(), one.clone()],
            vec![row(["an", "nr", "t", "now"]), two.clone()],
            vec![absent, two.clone()],
        ] {
            assert_ne!(taken(&other), whole, "{other:?}");
            assert!(compare(&whole, taken(&other)).is_err());
        }
        assert!(compare(&whole, taken(&[one, two])).is_ok());
    }

    #[test]
    fn a_text_that_is_not_what_its_hash_says_is_not_moved() {
        let hash = ContentHash::of("text");
        let version = |text: &str| {
            ["r", "a.md", text, hash.as_str(), "now", "ann"].map(|it| Some(it.to_owned())).to_vec()
        };
        assert!(InventoryBuilder::default().add(2, &version("text")).is_ok());
        let said = InventoryBuilder::default().add(2, &version("test")).unwrap_err().to_string();
        assert!(said.contains("`a.md` of `r` in `versions`"), "{said}");
    }
}
