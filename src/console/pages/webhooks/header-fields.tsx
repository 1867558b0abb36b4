import { Plus, X } from 'lucide-react';
import { useId } from 'react';
import { Button } from '../../components/forms/button.tsx';
import { Input } from '../../components/forms/field.tsx';
import { focusAround } from '../../components/forms/focus-around.ts';
import { type HeaderDraft, hasName } from './webhook-draft.ts';
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
        <Row
          // biome-ignore lint/suspicious/noArrayIndexKey: a row has no other identity while it is typed
          key={index}
          place={index + 1}
          header={header}
          isRepeated={hasName(headers.slice(0, index), header.name)}
          onChange={(fields) => change(index, fields)}
          onRemove={() => onChange(headers.filter((_, at) => at !== index))}
        />
      ))}
      {headers.length < MOST && (
        <Button ref={focusAround} small onClick={() => onChange([...headers, { name: '', value: '' }])}>
          <Plus aria-hidden="true" />
          Add header
        </Button>
      )}
    </>
  );
}

interface RowProps {
  /** From 1. */
  readonly place: number;
  readonly header: HeaderDraft;
  /** A row above has the same name. */
  readonly isRepeated: boolean;
  readonly onChange: (fields: Partial<HeaderDraft>) => void;
  readonly onRemove: () => void;
}

function Row({ place, header, isRepeated, onChange, onRemove }: RowProps) {
  const faultId = useId();
  const fault = isRepeated ? 'A header above has this name.' : '';
  return (
    <>
      <div className={styles.header}>
        <Input
          aria-label={`Name of header ${place}`}
          aria-invalid={isRepeated}
          aria-describedby={isRepeated ? faultId : undefined}
          // The form is not submitted with it.
          ref={(input) => input?.setCustomValidity(fault)}
          placeholder="Authorization"
          autoComplete="off"
          spellCheck={false}
          value={header.name}
          onChange={({ target }) => onChange({ name: target.value })}
        />
        <Input
          aria-label={`Value of header ${place}`}
          placeholder="Bearer …"
          // A row appears with a name only by "Write them again", and that button goes away with the focus.
          autoFocus={place === 1 && header.name !== ''}
          autoComplete="off"
          spellCheck={false}
          value={header.value}
          onChange={({ target }) => onChange({ value: target.value })}
        />
        <Button ref={focusAround} look="quiet" icon aria-label={`Remove header ${place}`} onClick={onRemove}>
          <X aria-hidden="true" />
        </Button>
      </div>
      {isRepeated && (
        <p id={faultId} className={styles.error}>
          {fault}
        </p>
      )}
    </>
  );
}
