/** What `coracle protect status` prints for people. */
import type { Block } from '@coracle/kubevirt/rules/deletion-preview/deletion-preview';
import type { GuardedPart } from '@coracle/kubevirt/rules/deletion-preview/guarded-parts';
import { nothingText } from './nothing-text.ts';
import { textTable } from './text-table.ts';
import { type Lifting, liftingText } from './who-may-lift.ts';

export interface PartStatus extends GuardedPart {
  /** `Unknown`: the caller may not look. */
  readonly state: 'Exists' | 'Missing' | 'Unknown';
  /** Names of other machines that refer to it. */
  readonly usedBy?: readonly string[];
}

export interface MachineStatus {
  readonly namespace: string;
  readonly name: string;
  readonly protected: boolean;
  /** It may be deleted only when it is stopped. */
  readonly onlyWhenStopped: boolean;
  /** What stands against its deletion now; of one machine. */
  readonly blocks?: readonly Block[];
  /** Who may take its protection away; of one machine. */
  readonly whoMay?: Lifting;
  readonly parts: readonly PartStatus[];
}

/** Protected machines of a namespace, or of all where none is given, a row each. */
export const statusTable = (machines: readonly MachineStatus[], namespace?: string): string =>
  machines.length === 0
    ? nothingText('no machine is protected', namespace)
    : textTable(
        ['NAMESPACE', 'NAME', 'STOPPED FIRST', 'KEEPS', 'MISSING'],
        machines.map(({ namespace, name, onlyWhenStopped, parts }) => [
          namespace,
          name,
          onlyWhenStopped ? 'yes' : 'no',
          countsText(parts.filter(({ state }) => state !== 'Missing')),
          parts
            .filter(({ state }) => state === 'Missing')
            .map((part) => `${part.kind}/${part.name}`)
            .join(', '),
        ]),
      );

/** `2 PersistentVolumeClaim, 1 Secret`. */
function countsText(parts: readonly PartStatus[]): string {
  const counts = new Map<string, number>();
  for (const { kind } of parts) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts.size === 0 ? 'nothing else' : [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ');
}

const STATES: Readonly<Record<PartStatus['state'], string>> = {
  Exists: 'there',
  Missing: 'missing',
  Unknown: 'unknown',
};

/** One machine. */
export function machineStatusText(machine: MachineStatus): string {
  const { namespace, name, onlyWhenStopped, blocks = [], whoMay, parts } = machine;
  const what = `VirtualMachine ${namespace}/${name}`;
  const lines = [machine.protected ? `${what} is protected` : `${what} is not protected`];
  if (onlyWhenStopped) lines.push('it may be deleted only when it is stopped');
  for (const { message, command } of blocks) lines.push(`against its deletion: ${message}; to lift it: ${command}`);
  if (machine.protected && whoMay) lines.push(`who may lift the protection: ${liftingText(whoMay)}`);
  const table = textTable(
    [machine.protected ? 'KEPT' : 'WOULD BE KEPT', 'NAME', 'STATE', 'NAMED BY', 'ALSO USED BY'],
    parts.map((part) => [
      part.kind,
      part.name,
      STATES[part.state],
      part.field,
      (part.usedBy ?? []).map((vm) => `vm/${vm}`).join(', '),
    ]),
  );
  return [lines.join('\n'), parts.length === 0 ? 'it refers to no other object' : table].join('\n\n');
}
