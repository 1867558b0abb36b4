import type { components } from '../../../../client/management-api.ts';
import { faultIn } from '../../../api/fault-kind.ts';
import { instantText } from '../../../api/instant-text.ts';
import { wordsOf } from '../../../format/words-of.ts';
import type { KeyDetail } from '../key-model.ts';

type CreateBody = components['schemas']['CreateConsumerKeyRequest'];

/** The form of a key: texts, as they are typed. */
export interface KeyDraft {
  readonly name: string;
  readonly rateLimitId: string;
  /** The value of an `<input type="datetime-local">`, in the time zone of the browser; empty if the key never expires. */
  readonly expiresAt: string;
  readonly externalId: string;
  /** Separated by blanks or commas. */
  readonly tags: string;
  readonly metadata: string;
  /** One a line. */
  readonly allowedIps: string;
  readonly allowedOrigins: string;
  readonly mayRotate: boolean;
}

export const EMPTY_DRAFT: KeyDraft = {
  name: '',
  rateLimitId: '',
  expiresAt: '',
  externalId: '',
  tags: '',
  metadata: '',
  allowedIps: '',
  allowedOrigins: '',
  mayRotate: false,
};

/** The fields of a key that the form changes, as the management interface accepts them. */
export type KeyFields = Required<
  Pick<
    CreateBody,
    | 'name'
    | 'rateLimitId'
    | 'expiresAt'
    | 'externalId'
    | 'tags'
    | 'metadata'
    | 'allowedIps'
    | 'allowedOrigins'
    | 'selfService'
  >
>;

/** The labels of the fields. */
export const FIELD_LABELS: Readonly<Record<keyof KeyFields, string>> = {
  name: 'Name',
  rateLimitId: 'Plan',
  expiresAt: 'Expires',
  externalId: 'Owner',
  tags: 'Tags',
  metadata: 'Metadata',
  allowedIps: 'Allowed addresses',
  allowedOrigins: 'Allowed origins',
  selfService: 'Self-service',
};

export function draftOf(key: Omit<KeyDetail, 'secret' | 'usage'>): KeyDraft {
  return {
    name: key.name,
    rateLimitId: key.rateLimitId ?? '',
    expiresAt: key.expiresAt === null ? '' : localText(Date.parse(key.expiresAt)),
    externalId: key.externalId ?? '',
    tags: key.tags.join(' '),
    metadata: key.metadata === null ? '' : JSON.stringify(key.metadata, null, 2),
    allowedIps: (key.allowedIps ?? []).join('\n'),
    allowedOrigins: (key.allowedOrigins ?? []).join('\n'),
    mayRotate: key.selfService.includes('rotate'),
  };
}

/** Throws a `SyntaxError` if the metadata is not a JSON object, or has a number that would be changed here. The gateway checks everything else. */
export function fieldsOf(draft: KeyDraft): KeyFields {
  return {
    name: draft.name,
    rateLimitId: draft.rateLimitId || null,
    expiresAt: draft.expiresAt === '' ? null : instantOf(draft.expiresAt),
    externalId: draft.externalId.trim() || null,
    tags: wordsOf(draft.tags),
    metadata: metadataOf(draft.metadata),
    allowedIps: orNull(wordsOf(draft.allowedIps)),
    allowedOrigins: orNull(wordsOf(draft.allowedOrigins)),
    selfService: draft.mayRotate ? ['rotate'] : [],
  };
}

/** The gateway's message about a field or an entry in it. */
export function messageFor(
  error: unknown,
  field: keyof KeyFields | 'secret' | 'overrides',
): string | undefined {
  const fault = faultIn(error, field);
  return fault && `${fault.field} ${fault.message}`;
}

/** The instant of a local date and time, to the second. An invalid text is unchanged, and the gateway rejects it. */
export function instantOf(local: string): string {
  const at = Date.parse(local);
  return Number.isNaN(at) ? local : instantText(at);
}

export function localText(at: number): string {
  const local = at - new Date(at).getTimezoneOffset() * 60_000;
  return new Date(local).toISOString().slice(0, 19);
}

function metadataOf(text: string): KeyFields['metadata'] {
  if (text.trim() === '') return null;
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SyntaxError('It has to be a JSON object, such as {"team": "mobile"}.');
  const numbers = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').match(/-?\d[-+.\dEe]*/g) ?? [];
  const changed = numbers.find((number) => !isKept(number));
  if (changed !== undefined)
    throw new SyntaxError(`JavaScript would change the number ${changed}: write it as a string.`);
  return value as KeyFields['metadata'];
}

/** Whether a number is sent as it was written: fifteen digits always are, more only if JavaScript writes them in the same way. */
function isKept(number: string): boolean {
  const value = Number(number);
  const digits = number.replace(/e.*/i, '').replaceAll(/[-.]/g, '').replace(/^0+/, '');
  if (digits.length > 15) return String(value) === number;
  return Number.isFinite(value) && (value !== 0 || digits === '');
}

function orNull(list: string[]): string[] | null {
  return list.length === 0 ? null : list;
}
