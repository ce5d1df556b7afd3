/** `coracle list`: machines with state, address, node and why they do not run. */

import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../../config/cluster.ts';
import type { CommandContext } from '../command.ts';
import { machineTargets, machineWords } from '../machine-target.ts';
import { namespaceScope } from '../namespace-scope.ts';
import { nothingText } from '../nothing-text.ts';
import { sizeText } from '../size-text.ts';
import { textTable } from '../text-table.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { type FoundMachine, findMachine, textOf } from './find-machine.ts';
import { describeMachines, type MachineRow, readMachines, spanText } from './machine-row.ts';

/** `coracle list`. */
export async function list(context: CommandContext): Promise<number> {
  const { flags, print, signal } = context;
  const scope = namespaceScope(flags);
  if (context.words.length > 0) return listNamed(context, scope.given);
  await using cluster = await clusterFrom(context);
  const namespace = scope.of(cluster.namespace);
  if (isExplained(context))
    return equivalent(context, [
      ...['kubectl', 'get', 'vm,vmi', '-o', 'wide'],
      ...(namespace === undefined ? ['-A'] : ['-n', namespace]),
    ]);
  const rows = await readMachines(cluster.client, { namespace, signal });
  if (rows.length === 0 && flags['json'] !== true && flags['quiet'] !== true)
    print(nothingText('no machines', namespace));
  else printRows(context, rows, scope.everywhere);
  return 0;
}

/** Those that the words name. Throws CommandError for one that is not there. */
async function listNamed(context: CommandContext, given: string | undefined): Promise<number> {
  const { signal } = context;
  const words = machineWords(context.words);
  for (const word of words) machineTargets(word, { given, ofContext: '' });
  await using cluster = await clusterFrom(context);
  const { client } = cluster;
  const found = new Map<string, FoundMachine>();
  for (const word of words) {
    const machine = await findMachine(client, machineTargets(word, { given, ofContext: cluster.namespace }), signal);
    found.set(textOf(machine.key), machine);
  }
  const [one, ...others] = Map.groupBy(found.values(), ({ key }) => key.namespace);
  if (isExplained(context)) {
    for (const [namespace, machines] of [one!, ...others])
      equivalent(context, [
        ...['kubectl', 'get', 'vm,vmi', ...machines.map(({ key }) => key.name), '-o', 'wide', '-n', namespace],
      ]);
    return 0;
  }
  printRows(context, await describeMachines(client, [...found.values()], { signal }), others.length > 0);
  return 0;
}

function printRows(context: CommandContext, rows: readonly MachineRow[], withNamespace: boolean): void {
  const { flags, print } = context;
  if (flags['json'] === true) print(JSON.stringify(rows));
  else if (flags['quiet'] === true) print(rows.map(({ name }) => name).join('\n'));
  else print(machineTable(rows, { withNamespace, colour: hasColour(context) }));
}

/** True where the output is a terminal, and nobody asked for none (`NO_COLOR`). */
export const hasColour = ({ environment }: Pick<CommandContext, 'environment'>): boolean =>
  process.stdout.isTTY === true && !environment['NO_COLOR'];

const [GREEN, YELLOW, RED] = [32, 33, 31];

/** Green runs, red is in trouble, yellow is on its way; one that is off is as the rest of the text. */
function coloured(state: string): string {
  const code =
    state === 'Running'
      ? GREEN
      : /Err|BackOff|Fail|Unknown/.test(state)
        ? RED
        : state === 'Stopped'
          ? undefined
          : YELLOW;
  return code === undefined ? state : `\x1b[${code}m${state}\x1b[0m`;
}

/** The rows under a head; the last column is there when a machine has a reason not to run. */
export function machineTable(
  rows: readonly MachineRow[],
  { withNamespace, colour }: { readonly withNamespace: boolean; readonly colour: boolean },
): string {
  const now = systemClock.now();
  const withSpace = rows.some(({ diskBytes }) => diskBytes !== undefined);
  const withReason = rows.some(({ reason }) => reason !== '');
  return textTable(
    [
      ...(withNamespace ? ['NAMESPACE'] : []),
      ...['NAME', 'STATE', 'ADDRESS', 'NODE', 'UP', 'AGE'],
      ...(withSpace ? ['DISK'] : []),
      ...(withReason ? ['WHY'] : []),
    ],
    rows.map((row) => [
      ...(withNamespace ? [row.namespace] : []),
      ...[row.name, row.state, row.address || '-', row.node || '-'],
      ...[row.runsSince === undefined ? '-' : spanText(now - row.runsSince), spanText(now - row.createdAt)],
      ...(withSpace ? [sizeText(row.diskBytes ?? 0)] : []),
      ...(withReason ? [row.reason] : []),
    ]),
    (cell, column) => (colour && column === (withNamespace ? 2 : 1) ? coloured(cell) : cell),
  );
}
