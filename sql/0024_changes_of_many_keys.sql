-- The rows before and after a change of thousands of keys are joined by hashes. A session that had changed single keys before kept a plan
-- for one row, which compared each of the thousands with all others.
ALTER FUNCTION note_changed_records() SET enable_nestloop = off;
