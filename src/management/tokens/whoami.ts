import { PATH_CASES } from '../../paths/path-readings.ts';
import { SCOPES } from '../../permissions/scopes.ts';
import { isoSecondsOrNull } from '../../platform/timestamps.ts';
import type { Endpoint } from '../endpoint.ts';
import { COUNT, INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';

/** Shows the principal of the credential and its scopes, and facts about the gateway for the console. */
export const showWhoami: Endpoint = {
  method: 'get',
  path: '/tollgate/whoami',
  operationId: 'whoami',
  summary: 'Show whose credential this is, and what it may do',
  scope: null,
  status: 200,
  response: named(
    'Whoami',
    objectOf({
      type: { type: 'string', enum: ['root', 'token', 'person', 'program'] },
      adminTokenId: orNull(TEXT),
      sessionId: { ...orNull(TEXT), description: 'Of a person who has signed in.' },
      name: TEXT,
      subject: { ...orNull(TEXT), description: 'As the identity provider knows a person or a program.' },
      email: orNull(TEXT),
      scopes: listOf({ type: 'string', enum: SCOPES }),
      onlyTags: listOf(TEXT),
      expiresAt: orNull(INSTANT),
      version: { ...TEXT, description: 'Of the gateway.' },
      settings: named(
        'GatewaySettings',
        objectOf({
          keyPrefix: TEXT,
          secretReveal: { type: 'string', enum: ['always', 'once'] },
          defaultPlanId: { ...orNull(TEXT), description: 'Null: keys without a plan are unlimited.' },
          customerIdHeader: TEXT,
          pathCase: { type: 'string', enum: PATH_CASES },
          usageRetentionDays: COUNT,
          usageDailyRetentionDays: COUNT,
          auditRetentionDays: COUNT,
          publicPort: {
            ...orNull(COUNT),
            description:
              'PORT, to which consumers send requests. Null: it is the port of the management interface too.',
          },
        }),
      ),
    }),
  ),
  errors: [],
  async handle({ principal }, { gateway }) {
    const { version, ...settings } = gateway;
    const { type, id, name, identity, scopes, onlyTags, expiresAtMs } = principal;
    return {
      type,
      adminTokenId: type === 'token' ? id : null,
      sessionId: type === 'person' ? id : null,
      name,
      subject: identity?.subject ?? null,
      email: identity?.email ?? null,
      scopes: [...scopes],
      onlyTags,
      expiresAt: isoSecondsOrNull(expiresAtMs),
      version,
      settings,
    };
  },
};
