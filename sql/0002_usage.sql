-- What consumer keys were used for.
--
-- Every table has the same four counts. Failed requests are those that were not successful; the mean response time is
-- forwarded_us / forwarded. The endpoints, the customers and the hours of a key each sum to its totals; hours only as far as they
-- are kept. All goes with the key.

CREATE TABLE usage_totals (
  key_id text COLLATE "C" PRIMARY KEY REFERENCES consumer_keys (id) ON DELETE CASCADE,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  -- Microseconds.
  forwarded_us bigint NOT NULL,
  -- Id of the batch that was added last. Ids of a key's batches grow: a batch whose id is not above this one is in.
  last_batch bigint NOT NULL,
  -- Names in the two lists, without __other__, so that the caps can be held without counting rows.
  endpoints integer NOT NULL DEFAULT 0,
  customers integer NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

CREATE TABLE usage_by_endpoint (
  key_id text COLLATE "C" NOT NULL REFERENCES usage_totals (key_id) ON DELETE CASCADE,
  name text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  forwarded_us bigint NOT NULL,
  PRIMARY KEY (key_id, name)
) WITH (fillfactor = 70);

CREATE TABLE usage_by_customer (
  key_id text COLLATE "C" NOT NULL REFERENCES usage_totals (key_id) ON DELETE CASCADE,
  name text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  forwarded_us bigint NOT NULL,
  PRIMARY KEY (key_id, name)
) WITH (fillfactor = 70);

CREATE TABLE usage_by_hour (
  key_id text COLLATE "C" NOT NULL REFERENCES usage_totals (key_id) ON DELETE CASCADE,
  -- Its first instant.
  hour timestamptz(0) NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  forwarded bigint NOT NULL,
  forwarded_us bigint NOT NULL,
  PRIMARY KEY (key_id, hour)
) WITH (fillfactor = 70);

-- For removing the hours that are no longer kept.
CREATE INDEX usage_by_hour_hour ON usage_by_hour (hour);
