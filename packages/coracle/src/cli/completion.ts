import { type Command, type CommandContext, type FlagSpec, type NameKind, UsageError } from './command.ts';

type Commands = readonly Command[];

const namesOf = (commands: Commands): string => commands.map((command) => command.name).join(' ');
/** Flags by command; of a group those of all its subcommands. */
const flagsOf = (commands: Commands) =>
  commands.map((c) => {
    const names = new Set([c, ...(c.subcommands ?? [])].flatMap(({ flags }) => Object.keys(flags)));
    return [c.name, [...names, 'help'].map((f) => `--${f}`).join(' ')] as const;
  });
/** What may follow a command's name: its choices, and where it takes flags alone those. */
const wordsOf = (commands: Commands) =>
  flagsOf(commands).map(([name, flags], at) => {
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
/** Words of these commands may be files as well. */
const TAKES_FILES: ReadonlySet<string> = new Set(['cp', 'image']);
/** What fish needs to know of a command: its flags, those with a value apart, then its words. */
function fishLines({ name, flags, subcommands = [], choices, completes }: Command): string[] {
  const line = (rest: string): string => `complete -c coracle -n "__coracle_is ${name}" ${rest}`;
  const all = new Map([flags, ...subcommands.map((one) => one.flags)].flatMap((one) => Object.entries(one)));
  const lines = [...all].map(([flag, { type, short, bare, completes: kind }]) => {
    const value = kind ? ` -x -a "(__coracle_names ${kind})"` : type === 'boolean' || bare !== undefined ? '' : ' -r';
    return line(`-l ${flag}${short ? ` -s ${short}` : ''}${value}`);
  });
  return [
    ...lines,
    line('-l help'),
    ...(choices ? [line(`-f -a "${choices.join(' ')}"`)] : []),
    ...(completes ? [line(`${TAKES_FILES.has(name) ? '' : '-f '}-a "(__coracle_names ${completes})"`)] : []),
  ];
}

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
  for ((i = 2; i < \${#given[@]} - 1; i++)); do
    case \${given[i]} in
      --namespace=*|--kubeconfig=*|--data-dir=*) scope+=("\${given[i]}") ;;
      -n|--namespace|--kubeconfig|--data-dir) [ $((i + 2)) -eq \${#given[@]} ] || scope+=("\${given[i]}" "\${given[i+1]}") ;;
    esac
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
${flagsOf(commands)
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
  // The pair of a flag and its value ends before the word that is completed.
  zsh: (commands) => `#compdef coracle
_coracle() {
  if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then compadd ${namesOf(commands)}; return; fi
  local -a scope
  local i
  for ((i = 3; i < CURRENT; i++)); do
    case $words[i] in
      --namespace=*|--kubeconfig=*|--data-dir=*) scope+=("$words[i]") ;;
      -n|--namespace|--kubeconfig|--data-dir) (( i + 1 == CURRENT )) || scope+=("$words[i]" "$words[i+1]") ;;
    esac
  done
  case $words[CURRENT-1] in
${completingFlags(commands)
  .map(
    ([kind, names]) =>
      `    ${names.join('|')}) compadd -- $(coracle complete-names ${kind} $scope 2>/dev/null); return ;;`,
  )
  .join('\n')}
    ${valueFlags(commands).join('|')}) _files; return ;;
  esac
  if [[ $PREFIX == -* ]]; then
    case $words[2] in
${flagsOf(commands)
  .map(([name, flags]) => `    ${name}) compadd -- ${flags} ;;`)
  .join('\n')}
    esac
    return
  fi
  case $words[2] in
${wordsOf(commands)
  .filter(([, words]) => words !== '')
  .map(([name, words]) => `    ${name}) compadd -- ${words} ;;`)
  .join('\n')}
  esac
  case $words[2] in images|image) ;; *) compset -P '*[/@]' ;; esac
  case $words[2] in
${completing(commands)
  .map(([kind, names]) => `    ${names.join('|')}) compadd -- $(coracle complete-names ${kind} $scope 2>/dev/null) ;;`)
  .join('\n')}
  esac
  case $words[2] in cp|upload|image) _files ;; esac
}
compdef _coracle coracle
`,
  fish: (commands) => `function __coracle_is
  set -l given (commandline -opc)
  test (count $given) -gt 1; and contains -- $given[2] $argv
end
function __coracle_names
  set -l given (commandline -opc)
  set -l scope
  for i in (seq 3 (count $given))
    string match -qr '^--(namespace|kubeconfig|data-dir)=' -- $given[$i]; and set -a scope $given[$i]
    test $i -lt (count $given); and contains -- $given[$i] -n --namespace --kubeconfig --data-dir; and set -a scope $given[$i] $given[(math $i + 1)]
  end
  coracle complete-names $argv[1] $scope 2>/dev/null
end
complete -c coracle -n __fish_use_subcommand -f -a "${namesOf(commands)}"
complete -c coracle -n "__coracle_is help" -f -a "${namesOf(commands)}"
${commands.flatMap(fishLines).join('\n')}
`,
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
