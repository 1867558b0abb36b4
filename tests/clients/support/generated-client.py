"""Manages plans and keys with the client that openapi-python-client has made of docs/openapi.json. Prints what it got, as JSON."""

import json
import os

from tollgate_management_interface_client import AuthenticatedClient
from tollgate_management_interface_client import models
from tollgate_management_interface_client.api.administration import list_audit_log, whoami
from tollgate_management_interface_client.api.keys import (
    create_consumer_key,
    list_consumer_keys,
    rotate_consumer_key,
    show_consumer_key,
    show_key_limits,
)
from tollgate_management_interface_client.api.plans import create_rate_limit, show_rate_limit

client = AuthenticatedClient(base_url=os.environ["TOLLGATE_URL"], token=os.environ["TOLLGATE_TOKEN"])


def parsed(response, expected):
    """The body as the document describes it; a body of another form, or another status, is an error."""
    assert isinstance(response.parsed, expected), (response.status_code, response.content)
    return response.parsed


plan = models.CreateRateLimitRequest.from_dict(
    {
        "rateLimitId": "generated",
        "description": "By a generated client",
        "limit": 5,
        "period": "minute",
        "costs": [
            {"path": "/search", "cost": 3},
            {"path": "/jobs/**", "cost": "response", "reserve": 2},
        ],
    }
)
parsed(create_rate_limit.sync_detailed(client=client, body=plan), models.CreatedRateLimit)
again = parsed(
    create_rate_limit.sync_detailed(client=client, body=plan), models.IdempotencyInProgressOrPlanExistsError
)
shown = parsed(show_rate_limit.sync_detailed("generated", client=client), models.RateLimit)
created = parsed(
    create_consumer_key.sync_detailed(
        client=client, body=models.CreateConsumerKeyRequest(name="Ada", rate_limit_id="generated", tags=["eu", "paid"])
    ),
    models.CreatedConsumerKey,
)
listed = parsed(
    list_consumer_keys.sync_detailed(client=client, tag=["eu", "paid"], count=models.ListConsumerKeysCount.TRUE),
    models.ListConsumerKeysResponse,
)
detail = parsed(show_consumer_key.sync_detailed(created.id, client=client), models.ConsumerKeyDetail)
limits = parsed(show_key_limits.sync_detailed(created.id, client=client), models.KeyLimits)
rotated = parsed(
    rotate_consumer_key.sync_detailed(
        created.id, client=client, body=models.RotateConsumerKeyRequest(grace_seconds=60)
    ),
    models.RotatedConsumerKey,
)
entries = parsed(list_audit_log.sync_detailed(client=client, limit=1), models.ListAuditLogResponse)
print(
    json.dumps(
        {
            "again": [again.code, again.error],
            "costs": [cost.cost for cost in shown.costs],
            "listed": [[key.name, key.tags] for key in listed.api_keys],
            "total": listed.total,
            "createdAt": detail.created_at.isoformat(),
            "limit": limits.limits[0].remaining,
            "secrets": [created.secret, rotated.secret],
            "audited": entries.entries[0].action,
            "scopes": len(parsed(whoami.sync_detailed(client=client), models.Whoami).scopes),
        }
    )
)
