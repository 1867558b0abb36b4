-- To see whether a previous secret came from outside, as with present ones: each request with an unknown key asks, and read the whole table.
--
-- Rotations wait while the index is made: a fraction of a second for a million rows.

CREATE INDEX previous_secrets_origin ON previous_secrets (origin) WHERE origin <> 'generated';
