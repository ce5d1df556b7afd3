import { type FlagValues, textFlag, UsageError } from './command.ts';

/** What `-o` or `--json` asks for. Throws UsageError for another format. */
export function outputFlag(flags: FlagValues): 'json' | 'table' {
  const output = textFlag(flags, 'output') ?? (flags['json'] === true ? 'json' : 'table');
  if (output !== 'json' && output !== 'table') throw new UsageError(`-o takes json or table, not ${output}`);
  return output;
}
