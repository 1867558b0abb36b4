-- Responses to requests with an Idempotency-Key, written in the transaction of the change that they tell of.

CREATE TABLE idempotent_responses (
  -- SHA-256 of the credential and the key.
  id bytea PRIMARY KEY CHECK (octet_length(id) = 32),
  created_at timestamptz(3) NOT NULL,
  -- The response, and a digest of its request: sealed, because it may hold a secret.
  sealed bytea NOT NULL
);

CREATE INDEX idempotent_responses_created_at ON idempotent_responses (created_at);
