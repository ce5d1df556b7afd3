/** What a command of the `coracle` program is, and how its words are read. */
import { resolve } from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { nearest } from './suggestions.ts';

export interface FlagSpec {
  readonly type: 'string' | 'boolean';
  /** Shown in help for string flags: `DIR`, `N`. */
  readonly value?: string;
  readonly summary: string;
  readonly multiple?: boolean;
  /** One letter: `f` for `-f`. */
  readonly short?: string;
  /** Of a string flag: the value that it has when it is given without one; a value is then given with `=` alone. */
  readonly bare?: string;
  /** An empty value has a meaning of its own; elsewhere it is refused. */
  readonly mayBeEmpty?: boolean;
  /** Head under which help shows it, behind those without. */
  readonly group?: string;
  /** What its value names, where that can be asked: for completion. */
  readonly completes?: NameKind;
}

/** A flag that takes a value, which help calls `value`. */
export const valueFlag = (
  value: string,
  summary: string,
  more: Omit<FlagSpec, 'type' | 'value' | 'summary'> = {},
): FlagSpec => ({ type: 'string', value, summary, ...more });

/** A flag that is given or not. */
export const switchFlag = (summary: string, more: Pick<FlagSpec, 'short' | 'group'> = {}): FlagSpec => ({
  type: 'boolean',
  summary,
  ...more,
});

/**
 * Flags as help shows them, each with its summary: `NAME VALUE` takes a value, `NAME VALUE...` one each time it is given,
 * and `NAME` alone none.
 */
export const flagTable = (summaries: Readonly<Record<string, string>>): Command['flags'] =>
  Object.fromEntries(
    Object.entries(summaries).map(([shown, summary]) => {
      const [, name = '', value, again] = /^(\S+?)(?: (\S+?)(\.{3})?)?$/.exec(shown) ?? [];
      const flag =
        value === undefined ? switchFlag(summary) : valueFlag(value, summary, again ? { multiple: true } : {});
      return [name, flag];
    }),
  );

export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface CommandContext {
  readonly flags: FlagValues;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes to standard output. */
  print(text: string): void;
  /** Writes to standard error. */
  note(text: string): void;
  /** Says how far something is: on a terminal in one line that is written over. */
  progress(text: string): void;
  /** Aborted by Ctrl-C, unless the command handles that itself. */
  readonly signal: AbortSignal;
}

/** Of what completion asks for the names. */
export const NAME_KINDS = [
  'machines',
  'deleted',
  'nodes',
  'images',
  'namespaces',
  'instancetypes',
  'preferences',
] as const;
export type NameKind = (typeof NAME_KINDS)[number];

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** Positional words as shown in help: `NAME`, `[NAME]`. A command without takes none. */
  readonly words?: string;
  /** What the first word may be, where that is a fixed set: for completion. */
  readonly choices?: readonly string[];
  /** What its words name, where the cluster has the names: for completion. */
  readonly completes?: NameKind;
  /** Head under which the overview shows it; those without come last. A hidden one is in no overview. */
  readonly group?: string;
  readonly hidden?: boolean;
  /** Whole calls, for help. */
  readonly examples?: readonly string[];
  readonly flags: Readonly<Record<string, FlagSpec>>;
  /** Its words from the second on are another program's, with the flags among them, as of ssh. */
  readonly passesOn?: true;
  /** Of a group (`commandGroup`): the commands that its first word names. */
  readonly subcommands?: readonly Command[];
  /** Loaded only when the command runs. Resolves to the exit code. */
  readonly load: () => Promise<(context: CommandContext) => Promise<number>>;
}

/** The call is wrong: one line that says how it is right, exit code 1. */
export class UsageError extends Error {}

/** The command could not do its work: one line, exit code 1. */
export class CommandError extends Error {}

/** A command whose first word names another command with flags of its own: `coracle GROUP SUBCOMMAND`. */
export function commandGroup(name: string, summary: string, rows: readonly Command[]): Command {
  const names = rows.map((row) => row.name);
  return {
    name,
    summary,
    words: names.join(' | '),
    choices: names,
    flags: {},
    subcommands: rows.map((row) => ({ ...row, name: `${name} ${row.name}` })),
    load: async () => async () => {
      throw new UsageError(`${name} takes: ${names.join(', ')} (see: coracle ${name} --help)`);
    },
  };
}

