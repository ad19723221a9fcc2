//! The workspaces that requests brought, and the epochs that refer to them.

use rusqlite::{OptionalExtension, Transaction, params};

use super::{Failure, SqliteStore};
use crate::columns::{row_limit, signed};
use crate::record::{self, Epoch};
use crate::workspace;
use crate::{Batch, StoreError, WorkspaceRecord, WorkspaceStore};

/// Removes workspaces that were last used before a time and that no epoch refers to.
const EXPIRE: &str = "DELETE FROM workspace WHERE used_at < ?1 \
    AND NOT EXISTS (SELECT 1 FROM workspace_use u WHERE u.digest = workspace.digest)";

impl WorkspaceStore for SqliteStore {
    fn put_workspace(&self, workspace: &WorkspaceRecord) -> Result<(), StoreError> {
        let WorkspaceRecord { digest, text } = workspace;
        self.write(|transaction| {
            transaction.execute(EXPIRE, [WorkspaceRecord::expiry()])?;
            let sql = "INSERT INTO workspace (digest, text, used_at) VALUES (?1, ?2, ?3) \
                ON CONFLICT (digest) DO UPDATE SET used_at = ?3";
            transaction.execute(sql, params![digest, text, record::now()])?;
            Ok(())
        })
    }

    fn workspace(&self, digest: &str) -> Result<Option<WorkspaceRecord>, StoreError> {
        let found = self.read(|connection| {
            let sql = "SELECT text, used_at FROM workspace WHERE digest = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            let row =
                statement.query_row([digest], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)));
            Ok(row.optional()?)
        })?;
        let Some((text, used_at)) = found else { return Ok(None) };
        // Not at every use: it would be a write for each turn.
        if used_at < record::now() - workspace::USE_STEP {
            self.write(|transaction| {
                let sql = "UPDATE workspace SET used_at = ?2 WHERE digest = ?1";
                transaction.execute(sql, params![digest, record::now()])?;
                Ok(())
            })?;
        }
        WorkspaceRecord { digest: digest.to_owned(), text }.checked().map(Some)
    }

    fn workspaces(&self, after: &str, most: usize) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT digest FROM workspace WHERE digest > ?1 ORDER BY digest LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![after, row_limit(most)], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn expire_workspaces(&self, before: i64) -> Result<u64, StoreError> {
        self.write(|transaction| Ok(transaction.execute(EXPIRE, [before])? as u64))
    }
}

/// Stores the reference of an epoch to its workspace, if it has one.
pub(super) fn refer(transaction: &Transaction<'_>, epoch: &Epoch) -> Result<(), Failure> {
    if let Some(digest) = epoch.workspace() {
        let sql = "INSERT INTO workspace_use (conversation, number, digest) VALUES (?1, ?2, ?3)";
        let values = params![epoch.head.conversation, signed(epoch.head.number), digest];
        transaction.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}

/// Compares the next workspaces with their digests. The last batch names epochs without theirs.
pub(super) fn check(store: &SqliteStore, after: &str, most: usize) -> Result<Batch, StoreError> {
    store.read(|connection| {
        let sql = "SELECT digest, text FROM workspace WHERE digest > ?1 ORDER BY digest LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![after, row_limit(most)])?;
        let mut batch = Batch::default();
        while let Some(row) = rows.next()? {
            let workspace = WorkspaceRecord { digest: row.get(0)?, text: row.get(1)? };
            batch.rows += 1;
            batch.last = Some(workspace.digest.clone());
            batch.found.extend(workspace.checked().err().map(|error| error.to_string()));
        }
        if batch.last.is_none() {
            let sql = "SELECT conversation, number, digest FROM workspace_use u WHERE NOT EXISTS \
                (SELECT 1 FROM workspace w WHERE w.digest = u.digest) ORDER BY conversation, number LIMIT ?1";
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query([row_limit(workspace::LISTED_MAX)])?;
            while let Some(row) = rows.next()? {
                let (conversation, number, digest): (String, i64, String) =
                    (row.get(0)?, row.get(1)?, row.get(2)?);
                batch.found.push(workspace::missing_workspace(&conversation, number, &digest));
            }
        }
        Ok(batch)
    })
}
