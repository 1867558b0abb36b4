import { answerErrorWith } from '../http/answer-error.ts';
import type { Step } from './exchange.ts';
import { limitAnswer } from './limit-answer.ts';

/** Answers the authenticated requests that are not forwarded: over the limit (429), or nobody could tell (503). */
export function deny(): Step {
  return (exchange) => {
    const { refusal, decision, entry } = exchange;
    if (refusal !== undefined) {
      exchange.refuse(refusal);
    } else if (decision?.kind === 'denied' && entry?.grant.plan) {
      exchange.outcome = 'rate_limited';
      answerErrorWith(exchange.res, limitAnswer(entry.grant.plan, decision), exchange.ownLines());
    } else {
      exchange.next();
    }
  };
}
