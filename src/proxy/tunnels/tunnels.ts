import type { KeyUses } from '../key-uses.ts';
import { Tunnel, type TunnelOptions } from './tunnel.ts';

/** How often stuck tunnels are looked for. Milliseconds. */
const PROBE_MS = 1000;

/** The open tunnels. */
export class Tunnels {
  readonly #keyUses: Pick<KeyUses, 'add' | 'delete'>;
  readonly #open = new Set<Tunnel>();
  /** While there are tunnels. */
  #probing: NodeJS.Timeout | undefined = undefined;

  constructor(keyUses: Pick<KeyUses, 'add' | 'delete'>) {
    this.#keyUses = keyUses;
  }

  /** Tunnels open now. */
  get size(): number {
    return this.#open.size;
  }

  /** Opens a tunnel, which closes when one of its ends does, when it is idle, or when its key may not be used any more. */
  open(options: Omit<TunnelOptions, 'onClosed'>): void {
    const tunnel = new Tunnel({ ...options, onClosed: (closed) => this.#forget(closed) });
    this.#open.add(tunnel);
    this.#probing ??= setInterval(() => this.#probe(), PROBE_MS).unref();
    this.#keyUses.add(tunnel);
  }

  #probe(): void {
    for (const tunnel of this.#open) tunnel.probe();
  }

  #forget(tunnel: Tunnel): void {
    this.#keyUses.delete(tunnel);
    this.#open.delete(tunnel);
    if (this.#open.size > 0) return;
    clearInterval(this.#probing);
    this.#probing = undefined;
  }
}
