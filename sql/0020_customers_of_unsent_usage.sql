-- What the customers of a key used in an hour that is in no event yet.
--
-- The version before knows nothing of this: customers of usage that it moves are in no event.

-- Rows go with those of usage_unsent, whose locks they share. Names are those of usage_customer_days.
CREATE TABLE usage_unsent_customers (
  hour timestamptz(0) NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  customer_id text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  rate_limited bigint NOT NULL,
  units bigint NOT NULL,
  bytes_in bigint NOT NULL,
  bytes_out bigint NOT NULL,
  PRIMARY KEY (hour, key_id, customer_id)
) WITH (fillfactor = 70);
