/** The name of the owner of a configuration. */
export const OWNER = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,63}$/;

/** What the name of an owner is made of, in words. */
export const OWNER_FORM = '1 to 64 letters, digits and . _ : / @ -, the first a letter or a digit';
