-- Which keys and plans were changed lately: what replicas must learn of, also while Redis is away. Written by triggers, and so in the
-- transaction of the change.

CREATE TABLE record_changes (
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('key', 'plan')),
  -- One row for a record, however often it changes.
  id text COLLATE "C" NOT NULL,
  -- Of the record, after the change; before it where the record is deleted.
  version bigint NOT NULL,
  is_deleted boolean NOT NULL,
  -- The last one that changed the record. Numbers are given in another order than that of the commits: see PostgresRecordChanges.
  transaction xid8 NOT NULL,
  changed_at timestamptz(3) NOT NULL,
  -- Null: Redis does not have the change yet.
  published_at timestamptz(3),
  -- Until then, or since then, a replica has tried to publish it.
  claimed_until timestamptz(3),
  PRIMARY KEY (kind, id)
);

CREATE INDEX record_changes_transaction ON record_changes (transaction);
CREATE INDEX record_changes_waiting ON record_changes (changed_at) WHERE published_at IS NULL;

-- A single row: when published changes were last marked for being published again, because Redis may have lost them.
CREATE TABLE record_changes_repeated (
  at timestamptz(3) NOT NULL
);

INSERT INTO record_changes_repeated (at) VALUES (to_timestamp(0));

CREATE FUNCTION note_changed_records() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO record_changes (kind, id, version, is_deleted, transaction, changed_at)
    SELECT TG_ARGV[0], now_rows.id, now_rows.version, false, pg_current_xact_id(), clock_timestamp()
      FROM now_rows JOIN old_rows ON old_rows.id = now_rows.id WHERE now_rows.version <> old_rows.version
    ON CONFLICT (kind, id) DO UPDATE SET version = EXCLUDED.version, is_deleted = false, transaction = EXCLUDED.transaction,
      changed_at = EXCLUDED.changed_at, published_at = NULL, claimed_until = NULL; --
  RETURN NULL; --
END $$;

CREATE FUNCTION note_deleted_keys() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO record_changes (kind, id, version, is_deleted, transaction, changed_at)
    SELECT 'key', id, version, true, pg_current_xact_id(), clock_timestamp() FROM old_rows
    ON CONFLICT (kind, id) DO UPDATE SET version = EXCLUDED.version, is_deleted = true, transaction = EXCLUDED.transaction,
      changed_at = EXCLUDED.changed_at, published_at = NULL, claimed_until = NULL; --
  RETURN NULL; --
END $$;

CREATE TRIGGER note_changed_keys AFTER UPDATE ON consumer_keys
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS now_rows
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_records('key');

CREATE TRIGGER note_deleted_keys AFTER DELETE ON consumer_keys
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_keys();

CREATE TRIGGER note_changed_plans AFTER UPDATE ON plans
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS now_rows
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_records('plan');
