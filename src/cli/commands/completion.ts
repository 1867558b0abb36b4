import { script } from '@bomb.sh/tab';
import { Argument } from 'commander';
import type { Declare } from '../declare.ts';

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
      else if (shell === 'powershell') stdout.write(powershellScript());
      else script(shell, 'tollgate', 'tollgate');
    });

/**
 * The script of the library for PowerShell, which quotes each word of the line and gives it to `Invoke-Expression`. The library doubles only
 * the ASCII quote, but U+2018 to U+201B end a text in single quotes as well: what follows them on the line would be run.
 */
function powershellScript(): string {
  return printed(() => script('powershell', 'tollgate', 'tollgate')).replace(
    `-replace "'", "''"`,
    // .NET's escapes, because the encoding in which PowerShell reads a script differs from system to system.
    () => `-replace "['\\u2018-\\u201B]", '$0$0'`,
  );
}

/** What a call of the library prints, which it does by `console.log` alone. */
function printed(print: () => void): string {
  const { log } = console;
  let text = '';
  console.log = (line: string) => {
    text += `${line}\n`;
  };
  try {
    print();
  } finally {
    console.log = log;
  }
  return text;
}

/**
 * The script for bash. Unlike that of the library for completions it runs nothing that stands on the line, and nothing that a candidate says:
 * that one gives the line to `eval`, with its redirections, and the candidates to `compgen -W`, which expands them.
 */
const BASH_SCRIPT = `# bash completion for tollgate

_tollgate() {
    local cur prev words cword value description
    # Takes redirections out of the words, and completes their files itself.
    _init_completion -n '=:' || return
    COMPREPLY=()
    while IFS=$'\\t' read -r value description; do
        [[ $value != :* && $value == "$cur"* ]] && COMPREPLY+=("$value")
    done < <(tollgate complete -- "\${words[@]:1:cword-1}" "$cur" 2>/dev/null)
}

complete -F _tollgate tollgate
`;
