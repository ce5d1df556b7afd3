/** What a command of the `coracle` program is, and how its words are read. */
import { type ParseArgsConfig, parseArgs } from 'node:util';

export interface FlagSpec {
  readonly type: 'string' | 'boolean';
  /** Shown in help for string flags: `DIR`, `N`. */
  readonly value?: string;
  readonly summary: string;
  readonly multiple?: boolean;
  /** One letter: `f` for `-f`. */
  readonly short?: string;
  /** An empty value has a meaning of its own; elsewhere it is refused. */
  readonly mayBeEmpty?: boolean;
}

export type FlagValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface CommandContext {
  readonly flags: FlagValues;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes to standard output. */
  print(text: string): void;
  /** Writes to standard error: progress, notes. */
  note(text: string): void;
  /** Aborted by Ctrl-C, unless the command handles that itself. */
  readonly signal: AbortSignal;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** Positional words as shown in help: `NAME`, `[NAME]`. A command without takes none. */
  readonly words?: string;
  /** What the first word may be, where that is a fixed set: for completion. */
  readonly choices?: readonly string[];
  readonly flags: Readonly<Record<string, FlagSpec>>;
  /** Loaded only when the command runs. Resolves to the exit code. */
  readonly load: () => Promise<(context: CommandContext) => Promise<number>>;
}

/** The call is wrong: one line, exit code 2. */
export class UsageError extends Error {}

/** The command could not do its work: one line, exit code 1. */
export class CommandError extends Error {}

/** Reads a command's flags and words. Throws UsageError. */
export function readArguments(command: Command, argv: readonly string[]): { flags: FlagValues; words: string[] } {
  const options: NonNullable<ParseArgsConfig['options']> = { help: { type: 'boolean', short: 'h' } };
  for (const [name, flag] of Object.entries(command.flags))
    options[name] = { type: flag.type, multiple: flag.multiple ?? false, ...(flag.short && { short: flag.short }) };
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
    if (positionals.length > 0 && command.words === undefined && values['help'] !== true)
      throw new Error(`${command.name} takes no words, only flags, not "${positionals[0]}"`);
    // An empty value is a shell variable that was not set; taken as it is, `--data-dir ""` would mean the current directory.
    for (const [name, value] of Object.entries(values))
      if (value === '' && !command.flags[name]?.mayBeEmpty) throw new Error(`--${name} is empty`);
    return { flags: values as FlagValues, words: positionals };
  } catch (error) {
    throw new UsageError(
      `${(error as Error).message.split('. ')[0]!.replace(/\.$/, '')} (see: coracle ${command.name} --help)`,
    );
  }
}

/** Help of one command. */
export function commandHelp(command: Command): string {
  const flags = Object.entries({ ...command.flags, help: { type: 'boolean', summary: 'show this' } as FlagSpec });
  const left = flags.map(
    ([name, flag]) =>
      `  --${name}${flag.short ? `, -${flag.short}` : ''}${flag.type === 'string' ? ` ${flag.value ?? 'VALUE'}` : ''}`,
  );
  const width = Math.max(...left.map((text) => text.length)) + 2;
  const usage = `coracle ${command.name} [flags]${command.words ? ` ${command.words}` : ''}`;
  return `${command.summary}\n\nUsage: ${usage}\n\nFlags:\n${flags.map(([, flag], i) => `${left[i]!.padEnd(width)}${flag.summary}`).join('\n')}\n`;
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

/** The values of a flag that may be given again; empty when it was not given. */
export const listFlag = (flags: FlagValues, name: string): readonly string[] => {
  const value = flags[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
};

/** A message in one line: what a compiler has to say takes several, with a mark below the place. */
export const oneLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\s*\n[\s|.^]*/g, ' ').trim();
