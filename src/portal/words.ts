// The room `portal`: the pages for consumers, in their browsers: that of hand-over links.
// In: the address of the page, and responses of the gateway to it.
// Out: what a consumer sees and does; all of its sentences are in this file.

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
    keepNow: 'Keep it now. This page can not show it again, and neither can the link.',
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
    lost: 'The connection broke before the secret arrived. Open the link again: if it says that it was used just now, ask the sender for another one.',
    again: 'Try again',
    requestId: (id: string) => `Request ${id}`,
  },
} as const;
