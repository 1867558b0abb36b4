-- Webhooks in a configuration: by what it finds them again, who manages them, and the digest of the state in which it left them.
--
-- The version before changes none of these columns.

ALTER TABLE webhooks
  ADD COLUMN external_id text COLLATE "C" CHECK (char_length(external_id) BETWEEN 1 AND 128),
  ADD COLUMN managed_by text,
  ADD COLUMN managed_digest bytea;
