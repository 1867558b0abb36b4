import { describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type CloudEvent, HTTP } from 'cloudevents';
import fc from 'fast-check';
import { AUDIT_ACTIONS } from '../../src/audit/audit-entry.ts';
import { HEARD_TYPES, hears, patternFault, scopesOf } from '../../src/events/event-patterns.ts';
import { EVENT_TYPES } from '../../src/events/event-types.ts';
import { cloudEventText, eventOfEntry } from '../../src/events/outbox-event.ts';
import { TYPES_OF_ACTIONS } from '../../src/events/types-of-actions.ts';

const ENTRY = {
  sequence: 42,
  atMs: Date.UTC(2026, 1, 3, 4, 5, 6, 789),
  action: 'key.update',
  actor: { type: 'token', id: 'adm_1', name: 'Support' },
  target: { type: 'key', id: 'key_1', name: 'Mobile app', tags: ['eu'] },
  changesText: '{"enabled":{"from":true,"to":false}}',
  reason: null,
  requestId: 'r',
  address: '127.0.0.1',
  outcome: 'success',
  jobId: null,
} as const;

const HASH = Buffer.from('0102030405ff0708', 'hex');

describe('the event of an audited change', () => {
  const changes = AUDIT_ACTIONS.filter((action) => TYPES_OF_ACTIONS[action] !== null);

  it.each(changes)('%s is a valid CloudEvent with data as its type declares', (action) => {
    const event = eventOfEntry({ ...ENTRY, action }, HASH);
    if (event === undefined) throw new Error('there is no event');
    const text = cloudEventText(event, '/tollgate');
    const parsed = HTTP.toEvent({
      headers: { 'content-type': 'application/cloudevents+json' },
      body: text,
    }) as CloudEvent<object>;
    expect(parsed.validate()).toBe(true);
    expect(parsed.type).toBe(TYPES_OF_ACTIONS[action]);
    const { data } = EVENT_TYPES[TYPES_OF_ACTIONS[action] ?? 'tollgate.key.updated'];
    const validate = new Ajv2020({ validateFormats: false }).compile(data);
    expect([validate(parsed.data), validate.errors]).toEqual([true, null]);
  });

  it('says what its entry says', () => {
    const event = eventOfEntry(ENTRY, HASH);
    if (event === undefined) throw new Error('there is no event');
    expect(JSON.parse(cloudEventText(event, '/tollgate'))).toEqual({
      specversion: '1.0',
      id: 'aud_0000000000000042_0102030405ff',
      source: '/tollgate',
      type: 'tollgate.key.updated',
      subject: 'key_1',
      time: '2026-02-03T04:05:06.789Z',
      datacontenttype: 'application/json',
      data: {
        changes: { enabled: { from: true, to: false } },
        actor: { type: 'token', adminTokenId: 'adm_1', name: 'Support' },
        reason: null,
        auditId: 'aud_0000000000000042',
      },
    });
  });

  it('does not exist where nothing changed', () => {
    const silent = ['key.find', 'key.show-secret', 'request.deny'] as const;
    expect(silent.map((action) => eventOfEntry({ ...ENTRY, action }, HASH))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('a pattern', () => {
  it('needs the scopes of all types that it selects', () => {
    expect(scopesOf(['tollgate.key.*'])).toEqual(['keys:read']);
    expect(scopesOf(['tollgate.admin_token.*'])).toEqual(['audit:read']);
    expect(scopesOf(['*']).toSorted()).toEqual(['audit:read', 'keys:read', 'usage:read']);
  });

  it('never hears a type whose scope it does not need', () => {
    const cut = fc
      .tuple(fc.constantFrom(...HEARD_TYPES), fc.nat(30))
      .map(([type, length]) => `${type.slice(0, length)}*`);
    fc.assert(
      fc.property(fc.array(fc.oneof(cut, fc.constantFrom(...HEARD_TYPES)), { maxLength: 4 }), (events) => {
        const heard = HEARD_TYPES.filter((type) => hears({ events, onlyTags: [] }, { type, tags: [] }));
        const scopes = scopesOf(events);
        expect(heard.every((type) => scopes.includes(EVENT_TYPES[type].scope))).toBe(true);
      }),
    );
  });

  it('that selects nothing is a fault with the nearest type', () => {
    expect(patternFault('tollgate.key.create')).toContain('"tollgate.key.created"');
    expect(patternFault('tollgate.keys.*')).toContain('unknown');
    expect(patternFault('tollgate.webhook.test')).toContain('unknown');
    expect(patternFault('tollgate.*')).toBeUndefined();
  });
});