/** The command that the words name, and what is left of them; undefined when there is none. */
export function findCommand(
  commands: readonly Command[],
  [name, ...rest]: readonly string[],
): { readonly command: Command; readonly rest: readonly string[] } | undefined {
  const command = commands.find((candidate) => candidate.name === name);
  if (!command) return undefined;
  const sub = command.subcommands && findCommand(command.subcommands, [`${name} ${rest[0] ?? ''}`, ...rest.slice(1)]);
  return sub ?? { command, rest };
}

/** Values that Go's programs take and parseArgs does not: `--flag=false`, and a flag that may do without its value. */
function goStyle(command: Command, argv: readonly string[]): { args: string[]; set: Map<string, boolean> } {
  const set = new Map<string, boolean>();
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  const args = argv.slice(0, end).flatMap((word) => {
    const [, name = '', value] = /^--([\w-]+)(?:=(.*))?$/s.exec(word) ?? [];
    const flag = Object.hasOwn(command.flags, name) ? command.flags[name] : undefined;
    if (flag?.type === 'boolean') set.delete(name);
    if (flag?.type === 'boolean' && (value === 'true' || value === 'false')) {
      set.set(name, value === 'true');
      return [];
    }
    return flag?.bare !== undefined && value === undefined ? [`${word}=${flag.bare}`] : [word];
  });
  return { args: [...args, ...argv.slice(end)], set };
}

/** With `--` before the second word, where what is from there on is another program's. */
function passedOn({ flags, passesOn }: Command, argv: readonly string[]): readonly string[] {
  if (!passesOn) return argv;
  const takesValue = (word: string): boolean =>
    Object.entries(flags).some(
      ([name, { type, short, bare }]) =>
        type === 'string' && bare === undefined && (word === `--${name}` || (short && word === `-${short}`)),
    );
  let words = 0;
  for (let at = 0; at < argv.length && argv[at] !== '--'; at++) {
    const word = argv[at]!;
    if (takesValue(word)) at++;
    else if (!word.startsWith('-') && ++words === 2) return [...argv.slice(0, at), '--', ...argv.slice(at)];
  }
  return argv;
}

/** Reads a command's flags and words. Throws UsageError. */
export function readArguments(command: Command, argv: readonly string[]): { flags: FlagValues; words: string[] } {
  const options: NonNullable<ParseArgsConfig['options']> = { help: { type: 'boolean', short: 'h' } };
  for (const [name, flag] of Object.entries(command.flags))
    options[name] = { type: flag.type, multiple: flag.multiple ?? false, ...(flag.short && { short: flag.short }) };
  try {
    const { args, set } = goStyle(command, passedOn(command, argv));
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true, strict: true });
    if (positionals.length > 0 && command.words === undefined && values['help'] !== true)
      throw new Error(`${command.name} takes flags only, not "${positionals[0]}"`);
    // An empty value is a shell variable that was not set; taken as it is, `--data-dir ""` would mean the current directory.
    for (const [name, value] of Object.entries(values))
      if ([value].flat().includes('') && !command.flags[name]?.mayBeEmpty) throw new Error(`--${name} is empty`);
    return { flags: { ...values, ...Object.fromEntries(set) } as FlagValues, words: positionals };
  } catch (error) {
    const first = (error as Error).message.split(/[.?]\s/)[0]!.replace(/\.$/, '');
    const message = first.replace(
      /^Option '(?:-\w, )?--?([\w-]+)(?: <value>)?' argument (?:missing|is ambiguous)$/,
      (_, flag: string) => `${flag.length > 1 ? '--' : '-'}${flag} takes a value`,
    );
    const [, unknown] = /^Unknown option '--([\w-]+)'/.exec(message) ?? [];
    const meant = unknown === undefined ? undefined : nearest(unknown, Object.keys(command.flags));
    throw new UsageError(
      `${message}${meant === undefined ? '' : `; did you mean --${meant}?`} (see: coracle ${command.name} --help)`,
    );
  }
}

