import type { RootCommand } from '@bomb.sh/tab';
import tab from '@bomb.sh/tab/commander';
import { bodyOf, createManagementClient, type ManagementClient } from '../client/management-client.ts';
import { type ConnectionOptions, readConnection } from './api/choose-gateway.ts';
import { contextsFile, readContexts } from './api/contexts-file.ts';
import { escapeControls } from './output/table.ts';
import { createProgram } from './program.ts';
import type { Terminal } from './terminal.ts';

/** The possible completions, and the descriptions that some shells show beside them. */
type Candidates = readonly (readonly [value: string, description: string])[];

/** The longest wait for the gateway after a key press. */
const TIMEOUT_MS = 2000;
const MANY = { params: { query: { limit: 1000 } } };
/** What no shell takes for more than a word. All ids are; a context may have another name. */
const IS_PLAIN = /^[\w.@/+-]+$/;
/** Makes a client of the gateway that the words name. */
type Connect = () => Promise<ManagementClient>;
type Source = (connect: Connect, terminal: Terminal) => Promise<Candidates>;

/** The sources of completions, by name of the argument or option. */
const SOURCES: Readonly<Record<string, Source>> = {
  key: async (connect) => {
    const { apiKeys } = await bodyOf((await connect()).GET('/consumer-api-key', MANY));
    return apiKeys.map(({ consumerApiKeyId, name }) => [consumerApiKeyId, name]);
  },
  plan: plansOf,
  'to-plan': plansOf,
  job: async (connect) => {
    const { jobs } = await bodyOf((await connect()).GET('/tollgate/job', MANY));
    return jobs.map(({ jobId, action, state }) => [jobId, `${action}: ${state}`]);
  },
  token: async (connect) => {
    const { adminTokens } = await bodyOf((await connect()).GET('/tollgate/admin-token', MANY));
    return adminTokens.map(({ adminTokenId, name }) => [adminTokenId, name]);
  },
  webhook: async (connect) => {
    const { webhooks } = await bodyOf((await connect()).GET('/tollgate/webhook', MANY));
    return webhooks.map(({ webhookId, description }) => [webhookId, description]);
  },
  event: eventTypes,
  type: eventTypes,
  context: async (_connect, terminal) => {
    const { contexts } = readContexts(contextsFile(terminal));
    return Object.entries(contexts).map(([name, { url }]) => [name, url]);
  },
};

async function plansOf(connect: Connect): Promise<Candidates> {
  const { rateLimits } = await bodyOf((await connect()).GET('/rate-limit'));
  return rateLimits.map(({ rateLimitId, limit, period }) => [rateLimitId, `${limit} per ${period}`]);
}

async function eventTypes(): Promise<Candidates> {
  const { EVENT_TYPES } = await import('../events/event-types.ts');
  return Object.entries(EVENT_TYPES).map(([type, { when }]) => [type, when]);
}

/**
 * Prints the completions of the last word, in the form that the shells' scripts expect. If the candidates can't be found out, none are
 * offered; that is not an error.
 */
export async function completeWords(given: readonly string[], terminal: Terminal): Promise<void> {
  // The library looks for a value only in the word after its option.
  const words = [...given.slice(0, -1).flatMap(optionAndValue), ...given.slice(-1)];
  const program = await createProgram(terminal, 'all');
  // The library adds a command that prints its scripts; here `completion` does that.
  const completion = tab(program, { completionCommandName: 'completion-script' });
  completion.commands.delete('completion-script');
  await offer(completion, words, terminal);
  completion.parse([...words]);
}

/**
 * Requests the candidates of the command that the words name, before it is known whether they are needed: the library's handlers are
 * synchronous.
 */
async function offer(completion: RootCommand, words: readonly string[], terminal: Terminal): Promise<void> {
  const [first = '', second = ''] = words;
  const command = completion.commands.get(`${first} ${second}`) ?? completion.commands.get(first);
  if (command === undefined) return;
  const previous = words.at(-2)?.replace(/^--/, '') ?? '';
  const option = command.options.get(previous);
  const argument = [...command.arguments.values()].find(({ name }) => name in SOURCES);
  const isContext = first === 'context' && second === 'use';
  const source = option === undefined ? (isContext ? 'context' : argument?.name) : previous;
  const connect = () => clientOf(words, terminal);
  const candidates = await SOURCES[source ?? '']?.(connect, terminal).catch((): Candidates => []);
  if (candidates === undefined) return;
  const handler = (complete: (value: string, description: string) => void): void => {
    for (const [value, description] of candidates)
      if (IS_PLAIN.test(value)) complete(value, escapeControls(description));
  };
  if (option !== undefined) option.handler = handler;
  // An argument with choices has a handler already.
  else for (const each of command.arguments.values()) each.handler ??= handler;
}

async function clientOf(words: readonly string[], terminal: Terminal): Promise<ManagementClient> {
  const connection = await readConnection(gatewayOptionsIn(words.slice(0, -1)), terminal);
  return createManagementClient({
    ...connection,
    fetch: (request) => fetch(request, { signal: AbortSignal.timeout(TIMEOUT_MS) }),
  });
}

/** `--option=value` as two words; any other word as it is. */
function optionAndValue(word: string): readonly string[] {
  const [, option, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
  return option === undefined || value === undefined ? [word] : [option, value];
}

/** The options among the words that choose the gateway. */
function gatewayOptionsIn(words: readonly string[]): ConnectionOptions {
  const valueAfter = (option: string) =>
    words.includes(option) ? words[words.lastIndexOf(option) + 1] : undefined;
  const [url, context] = [valueAfter('--url'), valueAfter('--context')];
  return { ...(url !== undefined && { url }), ...(context !== undefined && { context }) };
}
