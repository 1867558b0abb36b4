/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { SessionStore } from '../../../src/console/api/session-store.ts';

beforeEach(() => {
  sessionStorage.clear();
  localStorage.clear();
});

describe('the session of the console', () => {
  it('keeps the token in memory alone unless it is to survive a reload', () => {
    const session = new SessionStore(sessionStorage);
    session.signIn('tga_secret', false);
    expect(session.current()).toEqual({ status: 'signed-in', token: 'tga_secret' });
    expect(sessionStorage).toHaveLength(0);
    expect(new SessionStore(sessionStorage).current()).toEqual({ status: 'signed-out', reason: 'none' });
  });

  it('survives a reload in sessionStorage, never in localStorage', () => {
    new SessionStore(sessionStorage).signIn('tga_secret', true);
    expect(new SessionStore(sessionStorage).current()).toEqual({ status: 'signed-in', token: 'tga_secret' });
    expect(localStorage).toHaveLength(0);
    expect(document.cookie).toBe('');
  });

  it('leaves no token behind after signing out, and tells who listens', () => {
    const session = new SessionStore(sessionStorage);
    session.signIn('tga_secret', true);
    let changes = 0;
    const unsubscribe = session.subscribe(() => changes++);
    session.signOut();
    unsubscribe();
    session.signIn('tga_other', false);
    expect(changes).toBe(1);
    expect(sessionStorage).toHaveLength(0);
  });

  it('is not ended by a late rejection of a token that was replaced meanwhile', () => {
    const session = new SessionStore(sessionStorage);
    session.signIn('tga_new', true);
    session.expire('tga_old');
    expect(session.current()).toEqual({ status: 'signed-in', token: 'tga_new' });
    session.expire('tga_new');
    expect(session.current()).toEqual({ status: 'signed-out', reason: 'expired' });
    expect(sessionStorage).toHaveLength(0);
  });
});
