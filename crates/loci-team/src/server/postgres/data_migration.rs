//! Moving to and from PostgreSQL.

use tokio::sync::mpsc::{Receiver, Sender};
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use super::super::data_migration::{
    BATCH_ROWS, Inventory, InventoryBuilder, Row, RowBatch, TABLES, Table, compare,
};
use super::super::store::StoreError;

/// Statements take as long as there are rows; others may read meanwhile, and write when it is over.
const HOLD: &str =
    "SET LOCAL statement_timeout = 0; LOCK TABLE members, entries, versions, audit IN EXCLUSIVE MODE";

/// Sends everything.
pub(super) async fn send_all(
    transaction: &Transaction<'_>,
    batches: &Sender<RowBatch>,
) -> Result<(), StoreError> {
    transaction.batch_execute(HOLD).await?;
    let inventory = scan_rows(transaction, Some(batches)).await?;
    send(batches, RowBatch::End(inventory)).await
}

/// Takes everything, and looks whether it is what was sent.
pub(super) async fn take_all(
    transaction: &Transaction<'_>,
    mut batches: Receiver<RowBatch>,
) -> Result<Inventory, StoreError> {
    // Looked at first without waiting, because it may be the very database that is being moved.
    check_empty(transaction).await?;
    transaction.batch_execute(HOLD).await?;
    check_empty(transaction).await?;
    let sent = loop {
        match batches.recv().await {
            Some(RowBatch::Rows(idx, rows)) => insert_rows(transaction, &TABLES[idx], &rows).await?,
            Some(RowBatch::End(sent)) => break sent,
            None => return Err(StoreError::CutShort),
        }
    };
    compare(&sent, scan_rows(transaction, None).await?)
}

/// Refuses a database that somebody uses.
async fn check_empty(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    for table in &TABLES {
        if transaction.query_one(&table.is_used(), &[]).await?.try_get(0)? {
            return Err(StoreError::NotEmpty(table.name));
        }
    }
    Ok(())
}

/// Reads every row of every table.
async fn scan_rows(
    transaction: &Transaction<'_>,
    batches: Option<&Sender<RowBatch>>,
) -> Result<Inventory, StoreError> {
    let mut tally = InventoryBuilder::default();
    for (idx, table) in TABLES.iter().enumerate() {
        let statement = transaction.prepare(&table.select("\"C\"")).await?;
        let portal = transaction.bind(&statement, &[]).await?;
        loop {
            let found =
                transaction.query_portal(&portal, i32::try_from(BATCH_ROWS).unwrap_or(i32::MAX)).await?;
            if found.is_empty() {
                break;
            }
            let cells = |row: &tokio_postgres::Row| {
                (0..table.columns.len()).map(|n| row.try_get(n)).collect::<Result<Row, _>>()
            };
            let rows: Vec<Row> = found.iter().map(cells).collect::<Result<_, _>>()?;
            rows.iter().try_for_each(|row| tally.add(idx, row))?;
            if let Some(batches) = batches {
                send(batches, RowBatch::Rows(idx, rows)).await?;
            }
        }
    }
    Ok(tally.finish())
}

/// Adds rows with one statement, in their order: an array for each column.
async fn insert_rows(transaction: &Transaction<'_>, table: &Table, rows: &[Row]) -> Result<(), StoreError> {
    let columns: Vec<Vec<Option<&str>>> = (0..table.columns.len())
        .map(|n| rows.iter().map(|row| row.get(n).and_then(Option::as_deref)).collect())
        .collect();
    let arrays: Vec<String> = (1..=columns.len()).map(|n| format!("${n}::text[]")).collect();
    let list = table.column_list();
    let sql = format!(
        "INSERT INTO {} ({list}) SELECT {list} FROM unnest({}) WITH ORDINALITY AS row ({list}, nth) ORDER BY nth",
        table.name,
        arrays.join(", ")
    );
    let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|it| it as &(dyn ToSql + Sync)).collect();
    transaction.execute(&sql, &columns).await?;
    Ok(())
}

/// Hands a batch on; nobody takes it when the other side has stopped.
async fn send(batches: &Sender<RowBatch>, batch: RowBatch) -> Result<(), StoreError> {
    batches.send(batch).await.map_err(|_| StoreError::CutShort)
}
