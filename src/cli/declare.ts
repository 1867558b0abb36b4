import type { Command } from 'commander';
import type { Terminal } from './terminal.ts';

/** Adds the options, arguments and action of a command, or its subcommands. */
export type Declare = (command: Command, terminal: Terminal) => void;
