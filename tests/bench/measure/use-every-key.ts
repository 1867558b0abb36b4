import type { BenchCase } from '../cases.ts';
import type { World } from '../setup/world.ts';

const AT_ONCE = 16;

/** Sends one request of the case with each of its keys: the load picks them by chance, and would leave some of many out for long. */
export async function useEveryKey({ keys }: World, benchCase: BenchCase, port: number): Promise<void> {
  const waiting = keys[benchCase.keys].values();
  const work = async () => {
    for (const { secret } of waiting) {
      const response = await fetch(`http://127.0.0.1:${port}${benchCase.path}`, {
        headers: { authorization: `Bearer ${secret}` },
      });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`A key of the bench got ${response.status}.`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}
