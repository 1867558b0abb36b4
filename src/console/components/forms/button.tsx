import type { ComponentProps } from 'react';
import { Link } from 'wouter';
import { classes } from '../layout/classes.ts';
import styles from './button.module.css';

interface Look {
  /** `primary`: the one main action of a page; `danger`: destroys something; `quiet`: without a border. */
  readonly look?: 'primary' | 'danger' | 'quiet' | undefined;
  readonly small?: boolean | undefined;
  /** Shows an icon alone; `aria-label` names it. */
  readonly icon?: boolean | undefined;
}

type ButtonProps = ComponentProps<'button'> & Look;

export function Button({ look, small, icon, className, type = 'button', ...props }: ButtonProps) {
  return <button type={type} className={classes(classNames({ look, small, icon }), className)} {...props} />;
}

/** A button that looks like a link, in a text or a table. */
export function TextButton({ className, ...props }: ComponentProps<'button'>) {
  return <button type="button" className={classes(styles.text, className)} {...props} />;
}

interface ButtonLinkProps extends Pick<Look, 'look'> {
  readonly href: string;
  readonly children: React.ReactNode;
}

/** A link to another page of the console that looks like a button. */
export function ButtonLink({ look, ...props }: ButtonLinkProps) {
  return <Link className={classNames({ look })} {...props} />;
}

/** A link that leaves the console, and looks like a button. */
export function ButtonAnchor({ look, className, ...props }: ComponentProps<'a'> & Pick<Look, 'look'>) {
  return <a className={classes(classNames({ look }), className)} {...props} />;
}

function classNames({ look, small, icon }: Look): string {
  return classes(
    styles.button,
    look !== undefined && styles[look],
    small === true && styles.small,
    icon === true && styles.icon,
  );
}
