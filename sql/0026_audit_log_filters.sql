-- The audit log by who is no token, person, program or key, and by the tags of what was changed: a page read the whole log for them.
--
-- Changes wait while the indexes are made: a second or two for a million entries.

CREATE INDEX audit_log_actor_type ON audit_log (actor_type, sequence) WHERE actor_type IN ('root', 'config');
CREATE INDEX audit_log_target_tags ON audit_log USING gin (target_tags) WHERE target_tags <> '{}';
