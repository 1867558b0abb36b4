import styles from './grace-choice.module.css';

const GRACES = [
  { seconds: 0, label: 'Now' },
  { seconds: 3600, label: '1 hour' },
  { seconds: 86_400, label: '24 hours' },
  { seconds: 604_800, label: '7 days' },
];

/** What each grace period means for the users of the previous secret. */
export type Consequences = readonly [now: string, hour: string, day: string, week: string];

interface GraceChoiceProps {
  readonly consequences: Consequences;
  /** In seconds. */
  readonly chosen: number;
  readonly onChange: (seconds: number) => void;
}

/** Chooses how long the previous secret of a key or a token stays valid beside the new one. */
export function GraceChoice({ consequences, chosen, onChange }: GraceChoiceProps) {
  return (
    <fieldset className={styles.choices}>
      <legend>When the previous secret ends</legend>
      {GRACES.map(({ seconds, label }, index) => (
        <label key={seconds} className={styles.choice}>
          <input type="radio" name="grace" checked={chosen === seconds} onChange={() => onChange(seconds)} />
          <span>
            {label}
            <small>{consequences[index]}</small>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
