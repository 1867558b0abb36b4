import { describe, expect, it } from '@jest/globals';
import { SCOPES } from '../../src/permissions/scopes.ts';
import { grantOf, parseScopesMap } from '../../src/sign-in/scopes-map.ts';

describe('The map from values of a claim to scopes', () => {
  const map = parseScopesMap(
    JSON.stringify({
      reader: ['read-only'],
      writer: { scopes: ['keys:write'], onlyTags: ['b', 'a'] },
      creator: { scopes: ['keys:delete'], onlyTags: ['a', 'b'] },
      other: { scopes: ['keys:secret'], onlyTags: ['c'] },
      everything: ['all'],
    }),
  );

  it('unites what several values grant', () => {
    expect(grantOf(map, ['everything'])).toEqual({ scopes: SCOPES, onlyTags: [] });
    expect(grantOf(map, ['creator', 'unknown', 'writer'])).toEqual({
      scopes: ['keys:write', 'keys:delete'],
      onlyTags: ['a', 'b'],
    });
    expect(grantOf(map, ['unknown', '__proto__', 'toString'])).toBeUndefined();
    expect(grantOf(map, [])).toBeUndefined();
  });

  it('never makes a scope for some keys one for others', () => {
    expect(grantOf(map, ['reader', 'writer'])?.scopes).not.toContain('keys:write');
    expect(grantOf(map, ['other', 'writer'])).toEqual({ scopes: ['keys:write'], onlyTags: ['a', 'b'] });
  });

  it('is read in the order of its text, also where names are numbers', () => {
    const own = (tag: string) => `{"scopes": ["keys:read"], "onlyTags": ["${tag}"]}`;
    const text = `{
      "team-b": ${own('team:b')}, "1001": ${own('team:1001')}, "a\\"}:": ${own('team:quote')},
      "7": ${own('team:seven')}, "team-b": ${own('team:last')}
    }`;
    const numbered = parseScopesMap(text);
    expect([...numbered.keys()]).toEqual(['team-b', '1001', 'a"}:', '7']);
    expect(grantOf(numbered, ['1001', 'team-b'])?.onlyTags).toEqual(['team:last']);
    expect(grantOf(numbered, ['7', '1001'])?.onlyTags).toEqual(['team:1001']);
  });

  it.each([
    '',
    '[]',
    '{}',
    'null',
    '{"a":[]}',
    '{"a":["keys:read","x"]}',
    '{"a":"all"}',
    '{"a":{"scopes":["all"],"tags":["a"]}}',
    '{"a":{"scopes":["all"],"onlyTags":["A B"]}}',
    '{"a":["toString"]}',
  ])('is rejected if it is %j', (text) => {
    expect(() => parseScopesMap(text)).toThrow(/must|may/);
  });
});
