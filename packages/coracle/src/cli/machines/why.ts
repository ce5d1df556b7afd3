/** `coracle why NAME`: why a machine does not run, in plain words, and what to do. */

import { type CommandContext, oneLine } from '../command.ts';
import { machineWord } from '../machine-target.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { textOf, withMachine } from './find-machine.ts';
import { readMachineFacts, whyOf } from './why-facts.ts';

/** Warnings that are shown. */
const SHOWN = 3;

/** Exit code 0 when it runs, 1 when it does not. */
export async function why(context: CommandContext): Promise<number> {
  const { flags, print, signal } = context;
  return withMachine(context, machineWord(context.words, 'why'), async (call) => {
    const { key, client } = call;
    if (isExplained(context))
      return equivalent(context, ['kubectl', 'describe', 'vm,vmi', key.name, '-n', key.namespace]);
    const facts = await readMachineFacts(client, call, signal);
    const { state, runs, reason, next } = whyOf(facts);
    const warnings = runs
      ? []
      : facts.warnings
          .map(({ reason: code, message }) => ({ reason: code, message }))
          .filter(({ message = '' }) => !reason?.includes(message))
          .slice(0, SHOWN);
    if (flags['json'] === true)
      print(JSON.stringify({ namespace: key.namespace, name: key.name, state, runs, reason, next, warnings }));
    else
      print(
        [
          `${textOf(key)} ${state}${reason ? `: ${oneLine(reason)}` : ''}`,
          ...(next ? [`next: ${next}`] : []),
          ...warnings.map((warning) => `warning: ${warning.reason}: ${oneLine(warning.message ?? '')}`),
        ].join('\n'),
      );
    return runs ? 0 : 1;
  });
}
