import { Plus, X } from 'lucide-react';
import { Button } from '../../components/forms/button.tsx';
import { Input } from '../../components/forms/field.tsx';
import type { HeaderDraft } from './webhook-draft.ts';
import styles from './webhooks.module.css';

const MOST = 10;

interface HeaderFieldsProps {
  /** Undefined: they stay as they are. */
  readonly headers: readonly HeaderDraft[] | undefined;
  /** The names of the headers that the webhook has. */
  readonly present: readonly string[];
  readonly onChange: (headers: readonly HeaderDraft[] | undefined) => void;
  readonly error: string | undefined;
}

/** The headers that are added to each request. Their values are kept encrypted and never shown again. */
export function HeaderFields({ headers, present, onChange, error }: HeaderFieldsProps) {
  return (
    <fieldset aria-describedby={error === undefined ? undefined : 'headers-error'}>
      <legend>
        Headers <span className={styles.optional}>optional</span>
      </legend>
      <p className={styles.hint}>
        Added to each request, for example a credential of the receiver. Values are never shown again.
      </p>
      {error !== undefined && (
        <p id="headers-error" className={styles.error} role="alert">
          {error}
        </p>
      )}
      {headers === undefined ? (
        <p className={styles.kept}>
          <span>
            Stay as they are: <code>{present.join(', ')}</code>
          </span>
          <Button small onClick={() => onChange(present.map((name) => ({ name, value: '' })))}>
            Write them again
          </Button>
        </p>
      ) : (
        <Rows headers={headers} onChange={onChange} />
      )}
    </fieldset>
  );
}

interface RowsProps {
  readonly headers: readonly HeaderDraft[];
  readonly onChange: (headers: readonly HeaderDraft[]) => void;
}

function Rows({ headers, onChange }: RowsProps) {
  const change = (index: number, fields: Partial<HeaderDraft>) =>
    onChange(headers.map((header, at) => (at === index ? { ...header, ...fields } : header)));
  return (
    <>
      {headers.map((header, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row has no other identity while it is typed
        <div key={index} className={styles.header}>
          <Input
            aria-label={`Name of header ${index + 1}`}
            placeholder="Authorization"
            autoComplete="off"
            spellCheck={false}
            value={header.name}
            onChange={({ target }) => change(index, { name: target.value })}
          />
          <Input
            aria-label={`Value of header ${index + 1}`}
            placeholder="Bearer …"
            autoComplete="off"
            spellCheck={false}
            value={header.value}
            onChange={({ target }) => change(index, { value: target.value })}
          />
          <Button
            look="quiet"
            icon
            aria-label={`Remove header ${index + 1}`}
            onClick={() => onChange(headers.filter((_, at) => at !== index))}
          >
            <X aria-hidden="true" />
          </Button>
        </div>
      ))}
      {headers.length < MOST && (
        <Button small onClick={() => onChange([...headers, { name: '', value: '' }])}>
          <Plus aria-hidden="true" />
          Add header
        </Button>
      )}
    </>
  );
}
