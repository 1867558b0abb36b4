import { expect, it } from '@jest/globals';
import { LOOPBACK_HOST } from '../../src/platform/loopback-host.ts';

it.each(['localhost', 'localhost:8080', '127.0.0.1', '127.9.8.7:80', '[::1]', '[::1]:65535'])(
  '%s is this machine',
  (host) => expect(host).toMatch(LOOPBACK_HOST),
);

it.each([
  '127.evil.example',
  '127.0.0.1.evil.example',
  '127.0.0',
  'localhost.evil.example',
  '[::2]',
  '::1',
  '128.0.0.1',
  '',
])('%j is not', (host) => expect(host).not.toMatch(LOOPBACK_HOST));
