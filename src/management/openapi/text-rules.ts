import { MAX_EXTERNAL_ID } from '../../keys/external-id.ts';
import { MAX_KEY_NAME } from '../../keys/key-name.ts';
import { PERIOD_PATTERN } from '../../limiter/period.ts';
import { MAX_PATTERN_LENGTH } from '../../paths/path-pattern.ts';
import { ISO_UTC } from '../../platform/timestamps.ts';

/** JSON Schema keywords that express one of our formats as far as possible. */
interface TextRules {
  readonly pattern: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly examples?: readonly string[];
}

const BIDI = String.raw`\u202a-\u202e\u2066-\u2069`;
const CONTROL = String.raw`\u0000-\u001f\u007f-\u009f${BIDI}`;
const STORED = String.raw`^[^\u0000]*$`;
/** Characters of a literal segment of a path. */
const LITERAL = String.raw`(?:[!"$&'()+,\-.0-9:;<=>@A-Z\[\\\]^_\x60a-z|~]|%[0-9A-Fa-f]{2})+`;
const PARAMETER = String.raw`\{(?:[!"$&'()*+,\-.0-9:;<=>@A-Z\[\\\]^_\x60a-z|~]|%[0-9A-Fa-f]{2})+\}`;
const SEGMENT = String.raw`\*|${PARAMETER}|(?!\.{1,2}(?:/|$))${LITERAL}`;

/**
 * By the name of the format. No rule rejects a text that the format accepts. What a pattern can't express, such as the days of a month, is
 * in the description of the field.
 */
export const TEXT_RULES: Readonly<Record<string, TextRules>> = {
  'key-name': {
    pattern: String.raw`^\s*[^\s${CONTROL}](?:[^${CONTROL}]{0,${MAX_KEY_NAME - 2}}[^\s${CONTROL}])?\s*$`,
    minLength: 1,
    examples: ['Mobile app'],
  },
  'stored-text': { pattern: STORED },
  'external-id': {
    pattern: String.raw`^[^\u0000${BIDI}]*$`,
    minLength: 1,
    maxLength: MAX_EXTERNAL_ID,
    examples: ['customer-42'],
  },
  period: { pattern: PERIOD_PATTERN, maxLength: 48, examples: ['15 minutes', 'hour', 'P1M'] },
  'path-pattern': {
    pattern: String.raw`^(?:/(?:${SEGMENT})?)*(?:/(?:\*\*)?)?$`,
    minLength: 1,
    maxLength: MAX_PATTERN_LENGTH,
    examples: ['/v1/search/**'],
  },
  'utc-instant': {
    pattern: ISO_UTC.source,
    examples: ['2030-12-31T00:00:00Z'],
  },
  'query-instant': {
    pattern: String.raw`^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|\+00:00))?$`,
    examples: ['2030-12-31', '2030-12-31T12:00:00Z'],
  },
  'ip-network': {
    pattern: String.raw`^[0-9A-Fa-f:.]{2,45}(?:/\d{1,3})?$`,
    examples: ['203.0.113.0/24', '2001:db8::/32'],
  },
  'page-origin': {
    pattern: String.raw`^https?://[^\s/?#@A-Z]+$`,
    maxLength: 280,
    examples: ['https://app.example.com'],
  },
  // A secret is known by its checksum, which no pattern can express.
  'shown-name': { pattern: '' },
};
