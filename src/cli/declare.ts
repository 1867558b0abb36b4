import type { Command } from 'commander';
import type { Terminal } from './terminal.ts';

/** Adds what a command does: its options and arguments, or its subcommands. */
export type Declare = (command: Command, terminal: Terminal) => void;
