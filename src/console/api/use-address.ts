import { useSearchParams } from 'wouter';

/** Fields of the page's address. One that is empty or undefined is not in it. */
export type AddressFields = Readonly<Record<string, string | undefined>>;

/** The query of the page's address, and a function that changes some of its fields: Back then leads to the page before. */
export function useAddress(): readonly [query: URLSearchParams, change: (fields: AddressFields) => void] {
  const [query, setQuery] = useSearchParams();
  const change = (fields: AddressFields) =>
    setQuery(
      (present) => {
        const next = new URLSearchParams(present);
        for (const [name, value = ''] of Object.entries(fields)) {
          if (value === '') next.delete(name);
          else next.set(name, value);
        }
        return next;
      },
      { replace: true },
    );
  return [query, change];
}
