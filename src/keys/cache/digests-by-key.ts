/** The digests of secrets by the key that they belong to. Most keys have one: it takes no list. */
export class DigestsByKey {
  readonly #digests = new Map<string, string | readonly string[]>();

  of(keyId: string): readonly string[] {
    const digests = this.#digests.get(keyId) ?? [];
    return typeof digests === 'string' ? [digests] : digests;
  }

  add(keyId: string, digest: string): void {
    const digests = this.#digests.get(keyId);
    if (digests === undefined) this.#digests.set(keyId, digest);
    else if (digests !== digest && !digests.includes(digest))
      this.#digests.set(keyId, [...this.of(keyId), digest]);
  }

  delete(keyId: string, digest: string): void {
    const [one, ...more] = this.of(keyId).filter((other) => other !== digest);
    if (one === undefined) this.#digests.delete(keyId);
    else this.#digests.set(keyId, more.length === 0 ? one : [one, ...more]);
  }
}
