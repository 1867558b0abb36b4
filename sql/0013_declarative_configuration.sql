-- Which configuration manages a plan or a key, and in which state it left it.
--
-- The version before knows nothing of these columns: what it changes is no longer in the state that was noted, and so counts as changed elsewhere.

ALTER TABLE plans
  -- Null: made through the API.
  ADD COLUMN managed_by text COLLATE "C",
  -- SHA-256 of what the configuration says of it, see src/desired-state/written-state.ts.
  ADD COLUMN managed_digest bytea;

ALTER TABLE consumer_keys
  ADD COLUMN managed_by text COLLATE "C",
  ADD COLUMN managed_digest bytea;

CREATE INDEX consumer_keys_managed_by ON consumer_keys (managed_by, id) WHERE managed_by IS NOT NULL;

-- The last configuration of each owner that was applied: one that has not changed since is not applied again at a start.
CREATE TABLE applied_configurations (
  owner text COLLATE "C" PRIMARY KEY,
  -- SHA-256 of the configuration and of how it was applied.
  digest bytea NOT NULL,
  applied_at timestamptz(3) NOT NULL
);
