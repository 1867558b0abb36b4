import { isIP } from 'node:net';
import { Option } from 'commander';
import type { paths } from '../../client/management-api.ts';
import { bodyOf } from '../../client/management-client.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { askSecret } from '../api/ask-secret.ts';
import { managed } from '../api/session.ts';
import { CommandFault } from '../command-fault.ts';
import type { Declare } from '../declare.ts';
import { wholeNumber } from '../option-values.ts';
import type { Listing } from '../output/columns.ts';
import type { Terminal } from '../terminal.ts';

type Verify = paths['/api-keys/verify']['post'];
type Question = Verify['requestBody']['content']['application/json'];
type Verdict = Verify['responses'][200]['content']['application/json'];

interface VerifyOptions {
  readonly method?: string;
  readonly path?: string;
  readonly customer?: string;
  readonly address?: string;
  readonly origin?: string;
  readonly cost?: number;
  readonly count: boolean;
}

export const declareVerify: Declare = (command, terminal) => {
  command
    .description(
      'Says whether the gateway would allow a request with a secret, and counts the request as if it had been made. The secret is asked for, or comes from standard input: never from an argument. Exit code 0 where it is allowed, 6 where it is not. The gateway needs AUTHORIZE_PORT, and the token the scope keys:verify.',
    )
    .option('--method <method>', 'the method of the request; GET by default')
    .option('--path <path>', 'its path; / by default')
    .option('--customer <id>', 'the customer of the key whose request it is')
    .option('--address <ip>', 'where it comes from, for keys with allowedIps')
    .option('--origin <origin>', 'the web page that makes it, for keys with allowedOrigins')
    .option('--cost <units>', 'what it costs in place of what the plan says', wholeNumber)
    .option('--no-count', 'only look: nothing is counted')
    .addOption(new Option('--json', 'the same as -o json').implies({ output: 'json' }))
    .addHelpText(
      'after',
      `
Examples:
  tollgate verify --no-count < secret.txt
  tollgate verify --method POST --path /v1/orders --json < secret.txt | jq .limits`,
    )
    // Commander's message about excess arguments would repeat the secret.
    .allowExcessArguments();
  managed<VerifyOptions>(command, terminal, async ({ client, output }, _words, options) => {
    if (command.args.length > 0)
      throw new CommandFault('usage', 'The secret comes from standard input, never from an argument.');
    const body = await questionOf(options, terminal);
    const verdict = await bodyOf(client.POST('/api-keys/verify', { body }));
    await output.item(VERDICT, verdict);
    if (!verdict.allowed)
      throw new CommandFault('notAllowed', `The request is not allowed: ${verdict.status} ${verdict.code}.`);
  });
};

async function questionOf(options: VerifyOptions, terminal: Terminal): Promise<Question> {
  const { customer, count, method, path, address, origin, cost } = options;
  // The gateway takes any text, as one of a consumer, and goes on without an address.
  if (address !== undefined && isIP(address) === 0)
    throw new CommandFault('usage', '--address must be an IPv4 or IPv6 address.');
  return {
    secret: await askSecret('Secret: ', terminal),
    count,
    ...definedFields({ method, path, customerId: customer, address, origin, cost }),
  };
}

const VERDICT: Listing<Verdict> = {
  columns: [
    { name: 'allowed', toCell: ({ allowed }) => (allowed ? 'yes' : 'no') },
    { name: 'status', toCell: ({ status }) => status },
    { name: 'code', toCell: ({ code }) => code },
    { name: 'id', toCell: ({ consumerApiKeyId }) => consumerApiKeyId ?? null },
    { name: 'name', toCell: ({ name }) => name ?? null },
    { name: 'plan', toCell: ({ rateLimitId }) => rateLimitId ?? null },
    {
      name: 'remaining',
      toCell: ({ limits = [] }) =>
        limits.map(({ limitId, remaining }) => `${limitId} ${remaining}`).join(', '),
    },
    { name: 'retry after', toCell: ({ retryAfterSeconds }) => retryAfterSeconds ?? null },
  ],
  idOf: ({ consumerApiKeyId }) => consumerApiKeyId ?? '',
};
