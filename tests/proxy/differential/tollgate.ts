import { TestGateway } from '../support/gateway.ts';
import type { Contender, Lane } from './contender.ts';
import { KEY } from './corpus.ts';
import { RecordingBackend } from './recording-backend.ts';

/** Gateways in this process, in which `KEY` is valid. A client may keep one waiting for `patienceMs`. */
export async function startTollgate(lanes: number, patienceMs: number): Promise<Contender> {
  const started = await Promise.all(Array.from({ length: lanes }, () => startLane(patienceMs)));
  return {
    version: 'this one',
    lanes: started.map(({ lane }) => lane),
    stop: async () => {
      await Promise.all(started.map(({ stop }) => stop()));
    },
  };
}

async function startLane(patienceMs: number): Promise<{ readonly lane: Lane; stop(): Promise<void> }> {
  const backend = await RecordingBackend.start();
  const gateway = await TestGateway.start(`http://127.0.0.1:${backend.port}`, {
    timeouts: { headMs: patienceMs, idleMs: patienceMs, keepAliveMs: patienceMs },
  });
  const snapshot = gateway.keyStore.snapshots.get(gateway.secret);
  if (snapshot !== undefined) gateway.keyStore.snapshots.set(KEY, snapshot);
  return {
    lane: { address: gateway.port, backend, settled: () => gateway.settled() },
    stop: async () => {
      await gateway.stop();
      await backend.stop();
    },
  };
}
