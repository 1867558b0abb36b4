-- Who makes many changes at once has the time to publish them, before other replicas take them for left behind.

CREATE OR REPLACE FUNCTION note_changed_records() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  -- A second is left for each change in any case: see PostgresRecordChanges. A plan changes all of its keys.
  INSERT INTO record_changes (kind, id, version, is_deleted, transaction, changed_at, claimed_until)
    SELECT TG_ARGV[0], now_rows.id, now_rows.version, false, pg_current_xact_id(), clock_timestamp(),
        CASE WHEN TG_ARGV[0] = 'plan' THEN clock_timestamp() + interval '3 s'
          WHEN count(*) OVER () > 100 THEN clock_timestamp() + count(*) OVER () * interval '1 ms' END
      FROM now_rows JOIN old_rows ON old_rows.id = now_rows.id WHERE now_rows.version <> old_rows.version
    ON CONFLICT (kind, id) DO UPDATE SET version = EXCLUDED.version, is_deleted = false, transaction = EXCLUDED.transaction,
      changed_at = EXCLUDED.changed_at, published_at = NULL, claimed_until = EXCLUDED.claimed_until; --
  RETURN NULL; --
END $$;
