import type { Scope } from '../../api/api-context.tsx';
import { useScopes } from '../../api/api-context.tsx';
import { fieldSentence } from '../../api/fault-kind.ts';
import { Button } from '../../components/forms/button.tsx';
import { Checkbox, Field, Input, TextField } from '../../components/forms/field.tsx';
import { dateText } from '../../format/date-text.ts';
import { localTimeZone } from '../../format/exact-time.ts';
import { now } from '../../format/now.ts';
import { PRESETS, SCOPE_WORDS } from './scope-words.ts';
import type { TokenDraft } from './token-draft.ts';
import styles from './tokens.module.css';

const DAY_MS = 86_400_000;
const EXPIRIES = [
  { label: '30 days', days: 30 },
  { label: '90 days', days: 90 },
  { label: 'a year', days: 365 },
] as const;

interface TokenFormProps {
  readonly draft: TokenDraft;
  readonly onChange: (draft: TokenDraft) => void;
  readonly error: unknown;
}

/** The fields of a token. A token can grant only its own scopes: others are hidden. */
export function TokenForm({ draft, onChange, error }: TokenFormProps) {
  const set = (change: Partial<TokenDraft>) => onChange({ ...draft, ...change });
  const fault = (field: string) => fieldSentence(error, field);
  return (
    <>
      <TextField
        label="Name"
        error={fault('name')}
        hint="Whose it is: it stands in the audit log."
        placeholder="Support"
        maxLength={255}
        value={draft.name}
        onText={(text) => set({ name: text })}
      />
      <ScopeFields scopes={draft.scopes} onChange={(scopes) => set({ scopes })} error={fault('scopes')} />
      <TextField
        label="Only keys with all of these tags"
        optional
        error={fault('onlyTags')}
        hint="For this token other keys do not exist. What it makes gets the tags."
        placeholder="eu partner:acme"
        value={draft.onlyTags}
        onText={(text) => set({ onlyTags: text })}
      />
      <TextField
        label="Only from these addresses"
        optional
        error={fault('allowedIps')}
        hint="Addresses or CIDR blocks; empty: from anywhere."
        placeholder="203.0.113.0/24"
        value={draft.allowedIps}
        onText={(text) => set({ allowedIps: text })}
      />
      <ExpiryField
        value={draft.expires}
        error={fault('expiresAt')}
        onChange={(expires) => set({ expires })}
      />
    </>
  );
}

interface ExpiryFieldProps {
  /** The last valid date; empty if there is none. */
  readonly value: string;
  readonly error: string | undefined;
  readonly onChange: (day: string) => void;
}

function ExpiryField({ value, error, onChange }: ExpiryFieldProps) {
  return (
    <Field
      label="Valid until the end of"
      optional
      error={error}
      hint={`In ${localTimeZone()}; empty: it never expires.`}
    >
      {(control) => (
        <div className={styles.expiry}>
          <Input
            {...control}
            type="date"
            min={dateText(now())}
            value={value}
            onChange={({ target }) => onChange(target.value)}
          />
          {EXPIRIES.map(({ label, days }) => (
            <Button key={days} small onClick={() => onChange(dateText(now() + days * DAY_MS))}>
              {label}
            </Button>
          ))}
        </div>
      )}
    </Field>
  );
}

interface ScopeFieldsProps {
  readonly scopes: readonly Scope[];
  readonly onChange: (scopes: readonly Scope[]) => void;
  readonly error: string | undefined;
}

function ScopeFields({ scopes, onChange, error }: ScopeFieldsProps) {
  const { can } = useScopes();
  const grantable = (Object.keys(SCOPE_WORDS) as Scope[]).filter(
    (scope) => can(scope) || scopes.includes(scope),
  );
  const presets = Object.entries(PRESETS).filter(([, preset]) => preset.scopes.every(can));
  const isChosen = (preset: readonly Scope[]) =>
    preset.length === scopes.length && preset.every((scope) => scopes.includes(scope));
  return (
    <fieldset>
      <legend>It may</legend>
      <div className={styles.presets}>
        {presets.map(([name, preset]) => (
          <button
            key={name}
            type="button"
            className={styles.preset}
            aria-pressed={isChosen(preset.scopes)}
            onClick={() => onChange(preset.scopes)}
          >
            <strong>{preset.label}</strong>
            <span>{preset.about}</span>
          </button>
        ))}
      </div>
      {error !== undefined && (
        <p className={styles.error} role="alert">
          {error}
        </p>
      )}
      <div className={styles.scopeList}>
        {grantable.map((scope) => (
          <Checkbox
            key={scope}
            label={<code>{scope}</code>}
            hint={SCOPE_WORDS[scope]}
            checked={scopes.includes(scope)}
            onChange={(event) =>
              onChange(event.target.checked ? [...scopes, scope] : scopes.filter((each) => each !== scope))
            }
          />
        ))}
      </div>
    </fieldset>
  );
}
