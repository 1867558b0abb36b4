import { readFileSync } from 'node:fs';
import { createConfig, lintFromString } from '@redocly/openapi-core';

// The OpenAPI document against the rules that Redocly recommends: every problem fails the check.
const path = new URL('../../docs/openapi.json', import.meta.url);
const problems = await lintFromString({
  source: readFileSync(path, 'utf8'),
  absoluteRef: path.pathname,
  config: await createConfig({ extends: ['recommended-strict'] }),
});
for (const { ruleId, message, location } of problems) {
  process.stderr.write(`docs/openapi.json${location[0]?.pointer ?? ''}: ${message} (${ruleId})\n`);
}
process.exitCode = problems.length > 0 ? 1 : 0;
