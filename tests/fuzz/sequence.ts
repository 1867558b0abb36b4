/** What one client sends as a request, and what the backend responds when it arrives. Plain data, so that a sequence can be printed and shortened. */
export interface RequestPlan {
  /** Unique in its sequence. It is the request's path, and each response that belongs to the request carries it. */
  readonly token: string;
  readonly method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST' | 'PUT' | 'DELETE';
  readonly version: '1.0' | '1.1';
  readonly framing: 'none' | 'length' | 'chunked';
  readonly bodyBytes: number;
  readonly expectsContinue: boolean;
  readonly isUpgrade: boolean;
  readonly isLast: boolean;
  readonly fault: RequestFault;
  readonly segments: Segmentation;
  readonly response: ResponsePlan;
}

/** `at` is a fraction of the message: behind it comes something else than was announced. */
export type RequestFault =
  | { readonly kind: 'none' }
  /** A chunk size that is none. */
  | { readonly kind: 'bad chunk'; readonly at: number }
  | { readonly kind: 'cut'; readonly at: number; readonly by: 'fin' | 'reset' | 'silence' };

/** How a message is spread over TCP segments: split at these fractions of it, with so many event-loop turns between two segments. */
export interface Segmentation {
  readonly cuts: readonly number[];
  readonly turns: number;
}

/** What the backend does with a request. */
export interface ResponsePlan {
  /** False: the backend takes what follows the head for the next request, as some do that expect no body of a GET. */
  readonly readsBody: boolean;
  /** Begins when the request's head has arrived, or all of it. */
  readonly trigger: 'head' | 'whole request';
  /** Turns from there to the first segment. */
  readonly delay: number;
  readonly interim: readonly number[];
  readonly status: number;
  readonly framing: 'length' | 'chunked' | 'close';
  readonly bodyBytes: number;
  /** Where a response has no body by its method or status: whether one is announced, and whether it comes nevertheless. */
  readonly bodyNobodyReads: 'none' | 'announced' | 'same segment' | 'later';
  /** Bytes behind the end of the response. */
  readonly surplus: 'none' | 'same segment' | 'later';
  readonly fault: ResponseFault;
  readonly afterwards: 'keep' | 'announced close' | 'fin' | 'reset';
  readonly segments: Segmentation;
}

/** `at` is a fraction of the response, or of its body. */
export type ResponseFault =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'malformed';
      readonly part: MalformedPart;
      readonly at: number;
    }
  | { readonly kind: 'cut'; readonly at: number; readonly by: 'fin' | 'reset' | 'silence' };

export type MalformedPart = 'status line' | 'header' | 'length' | 'chunk';

/** What happens next, one thing at a time. Clients are numbered; a step that has become impossible does nothing. */
export type Step =
  | { readonly do: 'connect'; readonly client: number; readonly key: 0 | 1 }
  | { readonly do: 'request'; readonly client: number; readonly request: RequestPlan }
  /** Waits until the client has all responses, or has lost its connection. */
  | { readonly do: 'await'; readonly client: number }
  | { readonly do: 'turns'; readonly count: number }
  /** The event loop of the gateway (and of all others) stands still. */
  | { readonly do: 'stall'; readonly ms: number }
  | { readonly do: ClientAction; readonly client: number }
  /** The backend sends unsolicited bytes, or closes, on the n-th of its open connections, if that is idle. */
  | {
      readonly do: 'intrude';
      readonly connection: number;
      readonly bytes: Intrusion;
      /** Sent right before, so that the gateway finds both in its sockets at the same time, the request first. */
      readonly behind: { readonly client: number; readonly request: RequestPlan } | undefined;
    }
  | { readonly do: 'drop'; readonly connection: number; readonly by: 'fin' | 'reset' };

/** `clog`: the socket's send buffer in the gateway is full from now on. */
export type ClientAction = 'pause' | 'resume' | 'clog' | 'unclog' | 'end' | 'reset';

export type Intrusion = 'response' | 'half a response' | 'interim' | 'garbage';

/** One run of the fuzz: a gateway with these settings, and what happens to it. */
export interface Sequence {
  readonly seed: number;
  /** Nobody misbehaves in it and nothing is late: each request must get its response. */
  readonly isPolite: boolean;
  readonly backendConnections: number;
  readonly backendWaiting: number;
  readonly steps: readonly Step[];
}

/** All requests of a sequence. */
export function requestsOf({ steps }: Sequence): RequestPlan[] {
  return steps.flatMap((step) => {
    if (step.do === 'request') return [step.request];
    return step.do === 'intrude' && step.behind !== undefined ? [step.behind.request] : [];
  });
}
