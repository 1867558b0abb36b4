-- Endpoints that events are sent to, and what is sent to them.
--
-- The version before knows nothing of these tables: it sends nothing.

CREATE TABLE webhooks (
  id text COLLATE "C" PRIMARY KEY,
  url text NOT NULL CHECK (char_length(url) BETWEEN 1 AND 2048),
  -- Types, or the beginning of types with * at its end.
  events text[] NOT NULL,
  only_tags text[] NOT NULL DEFAULT '{}',
  description text NOT NULL DEFAULT '',
  enabled boolean NOT NULL,
  batch boolean NOT NULL,
  header_names text[] NOT NULL DEFAULT '{}',
  -- The names and values of the headers, as JSON, encrypted. Null: there are none.
  sealed_headers bytea,
  sealed_secret bytea NOT NULL,
  secret_hint text NOT NULL,
  -- The secret before, which also signs until then.
  previous_sealed_secret bytea,
  previous_valid_until timestamptz(3),
  -- Why the gateway disabled it: gone, failing.
  disabled_reason text,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  -- Grows by one with every change.
  version bigint NOT NULL DEFAULT 1,
  -- The last event that was considered for it.
  last_event bigint NOT NULL,
  -- The last event before it was disabled, which it still hears. Null: it is enabled.
  heard_until bigint,
  -- Since when every attempt has failed. Null: the last attempt succeeded.
  failing_since timestamptz(3),
  CHECK ((previous_sealed_secret IS NULL) = (previous_valid_until IS NULL))
) WITH (fillfactor = 50);

CREATE TABLE webhook_deliveries (
  -- The webhook-id of every attempt.
  id text COLLATE "C" PRIMARY KEY,
  -- No foreign key: those of a deleted webhook, which may be a million, are removed in parts.
  webhook_id text COLLATE "C" NOT NULL,
  created_at timestamptz(3) NOT NULL,
  event_type text COLLATE "C" NOT NULL,
  event_ids text[] NOT NULL,
  -- Those that all events of it have.
  tags text[] NOT NULL,
  is_batch boolean NOT NULL,
  -- One CloudEvent, or a batch of them, as JSON.
  body text NOT NULL,
  -- pending, succeeded, failed or cancelled.
  status text NOT NULL,
  -- When the next attempt is due. Null: there is none.
  next_attempt_at timestamptz(3),
  ended_at timestamptz(3),
  -- Since the delivery was made or sent again.
  tries integer NOT NULL DEFAULT 0,
  -- A JSON list of the last attempts, oldest first.
  attempts text NOT NULL DEFAULT '[]',
  CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL)),
  CHECK ((status = 'pending') = (ended_at IS NULL))
);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_attempt_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_webhook_id ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_ended_at ON webhook_deliveries (status, ended_at) WHERE ended_at IS NOT NULL;

-- Work that only one replica does at a time.
CREATE TABLE leases (
  name text PRIMARY KEY,
  holder text NOT NULL,
  -- By the clock of this database.
  held_until timestamptz(3) NOT NULL
);
