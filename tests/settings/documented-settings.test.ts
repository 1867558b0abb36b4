import { execFileSync } from 'node:child_process';
import { expect, it } from '@jest/globals';
import { readSettings } from '../../src/settings/settings.ts';
import { documentedBlocks } from '../support/documented-commands.ts';

const PAGES = ['sign-in.md', 'portal.md'];
/** What a block of a provider leaves to the first block of its page. */
const OTHERWISE = {
  BACKEND_URL: 'https://api.example.com',
  PUBLIC_ADMIN_URL: 'https://gateway-admin.example.com',
  OIDC_ISSUER: 'https://login.example.com',
  OIDC_CLIENT_ID: 'tollgate',
  OIDC_SCOPES_MAP: '{"gateway-admins": ["all"]}',
};
/** Blocks that set variables, and do nothing else. */
const ASSIGNMENTS = /^(?:[A-Z_]+=.*\n)+$/;

const blocks = (await Promise.all(PAGES.map(documentedBlocks)))
  .flat()
  .filter(({ language, text }) => language === 'sh' && ASSIGNMENTS.test(text))
  .map(({ headings, text }) => ({ heading: headings.at(-1), text }));

it('are in the pages of sign-in and the portal, one block for each of six providers', () => {
  expect(blocks.map(({ heading }) => heading)).toEqual([
    '## Set it up',
    ...['### Keycloak', '### Entra ID', '### Okta', '### Google Workspace', '### Dex', '### Authentik'],
    '## The brand',
  ]);
});

it.each(blocks)('the settings below "$heading" are accepted as a shell reads them', ({ text }) => {
  const names = [...text.matchAll(/^[A-Z_]+/gm)].map(([name]) => name);
  const print = `${text}\nfor name in ${names.join(' ')}; do eval "printf '%s\\0' \\"\\$$name\\""; done`;
  const values = execFileSync('sh', ['-ec', print], { encoding: 'utf8' }).split('\0');
  const set = Object.fromEntries(names.map((name, index) => [name, values[index]]));
  // The file with the secret is not on this machine.
  const { OIDC_CLIENT_SECRET_FILE: _, ...readable } = set;
  expect(readSettings({ ...OTHERWISE, ...readable })).toMatchObject({ backendUrl: expect.anything() });
});
