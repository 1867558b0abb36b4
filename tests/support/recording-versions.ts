import type { RecordVersion, RecordVersions, RetiredKey } from '../../src/limiter/record-versions.ts';

/** A step of a change, and what the record store held at that moment. */
export interface Step {
  readonly step: 'markStale' | 'publishVersion' | 'retire' | 'withdraw';
  readonly keys: readonly string[];
  readonly versions?: readonly string[];
  readonly windowNames?: readonly string[];
  readonly stored: unknown;
}

/** Shared versions that only record their calls. `look` reads what a test wants to know of the record store. */
export class RecordingVersions implements RecordVersions {
  readonly steps: Step[] = [];
  look: () => Promise<unknown> = async () => undefined;
  /** The step that fails, as when Redis is down. */
  failing: { readonly step: Step['step']; readonly error: Error } | undefined;

  async markStale(keyIds: readonly string[]): Promise<void> {
    await this.#note({ step: 'markStale', keys: keyIds });
  }

  async publishVersion(versions: readonly RecordVersion[]): Promise<void> {
    const keys = versions.map(({ keyId }) => keyId);
    await this.#note({ step: 'publishVersion', keys, versions: versions.map(({ version }) => version) });
  }

  async publishUnder(_planId: string, keys: AsyncIterable<readonly RecordVersion[]>): Promise<void> {
    for await (const versions of keys) await this.publishVersion(versions);
  }

  async retire(keys: readonly RetiredKey[]): Promise<void> {
    for (const { keyId, windowNames } of keys)
      await this.#note({ step: 'retire', keys: [keyId], ...(windowNames !== undefined && { windowNames }) });
  }

  async withdraw({ keyId, version }: RecordVersion): Promise<void> {
    await this.#note({ step: 'withdraw', keys: [keyId], versions: [version] });
  }

  async #note(step: Omit<Step, 'stored'>): Promise<void> {
    if (this.failing?.step === step.step) {
      throw this.failing.error;
    }
    this.steps.push({ ...step, stored: await this.look() });
  }
}
