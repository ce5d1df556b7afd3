/** Rules about exports (kubevirt pkg/storage/admitters/vmexport). */
import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import { KUBEVIRT_GROUP, type ReadonlyExport, SNAPSHOT_GROUP } from '../../../kinds/kubevirt.ts';
import { type Cause, Findings, invalidValue, WebhookRefusal } from './causes.ts';

/** What an export may be of: the word for it in messages, and its API group; claims are of the core group. */
const SOURCES: Readonly<
  Record<string, { readonly word: string; readonly group?: string; readonly groupWord: string }>
> = {
  PersistentVolumeClaim: { word: 'PVC', groupWord: 'PVC' },
  VirtualMachineSnapshot: { word: 'VMSnapshot', group: SNAPSHOT_GROUP, groupWord: 'VMSnapshot' },
  VirtualMachine: { word: 'Virtual Machine', group: KUBEVIRT_GROUP, groupWord: 'VM' },
};

/** Sources of upstream that are not served, and what to do instead. */
const NOT_SERVED: Readonly<Record<string, string>> = {
  VirtualMachineBackup:
    'a VirtualMachineBackup is not exported here: its files are in the claim that it was written to, and `coracle export` takes disks of snapshots',
  VirtualMachineTemplate: 'templates are not exported here: make a machine of it, and export that',
};

/**
 * Findings about a new export. Whether its source is there is no finding: the controller waits for it.
 * @throws WebhookRefusal 400 for a ttlDuration that is none
 */
export function validateNewExport({ spec }: ReadonlyExport): readonly Cause[] {
  const { kind, name, apiGroup } = spec.source;
  const source = Object.hasOwn(SOURCES, kind) ? SOURCES[kind] : undefined;
  if (!source)
    return [invalidValue('spec.source.kind', (Object.hasOwn(NOT_SERVED, kind) && NOT_SERVED[kind]) || 'invalid kind')];
  const { ttlDuration } = spec;
  if (ttlDuration !== undefined && parseGoDuration(ttlDuration) === undefined)
    throw new WebhookRefusal(400, `time: invalid duration ${JSON.stringify(ttlDuration)}`);
  const found = new Findings('spec.source');
  if (name === '') found.invalid('.name', `${source.word} name must not be empty`);
  if (source.group === undefined ? Boolean(apiGroup) : apiGroup !== source.group)
    found.invalid('.APIGroup', `${source.groupWord} API group must be ${source.group ?? 'missing or blank'}`);
  return found.causes;
}
