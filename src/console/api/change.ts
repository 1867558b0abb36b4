import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { bodyOf, type ManagementClient } from '../../client/management-client.ts';
import { useApi } from './api-context.tsx';
import { type FaultKind, faultKind } from './fault-kind.ts';
import type { Call } from './live.ts';

export interface Change<Input, Result> {
  /** Resolves to undefined where it failed: `error` tells why, and nothing is thrown. */
  readonly submit: (input: Input) => Promise<NonNullable<Result> | undefined>;
  readonly isPending: boolean;
  readonly error: unknown;
  readonly errorKind: FaultKind | undefined;
  /** Forgets the error, for example when the form is closed. */
  readonly reset: () => void;
}

/**
 * A change through the management interface. `call` gets a client, the input and an `Idempotency-Key` that stays the same while the input does, for
 * `params.header` of POSTs. While one is under way another `submit` is ignored. Afterwards everything shown is read again.
 */
export function useChange<Input, Result>(
  call: (client: ManagementClient, input: Input, idempotencyKey: string) => ReturnType<Call<Result>>,
): Change<Input, Result> {
  const { client } = useApi();
  const queries = useQueryClient();
  const keyFor = useIdempotencyKey();
  const isRunning = useRef(false);
  const mutation = useMutation({
    mutationFn: (input: Input) => bodyOf(call(client, input, keyFor(input))),
    onSuccess: () => void queries.invalidateQueries(),
  });
  return {
    submit: async (input) => {
      // Not `isPending`: the second half of a double click comes before the component is drawn again.
      if (isRunning.current) return undefined;
      isRunning.current = true;
      try {
        return await mutation.mutateAsync(input).catch(() => undefined);
      } finally {
        isRunning.current = false;
      }
    },
    isPending: mutation.isPending,
    error: mutation.error ?? undefined,
    errorKind: mutation.error === null ? undefined : faultKind(mutation.error),
    reset: mutation.reset,
  };
}

/**
 * Gives the `Idempotency-Key` of a form: the same for the same body for as long as the form is open, so that a double click, or another try after
 * a lost response, performs once; another one as soon as something in the body has changed.
 */
function useIdempotencyKey(): (body: unknown) => string {
  const sent = useRef({ body: '', key: '' });
  return (body) => {
    const text = JSON.stringify(body);
    if (sent.current.key === '' || sent.current.body !== text)
      sent.current = { body: text, key: randomKey() };
    return sent.current.key;
  };
}

/** `crypto.randomUUID` is missing in pages that came over plain HTTP from another host than this one. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}
