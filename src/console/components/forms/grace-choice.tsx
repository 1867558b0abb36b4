import styles from './grace-choice.module.css';

/** A time of grace that is offered, and what it means. */
export interface Grace {
  readonly seconds: number;
  readonly label: string;
  readonly consequence: string;
}

interface GraceChoiceProps {
  readonly legend: string;
  readonly graces: readonly Grace[];
  /** In seconds. */
  readonly chosen: number;
  readonly onChange: (seconds: number) => void;
}

/** For how long the previous secret of a key or a token works beside the new one. */
export function GraceChoice({ legend, graces, chosen, onChange }: GraceChoiceProps) {
  return (
    <fieldset className={styles.choices}>
      <legend>{legend}</legend>
      {graces.map(({ seconds, label, consequence }) => (
        <label key={seconds} className={styles.choice}>
          <input type="radio" name="grace" checked={chosen === seconds} onChange={() => onChange(seconds)} />
          <span>
            {label}
            <small>{consequence}</small>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
