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
    expect(session.current()).toMatchObject({ status: 'signed-in', token: 'tga_secret' });
    expect(sessionStorage).toHaveLength(0);
    expect(new SessionStore(sessionStorage).current()).toEqual({ status: 'signed-out', reason: 'none' });
  });

  it('survives a reload in sessionStorage, never in localStorage', () => {
    new SessionStore(sessionStorage).signIn('tga_secret', true);
    expect(new SessionStore(sessionStorage).current()).toMatchObject({
      status: 'signed-in',
      token: 'tga_secret',
    });
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
    session.signIn('tga_old', true);
    const old = serialOf(session);
    session.signIn('tga_new', true);
    session.expire(old);
    expect(session.current()).toMatchObject({ status: 'signed-in', token: 'tga_new' });
    session.expire(serialOf(session));
    expect(session.current()).toEqual({ status: 'signed-out', reason: 'token-expired' });
    expect(sessionStorage).toHaveLength(0);
  });

  it('goes on with a new secret of its token, which replaces the stored one only', () => {
    const session = new SessionStore(sessionStorage);
    session.signIn('tga_old', false);
    const serial = serialOf(session);
    session.replaceToken(serial, 'tga_new');
    expect(session.current()).toEqual({ status: 'signed-in', token: 'tga_new', serial });
    expect(sessionStorage).toHaveLength(0);
    session.signIn('tga_other', true);
    session.replaceToken(serial, 'tga_late');
    expect(new SessionStore(sessionStorage).current()).toMatchObject({ token: 'tga_other' });
    session.replaceToken(serialOf(session), 'tga_newer');
    expect(new SessionStore(sessionStorage).current()).toMatchObject({ token: 'tga_newer' });
  });

  it('is that of the browser unless the tab has a token', () => {
    const session = new SessionStore(sessionStorage, { hasSession: true });
    expect(session.current()).toMatchObject({ status: 'signed-in', token: null });
    session.expire(serialOf(session));
    expect(session.current()).toEqual({ status: 'signed-out', reason: 'session-ended' });
    session.signIn('tga_secret', true);
    expect(new SessionStore(sessionStorage, { hasSession: true }).current()).toMatchObject({
      token: 'tga_secret',
    });
  });

  it('ends, or is replaced, only when a secret is kept that can not be shown again', () => {
    const session = new SessionStore(sessionStorage, { hasSession: true });
    const [release, releaseOther] = [session.keep(), session.keep()];
    const before = session.current();
    session.expire(serialOf(session));
    release();
    expect(session.current()).toBe(before);
    session.replaceSession(serialOf(session));
    expect(session.current()).toBe(before);
    releaseOther();
    expect(session.current()).toMatchObject({ status: 'signed-in', serial: serialOf(session) });
    expect(session.current()).not.toBe(before);
    const last = session.keep();
    session.expire(serialOf(session));
    last();
    expect(session.current()).toEqual({ status: 'signed-out', reason: 'session-ended' });
  });

  it('goes on after a secret was kept if the person has signed in again meanwhile', () => {
    const session = new SessionStore(sessionStorage, { hasSession: true });
    const before = session.current();
    const release = session.keep();
    session.expire(serialOf(session));
    session.continueSession(serialOf(session));
    release();
    expect(session.current()).toBe(before);
  });

  it('ends at once by signing out, and the next one is not ended by what waited', () => {
    const session = new SessionStore(sessionStorage);
    session.signIn('tga_old', false);
    const release = session.keep();
    session.expire(serialOf(session));
    session.signOut();
    expect(session.current()).toEqual({ status: 'signed-out', reason: 'signed-out' });
    session.signIn('tga_new', false);
    release();
    expect(session.current()).toMatchObject({ status: 'signed-in', token: 'tga_new' });
  });

  it('shows a sign-in that failed before any session or token that is there', () => {
    const failure = { sentence: 'It failed.', requestId: 'r-1' };
    const session = new SessionStore(sessionStorage, { hasSession: true, failure });
    expect(session.current()).toEqual({ status: 'signed-out', reason: 'none', failure });
  });
});

function serialOf(session: SessionStore): number {
  const current = session.current();
  return current.status === 'signed-in' ? current.serial : -1;
}
