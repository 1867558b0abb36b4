-- What happened, for the systems around the gateway.
--
-- The version before knows nothing of this table: its changes make no events.

-- The lock that puts the audit log in order puts the events in order as well.
ALTER TABLE audit_log_ends
  -- The number of the last event.
  ADD COLUMN last_event bigint NOT NULL DEFAULT 0,
  -- Whether a webhook is enabled.
  ADD COLUMN has_webhooks boolean NOT NULL DEFAULT false,
  -- A stream that was open before may be continued until then.
  ADD COLUMN streamed_until timestamptz(3);

-- Written in the transaction of the change, and only while there is a webhook or a stream.
CREATE TABLE events (
  -- Without gaps, in the order of commits.
  sequence bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  subject text NOT NULL,
  at timestamptz(3) NOT NULL,
  -- Of the record that it is about.
  tags text[] NOT NULL,
  -- JSON.
  data text NOT NULL
);
