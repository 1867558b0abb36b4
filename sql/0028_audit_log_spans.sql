-- The audit log of a span of time: a page of an old month read all entries that are newer, 1.8 seconds for a million and a half.
--
-- Changes wait while the index is made: a second or two for a million entries.

CREATE INDEX audit_log_at_sequence ON audit_log (at, sequence);
DROP INDEX audit_log_at;
