const { locale } = new Intl.DateTimeFormat().resolvedOptions();

/** Of words and dates: the reader's English. The pages are in English, and a reader of another language gets that of Britain. Numbers are as the reader's own language writes them. */
export const LOCALE = /^en\b/.test(locale) ? locale : 'en-GB';
