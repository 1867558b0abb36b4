import { types } from 'node:util';

/**
 * Runs before each test file. Jest gives a file its own realm, in which what Node throws is no `instanceof Error`: the code under test would not
 * find out what is wrong with a store or the backend. In a process there is one realm.
 */
Object.defineProperty(Error, Symbol.hasInstance, {
  configurable: true,
  value(this: unknown, value: unknown): boolean {
    // TypeError, which `fetch` rejects with, inherits this.
    if (types.isNativeError(value) && (this === Error || (this === TypeError && value.name === 'TypeError')))
      return true;
    return Function.prototype[Symbol.hasInstance].call(this, value);
  },
});
