import { positiveNumber, scriptCommand, wholeNumber } from '../support/script-command.ts';

/** How long to fuzz, and with which sequences: the n-th is made from the seed + n. */
export interface FuzzBounds {
  readonly seconds: number;
  readonly firstSeed: number;
  /** Infinite for as many as there is time for. */
  readonly most: number;
}

/** Reads the bounds from the command line of an npm script. */
export function readFuzzBounds(name: string, description: string): FuzzBounds {
  const script = scriptCommand(name, description)
    .argument('[seconds]', 'how long', positiveNumber(), 60)
    .argument('[seed]', 'of the first sequence; a random one by default', wholeNumber())
    .argument('[sequences]', 'how many at most; as many as there is time for by default', wholeNumber(1))
    .parse();
  const seconds: number = script.processedArgs[0];
  const firstSeed: number = script.processedArgs[1] ?? Math.floor(Math.random() * 1_000_000_000);
  const most: number = script.processedArgs[2] ?? Number.POSITIVE_INFINITY;
  return { seconds, firstSeed, most };
}
