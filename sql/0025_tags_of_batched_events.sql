-- A batch is sent without those of its events that its webhook does not subscribe to any more.
--
-- The version before makes batches without these tags: they are sent or cancelled as a whole.

-- Of a batch: the tags of each of its events, as JSON, in their order. Null: it is no batch, or was made by the version before.
ALTER TABLE webhook_deliveries ADD COLUMN event_tags text;
