import { describe, expect, it } from '@jest/globals';
import { type ConnectionEvent, type ConnectionState, nextState } from '../../src/backend/connection-reuse.ts';

const STATES: readonly ConnectionState[] = [
  'new',
  'connecting',
  'busy',
  'idle',
  'reserved',
  'switched',
  'closed',
];
const EVENTS: readonly ConnectionEvent[] = [
  'connect',
  'opened',
  'keep',
  'reserve',
  'release',
  'send',
  'switch',
  'close',
];

function follow(from: ConnectionState, ...events: readonly ConnectionEvent[]): ConnectionState {
  return events.reduce(nextState, from);
}

/** The states that can follow a state at once. */
function successors(state: ConnectionState): readonly ConnectionState[] {
  return EVENTS.flatMap((event) => {
    try {
      return [nextState(state, event)];
    } catch {
      return [];
    }
  });
}

describe('the states of a backend connection', () => {
  it('lead from the first request over idle times to the end', () => {
    expect(follow('new', 'connect', 'opened', 'keep', 'reserve', 'send', 'keep', 'close')).toBe('closed');
  });

  it('let an idle connection carry a request only once it was reserved', () => {
    expect(() => nextState('idle', 'send')).toThrow('idle got the event send');
    expect(STATES.filter((state) => successors(state).includes('busy'))).toEqual(['connecting', 'reserved']);
  });

  it('let no connection be reserved that carries a request', () => {
    for (const state of ['new', 'connecting', 'busy', 'reserved'] as const)
      expect(() => nextState(state, 'reserve')).toThrow();
  });

  it('end in two states from which nothing leads back', () => {
    expect(STATES.filter((state) => successors(state).length === 0)).toEqual(['switched', 'closed']);
  });

  it('can be left by a close wherever there may be a socket', () => {
    for (const state of ['new', 'connecting', 'busy', 'idle', 'reserved'] as const)
      expect(nextState(state, 'close')).toBe('closed');
  });
});
