-- The list of deliveries of a webhook, with its filters: newest first of each type and status.
--
-- It also does what the index on the webhook and the id did for the version before.

CREATE INDEX webhook_deliveries_list ON webhook_deliveries (webhook_id, event_type, status, id);
DROP INDEX webhook_deliveries_webhook_id;
