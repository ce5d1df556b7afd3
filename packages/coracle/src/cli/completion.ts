import { type Command, type CommandContext, type NameKind, UsageError } from './command.ts';

type Commands = readonly Command[];

const namesOf = (commands: Commands): string => commands.map((command) => command.name).join(' ');
/** Flags by command; of a group those of all its subcommands. */
const flagsOf = (commands: Commands, prefix: string) =>
  commands.map((c) => {
    const names = new Set([c, ...(c.subcommands ?? [])].flatMap(({ flags }) => Object.keys(flags)));
    return [c.name, [...names, 'help'].map((f) => `${prefix}${f}`).join(' ')] as const;
  });
/** What may follow a command's name: its choices and its flags. */
const wordsOf = (commands: Commands) =>
  flagsOf(commands, '--').map(
    ([name, flags], at) => [name, [...(commands[at]!.choices ?? []), flags].join(' ')] as const,
  );

/** Commands by the names that their words take, such as `start|stop`. */
const completing = (commands: Commands): readonly (readonly [kind: NameKind, names: readonly string[]])[] =>
  [...Map.groupBy(commands, ({ completes }) => completes)].flatMap(([kind, rows]) =>
    kind === undefined ? [] : [[kind, rows.map(({ name }) => name)] as const],
  );
const asked = (kind: NameKind): string => `coracle complete-names ${kind} 2>/dev/null`;

const SCRIPTS: Readonly<Record<string, (commands: Commands) => string>> = {
  bash: (commands) => `_coracle() {
  local word=\${COMP_WORDS[COMP_CWORD]}
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${namesOf(commands)}" -- "$word")); return; fi
  case \${COMP_WORDS[1]} in
${wordsOf(commands)
  .map(([name, words]) => `    ${name}) COMPREPLY=($(compgen -W "${words}" -- "$word" || true)) ;;`)
  .join('\n')}
  esac
  case $word in -*) return ;; esac
  case \${COMP_WORDS[1]} in
${completing(commands)
  .map(
    ([kind, names]) => `    ${names.join('|')}) COMPREPLY+=($(compgen -W "$(${asked(kind)})" -- "$word" || true)) ;;`,
  )
  .join('\n')}
  esac
}
complete -o default -F _coracle coracle
`,
  zsh: (commands) => `#compdef coracle
_coracle() {
  if (( CURRENT == 2 )); then compadd ${namesOf(commands)}; return; fi
  case $words[2] in
${wordsOf(commands)
  .map(([name, words]) => `    ${name}) compadd -- ${words} ;;`)
  .join('\n')}
  esac
  case $words[2] in
${completing(commands)
  .map(([kind, names]) => `    ${names.join('|')}) compadd -- $(${asked(kind)}) ;;`)
  .join('\n')}
  esac
}
compdef _coracle coracle
`,
  fish: (commands) =>
    `complete -c coracle -n __fish_use_subcommand -f -a "${namesOf(commands)}"\n${flagsOf(commands, '')
      .flatMap(([name, flags]) =>
        flags.split(' ').map((flag) => `complete -c coracle -n "__fish_seen_subcommand_from ${name}" -l ${flag}`),
      )
      .join('\n')}\n${commands
      .filter((c) => c.choices)
      .map((c) => `complete -c coracle -n "__fish_seen_subcommand_from ${c.name}" -f -a "${c.choices!.join(' ')}"\n`)
      .join('')}${completing(commands)
      .map(
        ([kind, names]) =>
          `complete -c coracle -n "__fish_seen_subcommand_from ${names.join(' ')}" -a "(${asked(kind)})"\n`,
      )
      .join('')}`,
};

/** `coracle completion SHELL`, for these commands. */
export const completionOf =
  (all: Commands) =>
  async ({ words, print }: CommandContext): Promise<number> => {
    const shell = words[0] ?? '';
    const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
    if (!script || words.length !== 1) throw new UsageError('completion takes one of: bash, zsh, fish');
    print(script(all.filter(({ hidden }) => hidden !== true)));
    return 0;
  };
