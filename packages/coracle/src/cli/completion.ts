import { type Command, type CommandContext, type FlagSpec, type NameKind, UsageError } from './command.ts';

type Commands = readonly Command[];

const namesOf = (commands: Commands): string => commands.map((command) => command.name).join(' ');
/** Flags by command; of a group those of all its subcommands. */
const flagsOf = (commands: Commands, prefix: string) =>
  commands.map((c) => {
    const names = new Set([c, ...(c.subcommands ?? [])].flatMap(({ flags }) => Object.keys(flags)));
    return [c.name, [...names, 'help'].map((f) => `${prefix}${f}`).join(' ')] as const;
  });
/** What may follow a command's name: its choices, and where it takes flags alone those. */
const wordsOf = (commands: Commands) =>
  flagsOf(commands, '--').map(([name, flags], at) => {
    const { choices, words } = commands[at]!;
    return [name, choices?.join(' ') ?? (words === undefined ? flags : '')] as const;
  });

/** Rows by the names that they take: of commands those of their words, of flags those of their values. */
const byKind = (
  rows: readonly (readonly [name: string, kind: NameKind | undefined])[],
): readonly (readonly [kind: NameKind, names: readonly string[]])[] =>
  [...Map.groupBy(rows, ([, kind]) => kind)].flatMap(([kind, named]) =>
    kind === undefined ? [] : [[kind, [...new Set(named.map(([name]) => name))]] as const],
  );
const completing = (commands: Commands) => byKind(commands.map(({ name, completes }) => [name, completes] as const));
const allFlags = (commands: Commands): readonly (readonly [string, FlagSpec])[] =>
  commands.flatMap((c) => [c, ...(c.subcommands ?? [])]).flatMap(({ flags }) => Object.entries(flags));
/** A flag as it is written: `--namespace`, `-n`. */
const spellings = (name: string, { short }: FlagSpec): string[] => [`--${name}`, ...(short ? [`-${short}`] : [])];
const completingFlags = (commands: Commands) =>
  byKind(allFlags(commands).flatMap(([name, flag]) => spellings(name, flag).map((s) => [s, flag.completes] as const)));
/** Flags that take a value in every command that has them. */
const valueFlags = (commands: Commands): string[] => {
  const [booleans, strings] = [new Set<string>(), new Set<string>()];
  for (const [name, flag] of allFlags(commands))
    for (const spelling of spellings(name, flag))
      (flag.type === 'boolean' || flag.bare !== undefined ? booleans : strings).add(spelling);
  return [...strings.difference(booleans)];
};
const asked = (kind: NameKind): string => `coracle complete-names ${kind} 2>/dev/null`;

const SCRIPTS: Readonly<Record<string, (commands: Commands) => string>> = {
  // bash breaks words at : = and @ too, and puts a reply in the place of the last piece alone: \$kept is what stands before it.
  bash: (commands) => `_coracle() {
  local line=\${COMP_LINE:0:COMP_POINT} piece=\${COMP_WORDS[COMP_CWORD]} scope=() given i
  read -ra given <<<"$line"
  case $line in *[[:space:]]) given+=("") ;; esac
  local word=\${given[\${#given[@]}-1]} flag=\${given[\${#given[@]}-2]} command=\${given[1]}
  case $piece in [:=@]) piece= ;; esac
  local kept=\${word%"$piece"}
  case $word in --*=*) flag=\${word%%=*} word=\${word#*=} kept=\${kept#"$flag="} ;; esac
  if [ "\${#given[@]}" -eq 2 ] || { [ "\${#given[@]}" -eq 3 ] && [ "$command" = help ]; }; then
    COMPREPLY=($(compgen -W "${namesOf(commands)}" -- "$word"))
    return
  fi
  for ((i = 2; i < \${#given[@]} - 2; i++)); do
    case \${given[i]} in -n|--namespace|--kubeconfig|--data-dir) scope+=("\${given[i]}" "\${given[i+1]}") ;; esac
  done
  _coracle_names() {
    COMPREPLY+=($(compgen -P "$2" -W "$(coracle complete-names "$1" \${scope[@]+"\${scope[@]}"} 2>/dev/null)" -- "$3" || true))
  }
  case $flag in
${completingFlags(commands)
  .map(([kind, names]) => `    ${names.join('|')}) _coracle_names ${kind} '' "$word"; _coracle_cut "$kept"; return ;;`)
  .join('\n')}
    ${valueFlags(commands).join('|')}) return ;;
  esac
  case $word in
    -*) case $command in
${flagsOf(commands, '--')
  .map(([name, flags]) => `      ${name}) COMPREPLY=($(compgen -W "${flags}" -- "$word" || true)) ;;`)
  .join('\n')}
    esac; return ;;
  esac
  case $command in
${wordsOf(commands)
  .map(([name, words]) => `    ${name}) COMPREPLY=($(compgen -W "${words}" -- "$word" || true)) ;;`)
  .join('\n')}
  esac
  local kind=
  case $command in
    images|image) ;;
    *) word=\${word##*@}; case $word in *:*) return ;; */*) kind=\${word%/*}/ word=\${word##*/} ;; esac ;;
  esac
  case $command in
${completing(commands)
  .map(([kind, names]) => `    ${names.join('|')}) _coracle_names ${kind} "$kind" "$word" ;;`)
  .join('\n')}
  esac
  case $command in images|image) _coracle_cut "$kept" ;; esac
}
_coracle_cut() { if [ "\${#COMPREPLY[@]}" -gt 0 ]; then COMPREPLY=("\${COMPREPLY[@]#"$1"}"); fi; }
complete -o default -F _coracle coracle
`,
  zsh: (commands) => `#compdef coracle
_coracle() {
  if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then compadd ${namesOf(commands)}; return; fi
  case $words[CURRENT-1] in
${completingFlags(commands)
  .map(([kind, names]) => `    ${names.join('|')}) compadd -- $(${asked(kind)}); return ;;`)
  .join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    case $words[2] in
${flagsOf(commands, '--')
  .map(([name, flags]) => `    ${name}) compadd -- ${flags} ;;`)
  .join('\n')}
    esac
    return
  fi
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
      .concat(`complete -c coracle -n "__fish_seen_subcommand_from help" -f -a "${namesOf(commands)}"`)
      .concat(
        completingFlags(commands).flatMap(([kind, names]) =>
          names
            .filter((name) => name.startsWith('--'))
            .map((name) => `complete -c coracle -l ${name.slice(2)} -x -a "(${asked(kind)})"`),
        ),
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
