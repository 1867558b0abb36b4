-- The last configuration of each owner that was applied: one that has not changed since is not applied again at a start.
CREATE TABLE applied_configurations (
  owner text COLLATE "C" PRIMARY KEY,
  -- SHA-256 of the configuration and of how it was applied.
  digest bytea NOT NULL,
  applied_at timestamptz(3) NOT NULL
);
