import { systemClock } from '@coracle/runtime/clock/clock';
import { CommandError, commandHelp, type FlagValues, findCommand, readArguments, UsageError } from './command.ts';
import { COMMANDS } from './commands.ts';
import { createProgress } from './progress.ts';
import { commandMeant } from './suggestions.ts';

const GROUPS = ['Machines', 'Control plane', 'More commands'];

/** Overview of all commands. */
export function programHelp(): string {
  const shown = COMMANDS.filter(({ hidden }) => hidden !== true);
  const width = Math.max(...shown.map((command) => command.name.length)) + 3;
  const groups = [...Map.groupBy(shown, ({ group }) => group ?? 'More commands')]
    .sort(([one], [other]) => GROUPS.indexOf(one) - GROUPS.indexOf(other))
    .map(([head, commands]) => {
      const lines = commands.map((command) => `  ${command.name.padEnd(width)}${command.summary}`);
      return `${head}:\n${lines.join('\n')}`;
    });
  return `Coracle runs KubeVirt virtual machines without a cluster.\n\nUsage: coracle COMMAND [flags]\n\n${groups.join('\n\n')}\n\nHelp of a command, with examples: coracle help COMMAND\n`;
}

/** Runs one command. Exit codes: 0 done, 1 could not, or a wrong call. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  const progress = createProgress((text) => void process.stderr.write(text), {
    clock: systemClock,
    columns: () => (process.stderr.isTTY === true ? process.stderr.columns : undefined),
  });
  const line = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`);
  const print = (text: string): void => {
    progress.clear();
    process.stdout.write(line(text));
  };
  const note = (text: string): void => {
    progress.clear();
    process.stderr.write(line(text));
  };
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that has seen enough (`| head`) is no failure; a disk that takes no more is.
    if (error.code === 'EPIPE') return;
    note(`error: cannot write the output: ${oneLine(error.message)}`);
    process.exitCode = 1;
  });
  process.stderr.on('error', () => {}); // nobody reads it any more
  // `help COMMAND` is what others have for `COMMAND --help`.
  if (argv[0] === 'help' && argv.length > 1) return runProgram([...argv.slice(1), '--help']);
  const [name] = argv;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    print(programHelp());
    return name === undefined ? 1 : 0;
  }
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort(new CommandError('interrupted'));
  process.once('SIGINT', interrupt);
  let given: FlagValues = {};
  try {
    const found = findCommand(COMMANDS, name === '--version' ? ['version', ...argv.slice(1)] : argv);
    if (!found) {
      const names = COMMANDS.filter(({ hidden }) => hidden !== true).map((command) => command.name);
      throw new UsageError(`unknown command "${name}"${commandMeant(name, names)} (see: coracle --help)`);
    }
    const { command, rest } = found;
    const { flags, words } = readArguments(command, rest);
    given = flags;
    if (flags['help'] === true) {
      print(commandHelp(command));
      return 0;
    }
    const run = await command.load();
    const { signal } = interrupted;
    return await run({ flags, words, environment: process.env, print, note, progress: progress.show, signal });
  } catch (error) {
    if (process.env['CORACLE_DEBUG'] && error instanceof Error && !(error instanceof UsageError))
      note(error.stack ?? '');
    const { failureText } = await import('./failure-text.ts');
    note(`error: ${oneLine(failureText(error, { flags: given, environment: process.env }))}`);
    return 1;
  } finally {
    progress.clear();
    process.off('SIGINT', interrupt);
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not reach a terminal
const oneLine = (text: string): string => text.replace(/[\x00-\x1f\x7f]+/g, ' ').trim();
