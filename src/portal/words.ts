// The room `portal`: the pages for consumers, in their browsers: that of hand-over links, and the portal.
// In: the address of the page, what the gateway has written into it, and responses of the gateway to it.
// Out: what a consumer sees and does; all sentences are in this file, but those of limits, which are the console's.

import { counted, formatNumber } from '../console/format/numbers.ts';

/** Every sentence of the pages for consumers: the one file to translate. */
export const WORDS = {
  handover: {
    title: 'Your API key',
    opening: 'Opening the link…',
    intro: (name: string) => `This link shows the secret of the API key “${name}”, once.`,
    note: 'Message from the sender',
    validUntil: (instant: string) => `The link works until ${instant}.`,
    before: 'Have a safe place for it ready, such as a password manager: after this the link is dead.',
    reveal: 'Show the secret',
    revealing: 'Showing…',
    revealed: (name: string) => `The secret of “${name}”`,
    keepNow:
      'Keep it now, before you reload or leave this page: neither the page nor the link can show it again.',
    copy: 'Copy',
    copied: 'Copied',
    copyFailed: 'Select the text and copy it yourself.',
    send: 'Send it with each request:',
    dead: {
      used: (instant: string) =>
        `This link was used at ${instant}. It shows the secret only once. If that was not you, someone else has the secret: tell the sender at once, so that they give the key a new one.`,
      revoked: 'The sender has revoked this link. Ask them for another one if you still need it.',
      expired: (instant: string) => `This link expired at ${instant}. Ask the sender for another one.`,
      key_deleted: 'The API key of this link was deleted. Ask the sender what to use in its place.',
      key_rotated:
        'The API key of this link has a newer secret by now. Ask the sender for a link to that one.',
      key_expired: 'The API key of this link has expired. Ask the sender for another one.',
      key_disabled:
        'The API key of this link is disabled at the moment. Ask the sender, and open the link again then.',
    },
    deadTitle: 'This link shows nothing',
    noToken: 'The address of this page is incomplete: the part after the # is missing. Copy the whole link.',
    unknown:
      'There is no such link. Check that you copied the whole address, or ask the sender for another one.',
    tooMany: 'Too many attempts came from your network. Wait a moment, then try again.',
    away: 'The gateway does not respond properly at the moment. Nothing is lost: try again shortly.',
    lost: 'The secret did not arrive. Try again: if the link says then that it was used just now, ask the sender for another one.',
    again: 'Try again',
    requestId: (id: string) => `Request ${id}`,
  },
  portal: {
    links: 'Help and session',
    docs: 'Documentation',
    support: 'Support',
    signOut: 'Sign out',
    loseSecret: 'The new secret is on this page only. Sign out without it?',
    asOf: (time: string) => `As of ${time}`,
    refresh: 'Refresh',
    neverExpires: 'The key does not expire.',
    expires: (instant: string, days: number) =>
      days >= 30
        ? `The key expires on ${instant}.`
        : `The key expires on ${instant}: ${days < 1 ? 'in less than a day' : `in ${counted(days, 'day')}`}.`,
    signIn: {
      title: 'Your API key',
      label: 'API key',
      hint: 'Your key stays in the memory of this tab, until you reload or close it. It is sent to this gateway only, never put into an address, and never stored.',
      empty: 'Enter your API key.',
      submit: 'Show my key',
      busy: 'Checking…',
    },
    faults: {
      invalid_api_key: 'This is not a valid key. Check that you copied all of it.',
      key_disabled: 'This key is disabled. Ask the person who gave it to you.',
      key_expired: 'This key has expired. Ask the person who gave it to you for another one.',
      address_not_allowed: 'This key may not be used from your network.',
      origin_not_allowed:
        'This key may not be used in web pages of this address. Open the portal at the address that you were given.',
      too_many_requests: 'Too many attempts. Wait a moment, then try again.',
      rotation_in_progress:
        'The key was given a new secret already, and the previous one is still valid. Wait until it ends, or ask the person who gave you the key.',
      missing_scope:
        'This key may not be given a new secret here any more. Ask the person who gave it to you.',
      secret_lost:
        'The key may have been given a new secret that did not arrive here. The previous one does not work any more: ask the person who gave you the key to give it another one.',
      broken: 'There was no response. Check your connection, then try again.',
      unavailable: 'The gateway does not respond properly at the moment. Try again shortly.',
    },
    limits: {
      title: 'What is left',
      unlimited: 'Your key has no rate limit.',
      plan: (id: string, limit: string) => `Your plan “${id}” allows ${limit}.`,
      planOfSeveral: (id: string, limits: string) => `Your plan “${id}” has the limits ${limits}.`,
      someRequests:
        'A limit with a name may be for some requests only: the header RateLimit-Policy of a response names those that applied.',
      left: (remaining: string, room: string) => `${remaining} of ${room} left`,
      meter: (limit: string) => `What is left of ${limit}`,
      unknown: 'How much is left is not known at the moment.',
      perCustomer: 'Counted for each of your customers apart.',
      notOpen: 'The window starts with your next request.',
      resets: (instant: string, duration: string) => `Resets ${duration}, at ${instant}`,
    },
    usage: {
      title: 'Requests',
      range: 'Time range',
      days: (days: number) => (days === 1 ? '24 hours' : `${days} days`),
      csv: 'Download CSV',
      fileName: (days: number) => `usage-${days === 1 ? '24-hours' : `${days}-days`}.csv`,
      loading: 'Loading…',
      sentence: (allowed: number, limited: number, failed: number) =>
        allowed + limited + failed === 0
          ? 'No requests in this time.'
          : `${counted(allowed + limited + failed, 'request')}: ${counted(limited, 'time')} limited, ${formatNumber(failed)} failed for another reason.`,
      allowed: 'Successful',
      limited: 'Limited (429)',
      failed: 'Failed',
      most: (requests: string) => `Highest bar: ${requests}`,
      asTable: 'View as table',
      start: 'From',
      hour: 'Hour from',
      endpoints: 'Endpoints',
      endpoint: 'Path',
      endpointDays: (days: number) =>
        days === 1 ? 'Yesterday and today, in UTC.' : `The last ${days} days, in UTC.`,
      others: 'all others',
      none: 'No requests in this time.',
      limitedTitle: 'Limited in the last 24 hours',
      neverLimited: 'No request was rejected with 429.',
      limitedTimes: (times: number) =>
        `${counted(times, 'request')} got 429. Wait for as long as the header Retry-After says before you try again.`,
    },
    examples: {
      title: 'Send a request',
      intro: 'Put your key into the variable API_KEY of the environment, and your path behind the address.',
      language: 'Language',
    },
    rotate: {
      title: 'New secret',
      intro: 'The key keeps its name, its limits and its history. Your programs need the new secret.',
      legend: 'How long does the present secret stay valid?',
      graces: [
        {
          seconds: 0,
          label: 'Not at all',
          consequence: 'It is rejected from the next request on. For a secret that others have seen.',
        },
        {
          seconds: 3600,
          label: '1 hour',
          consequence: 'Both secrets work for an hour, then only the new one.',
        },
        { seconds: 86_400, label: '24 hours', consequence: 'Both secrets work until this time tomorrow.' },
        {
          seconds: 604_800,
          label: '7 days',
          consequence: 'Both secrets work for a week: time to change your programs.',
        },
      ],
      submit: 'Make a new secret',
      busy: 'Making…',
      keepNow: 'Keep the new secret now, before you reload or leave this page: it can not be shown again.',
      previousEnded: 'The previous secret does not work any more.',
      previousUntil: (instant: string) => `The previous secret works until ${instant}.`,
      during: (instant: string) =>
        `The key was given a new secret. The previous one works until ${instant}; after that you can make another one here.`,
      done: 'I have kept it',
    },
  },
} as const;
