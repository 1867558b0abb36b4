import styles from './grace-choice.module.css';

/** A grace period to choose, with an explanation. */
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

/** Chooses how long the previous secret of a key or a token stays valid beside the new one. */
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
