/** A mutant that no test can kill. */
export interface EqualMutant {
  readonly file: string;
  /** The line before the change and after it, without indentation. */
  readonly before: string;
  readonly after: string;
  readonly because: string;
}

const USAGE = 'src/storage/redis/usage';
const COUNTERS = 'src/storage/redis/counters';
const DECIDE = 'src/storage/redis/decisions/decideRequests-n.lua';
const NEVER_ZERO = 'No key ends at the beginning of 1970: Redis would have removed it.';
const SAME_END = 'It then sets the end that is there already.';

/** They count neither as killed nor as survived. A line that changes here is judged anew. */
export const EQUAL_MUTANTS: readonly EqualMutant[] = [
  {
    file: `${USAGE}/readUsage-2.lua`,
    before: "local after = find(text, '\\nk', from + 2, true)",
    after: "local after = find(text, '\\nk', from + 2, false)",
    because: 'The text that it looks for has no sign that means something in a pattern.',
  },
  {
    file: `${USAGE}/recordUsage-n.lua`,
    before: "if seconds and time[1] - seconds > DAY_S then call('HDEL', writers, entries[index]) end",
    after: "if seconds and time[1] - seconds >= DAY_S then call('HDEL', writers, entries[index]) end",
    because: 'They differ for one second of a day on the clock of Redis, which no test can set.',
  },
  {
    file: `${COUNTERS}/addUnits-7.lua`,
    before: 'if endsAtMs < 0 then endsAtMs = tonumber(ARGV[3]) end',
    after: 'if endsAtMs <= 0 then endsAtMs = tonumber(ARGV[3]) end',
    because: NEVER_ZERO,
  },
  {
    file: `${COUNTERS}/addUnits-7.lua`,
    before:
      "if call('PEXPIRETIME', KEYS[6]) < endsAtMs then call('PEXPIREAT', KEYS[6], decimal(endsAtMs)) end",
    after:
      "if call('PEXPIRETIME', KEYS[6]) <= endsAtMs then call('PEXPIREAT', KEYS[6], decimal(endsAtMs)) end",
    because: SAME_END,
  },
  {
    file: `${COUNTERS}/readWindows-n.lua`,
    before:
      'if endsAtMs == -1 and count then endsAtMs = -2 elseif endsAtMs >= 0 and endsAtMs <= nowMs then endsAtMs = -1 end',
    after:
      'if endsAtMs == -1 and count then endsAtMs = -2 elseif endsAtMs > 0 and endsAtMs <= nowMs then endsAtMs = -1 end',
    because: NEVER_ZERO,
  },
  {
    file: `${COUNTERS}/readWindows-n.lua`,
    before: 'local isOfCustomer = KEYS[k] ~= KEYS[k + 2]',
    after: 'local isOfCustomer = KEYS[k] ~= KEYS[k - 2]',
    because:
      'A window of the key then takes the way of customers, which has the same names for it; its own check only saves calls.',
  },
  {
    file: DECIDE,
    before: 'if resetAtMs >= 0 and resetAtMs <= nowMs + LONGEST_WINDOW_MS then return resetAtMs end',
    after: 'if resetAtMs > 0 and resetAtMs <= nowMs + LONGEST_WINDOW_MS then return resetAtMs end',
    because: NEVER_ZERO,
  },
  {
    file: DECIDE,
    before: 'if notedUntilMs >= untilMs and notedUntilMs <= untilMs + REJECTION_NOTED_MS then return end',
    after: 'if notedUntilMs >= untilMs and notedUntilMs < untilMs + REJECTION_NOTED_MS then return end',
    because: 'It then notes the instant that is there already.',
  },
  {
    file: DECIDE,
    before: 'if key ~= knownKey then return tonumber(key) > tonumber(knownKey) end',
    after: 'if key ~= knownKey then return tonumber(key) >= tonumber(knownKey) end',
    because: 'The numbers differ.',
  },
  {
    file: DECIDE,
    before: 'return tonumber(plan) > tonumber(knownPlan)',
    after: 'return tonumber(plan) >= tonumber(knownPlan)',
    because: 'Equal versions were found equal before.',
  },
  {
    file: DECIDE,
    before: "if opening == 0 then pcall('ZREMRANGEBYSCORE', indexKey, '-inf', decimal(nowMs)) end",
    after: "if true then pcall('ZREMRANGEBYSCORE', indexKey, '-inf', decimal(nowMs)) end",
    because: 'Removing again, at the same instant, finds nothing.',
  },
  {
    file: DECIDE,
    before:
      "if call('PEXPIRETIME', indexKey) < resetAtMs then call('PEXPIREAT', indexKey, decimal(resetAtMs)) end",
    after:
      "if call('PEXPIRETIME', indexKey) <= resetAtMs then call('PEXPIREAT', indexKey, decimal(resetAtMs)) end",
    because: SAME_END,
  },
  {
    file: DECIDE,
    before: 'if ends[i] >= 0 then',
    after: 'if ends[i] > 0 then',
    because: NEVER_ZERO,
  },
  {
    file: DECIDE,
    before: 'if shared == version then return true end',
    after: 'if false then return true end',
    because: 'What follows finds the same; this line saves the usual call a match.',
  },
  {
    file: 'src/backend/connection.ts',
    before: "socket.off('timeout', this.#onTimeout).off('close', this.#onClose);",
    after: ';',
    because: 'Both listeners do nothing in the state `switched`; without them the socket holds less memory.',
  },
  {
    file: 'src/backend/connection.ts',
    before: "if (onread === undefined) socket.on('data', this.#onData);",
    after: "if (true) socket.on('data', this.#onData);",
    because: 'A socket that reads into buffers emits no `data`.',
  },
  ...[
    'if (false) return;',
    'if (handler === undefined && request === undefined || head === undefined || socket === undefined) return;',
    'if (handler === undefined || request === undefined && head === undefined || socket === undefined) return;',
    'if (handler === undefined || request === undefined || head === undefined && socket === undefined) return;',
  ].map((after) => ({
    file: 'src/backend/connection.ts',
    before:
      'if (handler === undefined || request === undefined || head === undefined || socket === undefined) return;',
    after,
    because: 'All four are there while the parser is not stopped; the condition is for the types.',
  })),
  {
    file: 'src/backend/connection.ts',
    before: 'if (this.#readBuffer?.isShared === true) this.#releaseBuffer();',
    after: 'if (true) this.#releaseBuffer();',
    because: 'A buffer that is not shared is then given back and taken again at once.',
  },
  ...[
    'first === colon - 2 && last === end && text.charCodeAt(colon + 1) === BLANK;',
    'first === colon + 2 && last === end && text.charCodeAt(colon - 1) === BLANK;',
  ].map((after) => ({
    file: 'src/backend/response-head.ts',
    before: 'const isTidy = first === colon + 2 && last === end && text.charCodeAt(colon + 1) === BLANK;',
    after: `const isTidy = ${after}`,
    because: 'No line is tidy then: an equal one is put together for each.',
  })),
  {
    file: 'src/backend/response-head.ts',
    before: 'for (let i = 0; i < before.names.length; i += 1) {',
    after: 'for (let i = 0; i <= before.names.length; i += 1) {',
    because: 'The line after the last one is empty, which is found at every place and has no length.',
  },
  {
    file: 'src/keys/window-names.ts',
    before: 'if (keyIds.length === 0) return names;',
    after: 'if (false) return names;',
    because: 'A query for no keys finds none; the line saves it.',
  },
  {
    file: 'src/desired-state/new-managed-keys.ts',
    before: 'if (newKeys.length % SEALED_AT_ONCE === SEALED_AT_ONCE - 1) await nextTurn();',
    after: 'if (newKeys.length % SEALED_AT_ONCE === SEALED_AT_ONCE + 1) await nextTurn();',
    because: 'The same keys are made; only other requests wait longer meanwhile.',
  },
  {
    file: 'src/desired-state/new-managed-keys.ts',
    before: 'if (newKeys.length % SEALED_AT_ONCE === SEALED_AT_ONCE - 1) await nextTurn();',
    after: 'if (true) await nextTurn();',
    because: 'The same keys are made, with more turns of the event loop.',
  },
  {
    file: 'src/events/delivery/send-delivery.ts',
    before: "signal.addEventListener('abort', abort, { once: true });",
    after: "signal.addEventListener('abort', abort, { once: false });",
    because: 'A signal aborts once.',
  },
  {
    file: 'src/keys/cache/key-cache.ts',
    before: 'let isReading = false;',
    after: 'let isReading = true;',
    because: 'The read that begins at once sets it before anything looks at it.',
  },
  {
    file: 'src/keys/cache/key-entries.ts',
    before:
      'if (this.#entries.peek(digest)?.snapshot.keyId !== snapshot.keyId) this.#entries.delete(digest);',
    after: 'if (true) this.#entries.delete(digest);',
    because: 'The same entry of the key is then removed and added; the condition saves that.',
  },
  {
    file: 'src/keys/cache/known-changes.ts',
    before: 'if (key === undefined && applied === undefined) return false;',
    after: 'if (false) return false;',
    because:
      'No version is less than 0, which stands for an unknown change; the line saves the reading of one.',
  },
  ...['false', 'true', 'index % SEALED_AT_ONCE !== 0'].map((condition) => ({
    file: 'src/keys/key-imports.ts',
    before: 'if (index % SEALED_AT_ONCE === 0) await nextTurn();',
    after: `if (${condition}) await nextTurn();`,
    because: 'The same keys are made; only other requests wait longer meanwhile, or the import does.',
  })),
  {
    file: 'src/keys/key-imports.ts',
    before: 'if (!(error instanceof InvalidBody)) throw error;',
    after: 'if (false) throw error;',
    because:
      'Any other error is a fault of the gateway, and has no `under`: the request fails as one either way.',
  },
  {
    file: 'src/limiter/guards/rejection-cache.ts',
    before: 'return isExceeded === window.isExceeded ? window : { ...window, isExceeded };',
    after: 'return false ? window : { ...window, isExceeded };',
    because: 'A copy with the same fields; the condition saves making it.',
  },
  {
    file: 'src/limiter/guards/rejection-cache.ts',
    before: 'this.#keys.delete(subject.keyId);',
    after: ';',
    because:
      'Versions only grow: an entry of an older one is read by no decision, and is replaced or goes as the oldest.',
  },
  {
    file: 'src/limiter/guards/rejection-cache.ts',
    before: 'if (!oldest.done) this.#keys.delete(oldest.value);',
    after: 'if (true) this.#keys.delete(oldest.value);',
    because: 'A full map has an oldest entry. The condition is for the type.',
  },
  {
    file: 'src/limiter/request-limits.ts',
    before: 'rules.length === 0',
    after: 'false',
    because: 'A matcher without patterns matches nothing; the condition saves asking it.',
  },
  {
    file: 'src/limiter/in-process/window-table.ts',
    before: 'for (let looked = 0; looked < SWEPT_PER_INSERT; looked += 1) {',
    after: 'for (let looked = 0; looked < SWEPT_PER_INSERT; looked -= 1) {',
    because:
      'It then looks at all entries at once, up to the last one, and removes the same; only the time differs.',
  },
  {
    file: 'src/storage/redis/decisions/decision-messages.ts',
    before: 'argumentsByList.set(limits, made);',
    after: ';',
    because: 'The words are then made again for each call, from the same limits.',
  },
  {
    file: 'src/storage/redis/decisions/decision-messages.ts',
    before: `if (cost > 0 && plain !== undefined) return \`=\${cost} \${plain}\`;`,
    after: `if (false) return \`=\${cost} \${plain}\`;`,
    because: 'The script decides the same by the JSON list; the short form saves it the reading of that.',
  },
  {
    file: 'src/storage/redis/decisions/decision-messages.ts',
    before: "if (limits.length === 1 && first.per === 'key') {",
    after: 'if (false) {',
    because: 'The loop below makes the same list, in an array that grows.',
  },
  {
    file: 'src/storage/postgres/audit/postgres-audit-log.ts',
    before: 'const now = report.isValid ? ends : await endsOf(this.#db).executeTakeFirstOrThrow();',
    after: 'const now = false ? ends : await endsOf(this.#db).executeTakeFirstOrThrow();',
    because: 'A valid log is valid, too, where its ends are read once more; the condition saves that query.',
  },
  {
    file: 'src/storage/redis/usage/redis-live-usage.ts',
    before: 'if (Array.isArray(elements) && elements.length > 1)',
    after: 'if (Array.isArray(elements) && elements.length >= 1)',
    because: 'An id without texts is then a batch without counts, which adds nothing.',
  },
  {
    file: 'src/storage/redis/usage/redis-live-usage.ts',
    before: 'if (Array.isArray(reply)) outcomes.set(write, outcomeOf(reply[index]));',
    after: 'if (true) outcomes.set(write, outcomeOf(reply[index]));',
    because: 'The script replies with an array or an error; the condition is for the types.',
  },
  {
    file: 'src/storage/redis/usage/redis-live-usage.ts',
    before: 'for (const elements of Array.isArray(reply) ? reply : []) {',
    after: 'for (const elements of true ? reply : []) {',
    because: 'The script replies with an array or an error; the condition is for the types.',
  },
  {
    file: 'src/storage/redis/usage/redis-live-usage.ts',
    before: 'if (characters > CHARACTERS_AT_ONCE) {',
    after: 'if (characters >= CHARACTERS_AT_ONCE) {',
    because: 'Writes of exactly that many characters are then sent in two calls, with the same result.',
  },
  {
    file: 'src/usage/live-usage-writer.ts',
    before: 'if (writes.length === 0) return true;',
    after: 'if (false) return true;',
    because: 'Then no write is unsettled, and no writes are sent; the line saves the steps.',
  },
  {
    file: 'src/usage/live-usage-writer.ts',
    before: 'if (last !== undefined && this.#options.clock.monotonicMs() - last.atMs < REMEMBERED_MS)',
    after: 'if (last !== undefined && this.#options.clock.monotonicMs() - last.atMs <= REMEMBERED_MS)',
    because: 'They differ at one instant, about a warning in the log.',
  },
  {
    file: 'src/management/authentication.ts',
    before: "return credential.kind === 'token' ? credential.token : undefined;",
    after: 'return true ? credential.token : undefined;',
    because: 'A malformed credential has no token, so that it is undefined as well.',
  },
];
