import { script } from '@bomb.sh/tab';
import { Argument } from 'commander';
import type { Declare } from '../declare.ts';
import { BASH_SCRIPT } from './completion-bash.ts';

const SHELLS = ['bash', 'zsh', 'fish', 'powershell'];

export const declareCompletion: Declare = (command, { stdout }) =>
  void command
    .description(
      'Prints a script by which a shell completes commands, options, and the ids of keys, plans, tokens, webhooks and contexts. Bash needs the package bash-completion for it.',
    )
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .addHelpText(
      'after',
      `
Examples:
  source <(tollgate completion bash)
  tollgate completion zsh > "\${fpath[1]}/_tollgate"
  tollgate completion fish > ~/.config/fish/completions/tollgate.fish
  tollgate completion powershell | Out-String | Invoke-Expression`,
    )
    .action((shell: string) => {
      if (shell === 'bash') stdout.write(BASH_SCRIPT);
      else script(shell, 'tollgate', 'tollgate');
    });
