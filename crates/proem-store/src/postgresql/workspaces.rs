//! The workspaces that requests brought, and the epochs that refer to them.

use tokio_postgres::types::Type;

use super::link::Link;
use super::{Failure, PostgresStore};
use crate::columns::{row_limit, signed};
use crate::record::{self, Epoch};
use crate::workspace;
use crate::{Batch, StoreError, WorkspaceRecord, WorkspaceStore};

/// Removes workspaces that were last used before a time and that no epoch refers to. A row that is used meanwhile is locked
/// by its user and is judged again.
const EXPIRE: &str = "DELETE FROM proem_workspace w WHERE used_at < $1 \
    AND NOT EXISTS (SELECT 1 FROM proem_workspace_use u WHERE u.digest = w.digest)";

impl WorkspaceStore for PostgresStore {
    fn put_workspace(&self, workspace: &WorkspaceRecord) -> Result<(), StoreError> {
        let WorkspaceRecord { digest, text } = workspace;
        let now = record::now();
        self.run(|transaction| {
            transaction.execute_typed(EXPIRE, &[(&WorkspaceRecord::expiry(), Type::INT8)])?;
            let sql = "INSERT INTO proem_workspace (digest, text, used_at) VALUES ($1, $2, $3) \
                ON CONFLICT (digest) DO UPDATE SET used_at = $3";
            transaction
                .execute_typed(sql, &[(digest, Type::TEXT), (text, Type::TEXT), (&now, Type::INT8)])?;
            Ok(())
        })
    }

    fn workspace(&self, digest: &str) -> Result<Option<WorkspaceRecord>, StoreError> {
        let (now, before) = (record::now(), record::now() - workspace::USE_STEP);
        let sql = "SELECT text, used_at FROM proem_workspace WHERE digest = $1";
        let found = self.run(|transaction| transaction.query_typed_opt(sql, &[(&digest, Type::TEXT)]))?;
        let Some(row) = found else { return Ok(None) };
        // Not at every use: it would be a write for each turn.
        if row.get::<_, i64>(1) < before {
            let sql = "UPDATE proem_workspace SET used_at = $2 WHERE digest = $1";
            self.run(|transaction| {
                transaction.execute_typed(sql, &[(&digest, Type::TEXT), (&now, Type::INT8)])?;
                Ok(())
            })?;
        }
        WorkspaceRecord { digest: digest.to_owned(), text: row.get(0) }.checked().map(Some)
    }

    fn workspaces(&self, after: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT digest FROM proem_workspace WHERE digest > $1 ORDER BY digest LIMIT $2";
        let rows = self.rows_after(sql, after, most)?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn expire_workspaces(&self, before: i64) -> Result<u64, StoreError> {
        self.run(|transaction| transaction.execute_typed(EXPIRE, &[(&before, Type::INT8)]))
    }
}

/// Stores the reference of an epoch to its workspace, if it has one.
pub(super) fn refer(transaction: &mut Link, epoch: &Epoch) -> Result<(), Failure> {
    if let Some(digest) = epoch.workspace() {
        let sql = "INSERT INTO proem_workspace_use (conversation, number, digest) VALUES ($1, $2, $3) \
            ON CONFLICT DO NOTHING";
        let number = signed(epoch.head.number);
        transaction.execute_typed(
            sql,
            &[(&epoch.head.conversation, Type::TEXT), (&number, Type::INT8), (&digest, Type::TEXT)],
        )?;
    }
    Ok(())
}

/// Compares the next workspaces with their digests. The last batch names epochs without theirs.
pub(super) fn check(store: &PostgresStore, after: &str, most: usize) -> Result<Batch, StoreError> {
    let sql = "SELECT digest, text FROM proem_workspace WHERE digest > $1 ORDER BY digest LIMIT $2";
    let rows = store.rows_after(sql, after, most)?;
    let records = rows.iter().map(|row| WorkspaceRecord { digest: row.get(0), text: row.get(1) });
    let mut found: Vec<String> =
        records.filter_map(|workspace| workspace.checked().err()).map(|error| error.to_string()).collect();
    if rows.is_empty() {
        let sql = "SELECT conversation, number, digest FROM proem_workspace_use u WHERE NOT EXISTS \
            (SELECT 1 FROM proem_workspace w WHERE w.digest = u.digest) ORDER BY conversation, number LIMIT $1";
        let most = row_limit(workspace::LISTED_MAX);
        let rows = store.run(|transaction| transaction.query_typed(sql, &[(&most, Type::INT8)]))?;
        found.extend(rows.iter().map(|row| workspace::missing_workspace(row.get(0), row.get(1), row.get(2))));
    }
    Ok(Batch { rows: rows.len() as u64, last: rows.last().map(|row| row.get(0)), found })
}
