-- What is needed to bring admin tokens under another encryption key, and to give older keys the hint of their secret.
--
-- The version before knows no admin tokens, and writes keys without a hint; they get it later.

-- SHA-256 of the secrets, encrypted: look-ups of tokens made before are by an HMAC of the secret itself, and have none.
ALTER TABLE admin_tokens ADD COLUMN sealed_digest bytea, ADD COLUMN previous_sealed_digest bytea;

-- Few or none, once they have their hint.
CREATE INDEX consumer_keys_without_hint ON consumer_keys (id) WHERE secret_hint IS NULL AND sealed_secret IS NOT NULL;
