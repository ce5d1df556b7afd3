/** `coracle identity`: who machines are to their guests (audit), and the UUID of older ones in manifests (pin). */
import { chmod, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { isNotFound } from '@coracle/client/api-failure';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINES,
} from '@coracle/kubevirt/kinds/kubevirt';
import { type AuditInput, type AuditRow, auditIdentities } from '@coracle/kubevirt/rules/identity/audit-identity';
import { systemClock } from '@coracle/runtime/clock/clock';
import { clusterFrom } from '../config/cluster.ts';
import { type CommandContext, CommandError, textFlag, UsageError } from './command.ts';
import { pinManifests } from './pin-manifests.ts';
import { textTable } from './text-table.ts';

const USAGE = 'identity takes: audit, or pin FILE... (see: coracle identity --help)';
const AUDIT_ONLY = ['output', 'json', 'backup', 'kubeconfig', 'data-dir'] as const;

/** `coracle identity`. */
export async function identity(context: CommandContext): Promise<number> {
  const { flags, words } = context;
  const [verb, ...files] = words;
  if (verb === 'pin') {
    const odd = AUDIT_ONLY.find((name) => flags[name] !== undefined);
    if (odd !== undefined) throw new UsageError(`--${odd} is for audit, not for pin`);
    return pin(context, files);
  }
  if (verb !== 'audit' || files.length > 0) throw new UsageError(USAGE);
  if (flags['in-place'] === true) throw new UsageError('--in-place is for pin, not for audit');
  return audit(context);
}

async function audit(context: CommandContext): Promise<number> {
  const { flags, print } = context;
  const output = textFlag(flags, 'output') ?? (flags['json'] === true ? 'json' : 'table');
  if (output !== 'json' && output !== 'table') throw new UsageError(`-o takes json or table, not ${output}`);
  const place = textFlag(flags, 'backup');
  const rows = auditIdentities(place === undefined ? await readCluster(context) : await readBackup(context, place));
  print(output === 'json' ? JSON.stringify({ items: rows }, undefined, 2) : tableOf(rows));
  return 0;
}

/** The objects of a backup directory (`coracle backup create`), without a server. */
async function readBackup({ signal }: CommandContext, place: string): Promise<AuditInput> {
  const { objectsOfBackup } = await import('../backup/objects-of-backup.ts');
  const of = ({ group, resource }: { readonly group: string; readonly resource: string }): string =>
    `${group}/${resource}`;
  const types = [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINE_SNAPSHOT_CONTENTS];
  const found = await objectsOfBackup(resolve(place), types.map(of), { clock: systemClock, signal });
  const all = <T>(type: { readonly group: string; readonly resource: string }): readonly T[] =>
    (found.get(of(type)) ?? []) as unknown as readonly T[];
  return {
    vms: all(VIRTUAL_MACHINES),
    vmis: all(VIRTUAL_MACHINE_INSTANCES),
    snapshotContents: all(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS),
  };
}

async function readCluster(context: CommandContext): Promise<AuditInput> {
  await using cluster = await clusterFrom(context);
  const { client } = cluster;
  const [vms, vmis, contents] = await Promise.all([
    client.list(VIRTUAL_MACHINES),
    client.list(VIRTUAL_MACHINE_INSTANCES),
    // An external cluster need not have them.
    client.list(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS).catch((error: unknown) => {
      if (isNotFound(error)) return { items: [] };
      throw error;
    }),
  ]);
  return { vms: vms.items, vmis: vmis.items, snapshotContents: contents.items };
}

const HEAD = ['NAMESPACE', 'KIND', 'NAME', 'UUID', 'ORIGIN', 'NOTE'];

const tableOf = (rows: readonly AuditRow[]): string =>
  rows.length === 0
    ? 'no virtual machines, instances or snapshots'
    : textTable(
        HEAD,
        rows.map((row) => [row.namespace, row.kind, row.name, row.uuid, row.origin, noteOf(row)]),
      );

function noteOf({ kind, written, noted, sharedWith }: AuditRow): string {
  const notes: string[] = [];
  if (!written) notes.push(kind === 'VirtualMachineSnapshot' ? 'decided at restore' : 'not written yet');
  else if (!noted) notes.push('concluded');
  if (sharedWith.length > 0) notes.push(`shared with ${sharedWith.join(', ')}`);
  return notes.join('; ');
}

async function pin({ flags, print, note }: CommandContext, files: readonly string[]): Promise<number> {
  const inPlace = flags['in-place'] === true;
  if (files.length === 0)
    throw new UsageError('pin takes files: coracle identity pin FILE..., or - for standard input');
  if (inPlace && files.includes('-')) throw new UsageError('--in-place takes files, not standard input');
  // All are read before the first is written: bad input changes nothing.
  const pinned = await Promise.all(
    files.map(async (file) => ({ file, ...pinManifests(await read(file), file === '-' ? 'standard input' : file) })),
  );
  if (inPlace) for (const { file, text: next, machines } of pinned) if (machines.length > 0) await replace(file, next);
  if (!inPlace) print(joined(pinned.map((each) => each.text)));
  for (const { file, machines } of pinned)
    note(`${file}: ${machines.length === 0 ? 'no machine without UUID' : `wrote the UUID of ${machines.join(', ')}`}`);
  return 0;
}

/** Texts of several files as one stream of documents; the caller's line break comes at the end. */
const joined = (texts: readonly string[]): string =>
  texts
    .map((each) => each.replace(/\n$/, ''))
    .reduce((all, next) => `${all}\n${/^---(\s|$)/.test(next) ? '' : '---\n'}${next}`);

async function read(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandError(`cannot read ${file}: ${(error as Error).message}`);
  }
}

/** As a whole, or not at all; its mode stays. */
async function replace(file: string, content: string): Promise<void> {
  const half = `${file}.${process.pid}.tmp`;
  try {
    const { mode } = await stat(file);
    await writeFile(half, content, { mode: 0o600, flag: 'wx' });
    await chmod(half, mode & 0o777);
    await rename(half, file);
  } catch (error) {
    await rm(half, { force: true });
    throw new CommandError(`cannot write ${file}: ${(error as Error).message}`);
  }
}
