-- Until when the author of a job may make its changes, where nothing can be asked later: a program's access token ends at this instant.
-- Null: the author is looked up with each key, or is root.
--
-- The version before knows nothing of it, and goes on with such a job.
ALTER TABLE jobs ADD COLUMN allowed_until timestamptz(3);
