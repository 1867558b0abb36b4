-- The audit log of a span of time: a page of an old month read all entries that are newer, 1.8 seconds for a million and a half.
--
-- Changes and reads of the log wait while the index is made: a second or two for a million entries. The old one is dropped first, which takes
-- the lock that both need: a replica that removes old entries meanwhile could otherwise wait for the migration while that waits for it.

DROP INDEX audit_log_at;
CREATE INDEX audit_log_at_sequence ON audit_log (at, sequence);
