/** What `--explain` shows: the call of kubectl or virtctl that does what a command would do. */
import type { CommandContext } from '../command.ts';

/** True when the call is to be shown, and nothing done. */
export const isExplained = ({ flags }: Pick<CommandContext, 'flags'>): boolean => flags['explain'] === true;

/** Prints the call. Resolves to exit code 0. */
export function equivalent({ print }: Pick<CommandContext, 'print'>, argv: readonly string[]): number {
  print(argv.map(shellWord).join(' '));
  return 0;
}

/** A word as a shell of POSIX reads it back. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
