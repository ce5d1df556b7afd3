/** What `coracle delete --what-if` prints for people. */
import type { Fate, FinalizerRow, PreviewRow } from '@coracle/kubevirt/rules/deletion-preview/deletion-preview';
import type { DryRunResult, MachinePreview, NamespacePreview, PreviewBlock } from './delete-preview.ts';
import { textTable } from './text-table.ts';
import { liftingText } from './who-may-lift.ts';

const FATES: Readonly<Record<Fate, string>> = {
  Deleted: 'deleted',
  Held: 'held back',
  Kept: 'stays',
  Missing: 'not there',
  Unknown: 'unknown',
};

/** Of a machine: the decision, what stands against it, what becomes of each object, what would keep objects. */
export function machinePreviewText(preview: MachinePreview): string {
  const { object, verdict, blocks, objects, finalizers, notListed } = preview;
  return sections([
    headline(`VirtualMachine ${object.namespace}/${object.name}`, verdict, blocks),
    blocksTable(blocks),
    objects.length === 0
      ? 'no other object is concerned'
      : textTable(
          ['KIND', 'NAME', 'THEN', 'WHY', 'ALSO USED BY'],
          objects.map((row) => [row.kind, row.name, FATES[row.fate], row.why ?? '', usersText(row)]),
        ),
    finalizersTable(finalizers),
    notListedText(notListed),
  ]);
}

/** Of a namespace: the decision, machines that keep it, and how much would go. */
export function namespacePreviewText(preview: NamespacePreview): string {
  const { object, verdict, blocks, machines, counts, finalizers, notListed } = preview;
  const all = [...blocks, ...machines.flatMap((machine) => machine.blocks)];
  return sections([
    headline(`namespace ${object.name}`, verdict, all),
    blocksTable(blocks),
    machines.length === 0
      ? 'no machine in it is protected'
      : textTable(
          ['PROTECTED VM', 'BY', 'TO LIFT IT', 'WHO MAY'],
          machines.flatMap(({ name, blocks: own }) => own.map((block) => [name, ...blockCells(block)])),
        ),
    counts.length === 0
      ? 'it is empty'
      : textTable(
          ['RESOURCE', 'OBJECTS'],
          counts.map(({ resource, count }) => [resource, `${count}`]),
        ),
    finalizersTable(finalizers),
    notListedText(notListed),
  ]);
}

const sections = (parts: readonly string[]): string => parts.filter((part) => part !== '').join('\n\n');

function headline(what: string, { allowed, message }: DryRunResult, blocks: readonly PreviewBlock[]): string {
  if (!allowed) return `${what} would not be deleted: ${message}`;
  if (blocks.length === 0) return `${what} would be deleted`;
  return `${what} would be deleted: what blocks it below is not enforced by this server`;
}

const blockCells = ({ message, command, whoMay }: PreviewBlock): string[] => [message, command, liftingText(whoMay)];

const blocksTable = (blocks: readonly PreviewBlock[]): string =>
  blocks.length === 0 ? '' : textTable(['AGAINST IT', 'TO LIFT IT', 'WHO MAY'], blocks.map(blockCells));

function usersText({ usedBy = [], usedByTotal }: PreviewRow): string {
  const more = usedByTotal === undefined ? [] : [`and ${usedByTotal - usedBy.length} more`];
  return [...usedBy.map((user) => user.replace(/^VirtualMachine\//, 'vm/')), ...more].join(', ');
}

const finalizersTable = (rows: readonly FinalizerRow[]): string =>
  rows.length === 0
    ? ''
    : textTable(
        ['WAITS', 'FINALIZER', 'TAKEN OFF BY'],
        rows.map(({ kind, name, finalizer, waitsFor }) => [`${kind}/${name}`, finalizer, waitsFor]),
      );

const notListedText = (resources: readonly string[]): string =>
  resources.length === 0 ? '' : `not looked at, since you may not list them: ${resources.join(', ')}`;
