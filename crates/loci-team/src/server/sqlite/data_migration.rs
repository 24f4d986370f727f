//! Moving to and from a SQLite file.

use rusqlite::{Connection, params_from_iter};
use tokio::sync::mpsc::{Receiver, Sender};

use super::super::data_migration::{
    BATCH_ROWS, Inventory, InventoryBuilder, Row, RowBatch, TABLES, Table, compare,
};
use super::super::store::StoreError;

/// Sends everything.
pub(super) fn send_all(connection: &Connection, batches: &Sender<RowBatch>) -> Result<(), StoreError> {
    let inventory = scan_rows(connection, |batch| send(batches, batch))?;
    send(batches, RowBatch::End(inventory))
}

/// Takes everything, and looks whether it is what was sent.
pub(super) fn take_all(
    connection: &Connection,
    mut batches: Receiver<RowBatch>,
) -> Result<Inventory, StoreError> {
    check_empty(connection)?;
    let sent = loop {
        match batches.blocking_recv() {
            Some(RowBatch::Rows(idx, rows)) => insert_rows(connection, &TABLES[idx], &rows)?,
            Some(RowBatch::End(sent)) => break sent,
            None => return Err(StoreError::CutShort),
        }
    };
    compare(&sent, scan_rows(connection, |_| Ok(()))?)
}

/// Refuses a file that somebody uses.
pub(super) fn check_empty(connection: &Connection) -> Result<(), StoreError> {
    for table in &TABLES {
        if connection.query_row(&table.is_used(), [], |row| row.get(0))? {
            return Err(StoreError::NotEmpty(table.name));
        }
    }
    Ok(())
}

/// Reads every row of every table.
fn scan_rows(
    connection: &Connection,
    mut each: impl FnMut(RowBatch) -> Result<(), StoreError>,
) -> Result<Inventory, StoreError> {
    let mut tally = InventoryBuilder::default();
    for (idx, table) in TABLES.iter().enumerate() {
        let mut statement = connection.prepare(&table.select("BINARY"))?;
        let mut found = statement.query([])?;
        let mut rows: Vec<Row> = Vec::new();
        while let Some(row) = found.next()? {
            let row: Row = (0..table.columns.len()).map(|n| row.get(n)).collect::<Result<_, _>>()?;
            tally.add(idx, &row)?;
            rows.push(row);
            if rows.len() == BATCH_ROWS {
                each(RowBatch::Rows(idx, std::mem::take(&mut rows)))?;
            }
        }
        each(RowBatch::Rows(idx, rows))?;
    }
    Ok(tally.finish())
}

fn insert_rows(connection: &Connection, table: &Table, rows: &[Row]) -> Result<(), StoreError> {
    let places: Vec<&str> = table.columns.iter().map(|_| "?").collect();
    let sql = format!("INSERT INTO {} ({}) VALUES ({})", table.name, table.column_list(), places.join(", "));
    let mut statement = connection.prepare_cached(&sql)?;
    for row in rows {
        statement.execute(params_from_iter(row))?;
    }
    Ok(())
}

/// Hands a batch on; nobody takes it when the other side has stopped.
fn send(batches: &Sender<RowBatch>, batch: RowBatch) -> Result<(), StoreError> {
    batches.blocking_send(batch).map_err(|_| StoreError::CutShort)
}

#[cfg(test)]
mod tests {
    use super::super::SqliteStore;
    use super::*;
    use crate::server::data_migration::batch_channel;
    use crate::server::store::Store;

    /// What is moved is all there is: a column that is added to a table has to be added there, too.
    #[tokio::test]
    async fn every_column_is_moved() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("a.db")).await.unwrap();
        let connection = store.writer.lock().unwrap();
        let mut names =
            connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").unwrap();
        let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(names, TABLES.map(|table| table.name));
        for table in &TABLES {
            let mut columns =
                connection.prepare("SELECT name FROM pragma_table_info(?1) WHERE name <> 'id'").unwrap();
            let columns: Vec<String> =
                columns.query_map([table.name], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            assert_eq!(columns, table.columns, "{}", table.name);
        }
    }

    /// Invariant 8 of `docs/design/team-memory.md`.
    #[tokio::test]
    async fn interrupted_or_altered_migration_leaves_the_target_empty() {
        let member = || ["ann", "r", "t", "now"].map(|it| Some(it.to_owned())).to_vec();
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("a.db")).await.unwrap();
        for end in [None, Some(InventoryBuilder::default().finish())] {
            let (sender, receiver) = batch_channel();
            sender.send(RowBatch::Rows(0, vec![member()])).await.unwrap();
            let expected = if end.is_some() { "not equal" } else { "cut short" };
            if let Some(end) = end {
                sender.send(RowBatch::End(end)).await.unwrap();
            }
            drop(sender);
            let error = store.import(receiver).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            let is_used: bool =
                store.writer.lock().unwrap().query_row(&TABLES[0].is_used(), [], |row| row.get(0)).unwrap();
            assert!(!is_used, "{expected}");
        }
    }
}
