import { describe, expect, it } from '@jest/globals';
import {
  bodyOfDraft,
  changesOf,
  draftOf,
  EMPTY_TOKEN,
} from '../../../src/console/pages/tokens/token-draft.ts';
import { TOKEN } from './support/records.ts';

describe('the form of an admin token', () => {
  it('shows the last valid date that was chosen, and not the one after it', () => {
    const { expiresAt } = bodyOfDraft({ ...EMPTY_TOKEN, expires: '2026-05-01' });
    expect(draftOf({ ...TOKEN, expiresAt }).expires).toBe('2026-05-01');
    expect(draftOf(TOKEN).expires).toBe('');
  });

  it.each(['2026-05-01T00:00:00Z', '2026-05-01T12:34:56Z', '2026-05-01T23:59:59Z'])(
    'keeps the time %s unless the date is edited',
    (expiresAt) => {
      const token = { ...TOKEN, expiresAt };
      const draft = draftOf(token);
      expect(changesOf(token, { ...draft, name: 'Release' })).toEqual({ name: 'Release' });
      expect(changesOf(token, { ...draft, expires: '2026-06-01' })).toEqual({
        expiresAt: bodyOfDraft({ ...draft, expires: '2026-06-01' }).expiresAt,
      });
      expect(changesOf(token, { ...draft, expires: '' })).toEqual({ expiresAt: null });
    },
  );
});
