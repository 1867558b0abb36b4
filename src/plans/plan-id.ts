/** The plan that the migrations create. It is the default plan unless a setting names another one. */
export const SHIPPED_PLAN_ID = 'default';

/** The form of a plan's id. It occurs in a response header. */
export const PLAN_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Whether a text has the form of a plan id. */
export function isPlanId(text: string): boolean {
  return PLAN_ID.test(text);
}

/** The id of a new plan. `/rate-limit/create` is another endpoint, so a plan with that id could not be shown or deleted. */
export const NEW_PLAN_ID = new RegExp(`^(?!create$)${PLAN_ID.source.slice(1)}`);

/** The form of the id of a new plan, in words. */
export const PLAN_ID_FORM =
  '1 to 64 letters, digits, dots, hyphens or underscores, the first a letter or a digit, and not "create"';
