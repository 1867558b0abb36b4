import { expect, it } from '@jest/globals';
import { PRESETS, SCOPE_WORDS } from '../../../src/console/pages/tokens/scope-words.ts';
import { PRESETS as PRESETS_OF_GATEWAY, SCOPES } from '../../../src/permissions/scopes.ts';

it('the presets of the console have the scopes of those of the gateway', () => {
  const scopes = Object.entries(PRESETS).map(([name, preset]) => [name, preset.scopes]);
  expect(Object.fromEntries(scopes)).toEqual(PRESETS_OF_GATEWAY);
});

it('the console describes each scope, in the order of the gateway', () => {
  expect(Object.keys(SCOPE_WORDS)).toEqual(SCOPES);
});
