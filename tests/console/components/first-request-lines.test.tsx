/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from '@jest/globals';
import { FirstRequestLines } from '../../../src/console/components/text/first-request-lines.tsx';
import { requireProgram } from '../../support/debian-package.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

it('the lines of a first request ask for the secret, pasted at once into a shell', async () => {
  await requireProgram('curl', 'curl');
  gateway.render([], <FirstRequestLines />);
  const lines = document.querySelector('pre')?.textContent?.replace(/^GATEWAY=.*/, `GATEWAY=${gateway.url}`);
  const shell = spawn('bash', { stdio: ['pipe', 'ignore', 'ignore'] });
  shell.stdin.end(`${lines}\ntg_typed\n`);
  await once(shell, 'exit');
  expect(gateway.requests).toMatchObject([
    { method: 'GET', url: '/', headers: { authorization: 'Bearer tg_typed' } },
  ]);
});