/** Help of one command. */
export function commandHelp(command: Command): string {
  if (command.subcommands) {
    const width = Math.max(...command.subcommands.map(({ name }) => name.length)) + 2;
    const rows = command.subcommands.map(({ name, summary }) => `  ${name.padEnd(width)}${summary}`);
    return `${command.summary}\n\nUsage: coracle ${command.name} SUBCOMMAND [flags]\n\nSubcommands:\n${rows.join('\n')}\n\nHelp of one: coracle ${command.name} SUBCOMMAND --help\n`;
  }
  const usage = `coracle ${command.name} [flags]${command.words ? ` ${command.words}` : ''}`;
  const examples = command.examples ? `\nExamples:\n${command.examples.map((call) => `  ${call}`).join('\n')}\n` : '';
  return `${command.summary}\n\nUsage: ${usage}\n${examples}\n${flagsHelp(command)}\n`;
}

/** Flags under the heads of their groups, those without a group first. */
function flagsHelp(command: Command): string {
  const flags = Object.entries({ ...command.flags, help: { type: 'boolean', summary: 'show this' } as FlagSpec });
  const left = ([name, flag]: readonly [string, FlagSpec]): string =>
    `  --${name}${flag.short ? `, -${flag.short}` : ''}${valueText(flag)}`;
  const width = Math.max(...flags.map((flag) => left(flag).length)) + 2;
  const groups = Map.groupBy(flags, ([, { group }]) => group ?? 'Flags');
  const heads = ['Flags', ...[...groups.keys()].filter((head) => head !== 'Flags')];
  return heads
    .map((head) => {
      const rows = (groups.get(head) ?? []).map((flag) => `${left(flag).padEnd(width)}${flag[1].summary}`);
      return `${head}:\n${rows.join('\n')}`;
    })
    .join('\n\n');
}

function valueText({ type, value = 'VALUE', bare }: FlagSpec): string {
  if (type === 'boolean') return '';
  return bare === undefined ? ` ${value}` : `[=${value}]`;
}

/** A string flag, or undefined. */
export const textFlag = (flags: FlagValues, name: string): string | undefined => {
  const value = flags[name];
  return typeof value === 'string' ? value : undefined;
};

/** A whole number flag within bounds. Throws UsageError that says what is wrong. */
export function numberFlag(
  flags: FlagValues,
  name: string,
  bounds: { readonly min: number; readonly max: number; readonly or: number },
): number {
  const text = textFlag(flags, name);
  if (text === undefined) return bounds.or;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < bounds.min || value > bounds.max)
    throw new UsageError(`--${name} takes a whole number from ${bounds.min} to ${bounds.max}, not "${text}"`);
  return value;
}

/** Flags as words again, for a process that works in another directory: files and directories as they are from here. */
export const flagArguments = (specs: Command['flags'], flags: FlagValues): string[] =>
  Object.entries(specs).flatMap(([name, { value }]) => {
    const given = flags[name];
    if (typeof given === 'boolean') return given ? [`--${name}`] : [];
    const isPath = value === 'FILE' || value === 'DIR';
    return [given ?? []].flat().map((text) => `--${name}=${isPath ? resolve(text) : text}`);
  });

/** The values of a flag that may be given again; empty when it was not given. */
export const listFlag = (flags: FlagValues, name: string): readonly string[] => {
  const value = flags[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
};

/** A message in one line: what a compiler has to say takes several, with a mark below the place. */
export const oneLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\s*\n[\s|.^]*/g, ' ').trim();

/** What `act` returns; what it throws is thrown as `Failure`, in one line behind `prefix`. */
export function failingAs<T>(Failure: typeof UsageError | typeof CommandError, prefix: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw new Failure(`${prefix}${oneLine(error)}`);
  }
}

/** `PATH: what is wrong with it`, without the code and the call of the system. */
export const fileProblem = (path: string, error: unknown): string => {
  const text = oneLine(error).replace(/^E[A-Z]+: |, (?:open|stat|read|mkdir|access)(?: '.*')?$/g, '');
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === 'EISDIR') return `${path} is a directory`;
  return code === 'EEXIST' && syscall === 'mkdir' ? `${path} is a file, no directory` : `${path}: ${text}`;
};
