import { describe, expect, it } from '@jest/globals';
import { ManagementFault } from '../../../src/client/management-fault.ts';
import {
  bodyOfDraft,
  changesOf,
  draftOf,
  messageFor,
} from '../../../src/console/pages/webhooks/webhook-draft.ts';
import { WEBHOOK } from './support/records.ts';

const SAVED = { ...WEBHOOK, onlyTags: ['eu'], headers: { authorization: '***' } };

function faultOf(body: object): ManagementFault {
  return new ManagementFault(new Response(null, { status: 400 }), body);
}

describe('the form of a webhook', () => {
  it('sends only what was changed, and never the asterisks of a header', () => {
    const draft = draftOf(SAVED);
    expect(changesOf(SAVED, draft)).toEqual({});
    expect(changesOf(SAVED, { ...draft, url: ' https://example.org/ ', onlyTags: 'eu, paid' })).toEqual({
      url: 'https://example.org/',
      onlyTags: ['eu', 'paid'],
    });
    const headers = [
      { name: 'Authorization ', value: 'Bearer x' },
      { name: '', value: '' },
    ];
    expect(changesOf(SAVED, { ...draft, headers })).toEqual({ headers: { Authorization: 'Bearer x' } });
    expect(changesOf(SAVED, { ...draft, headers: [] })).toEqual({ headers: {} });
    expect(changesOf(WEBHOOK, draftOf(WEBHOOK))).toEqual({});
  });

  it('sends each header that has a name or a value, so that the gateway can say what is wrong', () => {
    const draft = { ...draftOf(WEBHOOK), headers: [{ name: '', value: 'x' }] };
    expect(bodyOfDraft(draft).headers).toEqual({ '': 'x' });
  });

  it.each([
    [
      'url',
      { code: 'webhook_url_not_allowed', error: 'The url must begin with https://.' },
      'The url must begin with https://.',
    ],
    [
      'events',
      { code: 'invalid_body', errors: [{ field: 'events[0]', message: 'The event type "x" is unknown.' }] },
      'The event type "x" is unknown.',
    ],
    [
      'events',
      { code: 'invalid_body', errors: [{ field: 'events', message: 'must be a list' }] },
      'It must be a list.',
    ],
    [
      'onlyTags',
      { code: 'invalid_body', errors: [{ field: 'onlyTags[1]', message: 'must be lower case' }] },
      'Entry 2 must be lower case.',
    ],
    [
      'headers',
      { code: 'invalid_body', errors: [{ field: 'headers.host', message: 'is set by the gateway' }] },
      'host is set by the gateway.',
    ],
    ['url', { code: 'invalid_body', errors: [{ field: 'urls', message: 'is unknown' }] }, undefined],
  ] as const)('says beside %s what the gateway says of it', (field, body, message) => {
    expect(messageFor(faultOf(body), field)).toBe(message);
  });
});
