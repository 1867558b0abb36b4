import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { newIdempotencyKey } from '../../client/idempotency-key.ts';
import type { ManagementClient } from '../../client/management-client.ts';
import { ManagementFault } from '../../client/management-fault.ts';
import { toast } from '../components/states/toast.tsx';
import { useApi } from './api-context.tsx';
import { type FaultKind, faultKind } from './fault-kind.ts';
import { type Call, readTagged, type Tagged } from './live.ts';

export interface Change<Input, Result> {
  /** Never rejects. Resolves with undefined after a failure; the reason is in `error`. */
  readonly submit: (input: Input) => Promise<NonNullable<Result> | undefined>;
  readonly isPending: boolean;
  readonly error: unknown;
  readonly errorKind: FaultKind | undefined;
  /** Forgets the error, for example when the form is closed. */
  readonly reset: () => void;
}

/**
 * A change through the management interface. `call` gets a client, the input and an `Idempotency-Key`, for `params.header` of POSTs. The
 * key stays the same as long as the input does, until the gateway rejects the change. During a change another `submit` is ignored. After it,
 * all shown data is read again. If the response is a record that `useLive` shows as `shownAs`, it is shown at once: until it is read again, a
 * form would have the entity tag from before the change, and be rejected as outdated.
 */
export function useChange<Input, Result>(
  call: (client: ManagementClient, input: Input, idempotencyKey: string) => ReturnType<Call<Result>>,
  shownAs?: QueryKey,
): Change<Input, Result> {
  const { client } = useApi();
  const queries = useQueryClient();
  const idempotencyKey = useIdempotencyKey();
  const isRunning = useRef(false);
  const mutation = useMutation({
    mutationFn: (input: Input) => readTagged(announcingDelay(call(client, input, idempotencyKey.of(input)))),
    onSuccess: ({ body, etag }) => {
      if (shownAs !== undefined)
        queries.setQueryData<Tagged<object>>(
          shownAs,
          (shown) => shown && { body: { ...shown.body, ...body }, etag },
        );
      void queries.invalidateQueries();
    },
    onError: (error) => {
      if (isKeptRejection(error)) idempotencyKey.forget();
    },
  });
  return {
    submit: async (input) => {
      // `isPending` would be too late: the second click of a double click comes before the component renders again.
      if (isRunning.current) return undefined;
      isRunning.current = true;
      try {
        return (await mutation.mutateAsync(input).catch(() => undefined))?.body;
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

/** Says when a change is not in force at once. */
async function announcingDelay<Result extends { readonly response: Response }>(
  call: Promise<Result>,
): Promise<Result> {
  const result = await call;
  const seconds = result.response.headers.get('Tollgate-Applies-Within');
  if (seconds !== null && result.response.ok)
    toast.done(
      `In force within ${seconds} s`,
      'Redis is away, so replicas learn of the change a little later.',
    );
  return result;
}

/**
 * The `Idempotency-Key` of a body. While the form is open the same body gets the same key, so that a double click, or a retry after a lost
 * response, performs the change once. A changed body gets a new key, and so does any body after `forget`.
 */
function useIdempotencyKey() {
  const sent = useRef({ body: '', key: '' });
  return {
    of: (body: unknown): string => {
      const text = JSON.stringify(body);
      if (sent.current.key === '' || sent.current.body !== text)
        sent.current = { body: text, key: newIdempotencyKey() };
      return sent.current.key;
    },
    forget: () => {
      sent.current = { body: '', key: '' };
    },
  };
}

/**
 * Whether the gateway would repeat the rejection to the same `Idempotency-Key`, also when its cause has gone. After other failures an
 * earlier attempt may have been performed: a retry with a new key would perform it twice.
 */
function isKeptRejection(error: unknown): boolean {
  if (!(error instanceof ManagementFault)) return false;
  // Without a code, a proxy has responded.
  if (error.code === '' || error.code === 'idempotency_in_progress') return false;
  const kind = faultKind(error);
  return kind === 'rejected' || kind === 'not-found';
}
