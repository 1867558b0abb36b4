import type { components } from '../../../client/management-api.ts';
import { ManagementFault } from '../../../client/management-fault.ts';
import { changedFields } from '../../api/changed-fields.ts';
import { fieldSentence } from '../../api/fault-kind.ts';
import { wordsOf } from '../../format/words-of.ts';
import type { Webhook } from './shown-webhook.ts';

type CreateBody = components['schemas']['CreateWebhookRequest'];
/** The id in another system is for configurations. */
type Fields = Required<Omit<CreateBody, 'enabled' | 'externalId'>>;

/** A header as it is typed. */
export interface HeaderDraft {
  readonly name: string;
  readonly value: string;
}

/** The form of a webhook. */
export interface WebhookDraft {
  readonly url: string;
  readonly events: readonly string[];
  /** Separated by blanks or commas. */
  readonly onlyTags: string;
  readonly description: string;
  readonly batch: boolean;
  /** Undefined: they stay as they are. Their values are never shown. */
  readonly headers: readonly HeaderDraft[] | undefined;
}

export const EMPTY_WEBHOOK: WebhookDraft = {
  url: '',
  events: [],
  onlyTags: '',
  description: '',
  batch: false,
  headers: [],
};

export function draftOf({ url, events, onlyTags, description, batch, headers }: Webhook): WebhookDraft {
  const isBare = Object.keys(headers).length === 0;
  return { url, events, onlyTags: onlyTags.join(' '), description, batch, headers: isBare ? [] : undefined };
}

/** The request body for a new webhook. */
export function bodyOfDraft(draft: WebhookDraft): Fields {
  return {
    url: draft.url.trim(),
    events: [...draft.events],
    onlyTags: wordsOf(draft.onlyTags),
    description: draft.description.trim(),
    batch: draft.batch,
    headers: headersOf(draft.headers ?? []),
  };
}

/** The fields that differ from the webhook. */
export function changesOf(webhook: Webhook, draft: WebhookDraft): Partial<Fields> {
  const [before, after] = [draftOf(webhook), bodyOfDraft(draft)];
  // Headers that are written again always differ: the form does not know their values.
  const isRewritten = before.headers === undefined && draft.headers !== undefined;
  return { ...changedFields(bodyOfDraft(before), after), ...(isRewritten && { headers: after.headers }) };
}

/** The gateway's message about a field, or about an entry in it. */
export function messageFor(error: unknown, field: keyof Fields): string | undefined {
  if (error instanceof ManagementFault && error.code === 'webhook_url_not_allowed')
    return field === 'url' ? error.message : undefined;
  return fieldSentence(error, field);
}

/** Whether one of the rows has this name. The case does not matter, as for the gateway. */
export function hasName(rows: readonly HeaderDraft[], name: string): boolean {
  const wanted = name.trim().toLowerCase();
  return wanted !== '' && rows.some((row) => row.name.trim().toLowerCase() === wanted);
}

/** A row without a name and a value was not meant. */
function headersOf(rows: readonly HeaderDraft[]): Readonly<Record<string, string>> {
  const meant = rows.filter(({ name, value }) => name.trim() !== '' || value !== '');
  return Object.fromEntries(meant.map(({ name, value }) => [name.trim(), value.trim()]));
}
