import type { ParsedUrlQuery } from 'node:querystring';
import type { ExpectedHead } from '../../audit/audit-log.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { queryParameters } from '../query-parameters.ts';

/** The query parameters of the verification. */
export const VERIFY_QUERY = {
  expectCount: {
    description: 'must be the count of an earlier response, together with expectHash',
    type: 'integer',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
  },
  expectHash: {
    description: 'must be the lastHash of the same response, together with expectCount',
    type: 'string',
    pattern: '^[0-9a-f]{64}$',
  },
} as const satisfies Readonly<Record<string, FieldSchema>>;

const { readText, invalid } = queryParameters(VERIFY_QUERY);

/** The head that the log must continue; undefined if none is named. Throws `invalid_parameter`, also where only one of the two is there. */
export function readExpectedHead(query: ParsedUrlQuery): ExpectedHead | undefined {
  const countText = readText(query, 'expectCount');
  const hash = readText(query, 'expectHash');
  if (countText === undefined && hash === undefined) return undefined;
  const count = countText !== undefined && /^\d{1,16}$/.test(countText) ? Number(countText) : Number.NaN;
  if (!Number.isSafeInteger(count)) throw invalid('expectCount');
  if (hash === undefined || !/^[0-9a-f]{64}$/.test(hash)) throw invalid('expectHash');
  return { count, hash };
}
