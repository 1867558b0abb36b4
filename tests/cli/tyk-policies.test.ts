import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readTyk } from '../../src/cli/commands/import/read-tyk.ts';

const SAMPLES = resolve('tests/cli/samples');

/** A key with some of the policies that Tyk tests with (`internal/policy/apply_test.go`), as the import reads it. */
function keyWith(policies: readonly string[], session: object = {}) {
  const row = { key: 'a-key-of-tyk', session: { org_id: '', apply_policies: policies, ...session } };
  const options = { hashed: false, policies: sample('tyk-policies.json'), nowMs: 0 };
  const { keys, leftOut } = readTyk(row, options);
  return { ...keys[0], left: leftOut.map(({ what }) => what) };
}

function sample(name: string): object {
  return JSON.parse(readFileSync(join(SAMPLES, name), 'utf8'));
}

describe("Tyk's own policies", () => {
  const quota = { name: 'quota', limit: 5000, period: '3600s' };
  it.each([
    { of: ['rate1'], limits: [{ name: 'rate', limit: 3, period: '1s' }], left: [] },
    { of: ['rate1', 'rate2'], limits: [{ name: 'rate', limit: 4, period: '1s' }], left: [] },
    { of: ['rate4', 'rate5'], limits: [{ name: 'rate', limit: 10, period: '1s' }], left: [] },
    { of: ['rate-no-partition'], limits: [{ name: 'rate', limit: 12, period: '1s' }], left: [] },
    { of: ['quota1', 'rate3'], limits: [{ name: 'rate', limit: 4, period: '4s' }], left: ['quota'] },
    { of: ['unlimited-rate'], limits: [], left: [] },
    { of: ['unlimited-quota'], limits: [], left: [] },
    {
      of: ['per_api_with_api_d'],
      limits: [{ name: 'rate', limit: 200, period: '10s' }, quota],
      left: ['limit'],
    },
    {
      of: ['per_api_with_api_d', 'per_api_with_higher_rate_on_api_d'],
      limits: [{ name: 'rate', limit: 200, period: '10s' }, quota],
      left: ['limit'],
    },
    {
      of: ['per_api_with_limit_set_from_policy'],
      limits: [{ name: 'rate', limit: 300, period: '1s' }],
      left: ['access_rights', 'limit'],
    },
    { of: ['per-path2'], limits: [], left: ['allowed_urls'] },
    { of: ['throttle1'], limits: [], left: ['throttle'] },
  ])('give a key the limits that Tyk gives it, or say what is left: $of', ({ of, limits, left }) => {
    expect(keyWith(of)).toMatchObject({ limits, left });
  });

  it('add their tags to those of the key', () => {
    const { tags } = keyWith(['tags1', 'tags2'], { tags: ['key-tag'] });
    expect(tags).toEqual(['key-tag', 'tagA', 'tagX', 'tagY']);
  });

  it.each([
    { of: ['tags1', 'inactive1'], enabled: false },
    { of: ['inactive1', 'inactive2'], enabled: false },
    { of: ['tags1', 'tags2'], enabled: true },
  ])('disable a key if one of them is inactive: $of', ({ of, enabled }) => {
    expect(keyWith(of)).toMatchObject({ enabled });
  });
});

describe('A quota that is never renewed', () => {
  const used = { quota_max: 9, quota_remaining: 0, quota_renewal_rate: 0 };
  it.each([
    { of: [], session: used, enabled: false, left: ['quota', 'quota'] },
    { of: ['quota1'], session: used, enabled: true, left: ['quota'] },
    { of: [], session: { ...used, quota_remaining: 1 }, enabled: true, left: ['quota'] },
    { of: ['unlimited-quota'], session: used, enabled: true, left: [] },
    { of: [], session: { ...used, quota_renewal_rate: 60 }, enabled: true, left: [] },
    { of: [], session: { ...used, quota_max: 0 }, enabled: true, left: [] },
  ])('disables a key once it is used up, and no other one: $of $session', ({ of, session, ...key }) => {
    expect(keyWith(of, session)).toMatchObject(key);
  });
});

it("reads a session of Tyk's own tests", () => {
  const limits = [{ name: 'rate', limit: 1, period: '6000s' }];
  expect(keyWith([], sample('tyk-session.json'))).toMatchObject({ limits, enabled: true, left: [] });
});
