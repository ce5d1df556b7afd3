/**
 * addvolume and removevolume: a hot-pluggable volume with its disk, put into a machine's template or taken out of it
 * (virt-api `rest/volumes.go`), from where the VirtualMachine controller brings it to the running instance; or into a
 * running instance alone.
 */

import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { type ApiError, badRequest } from '@coracle/apimachinery/meta/status';
import type { JsonPatchOperation } from '@coracle/client/client';
import { type Disk, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, type Volume } from '../../../kinds/kubevirt.ts';
import {
  diskPatch,
  EPHEMERAL_VOLUMES,
  ephemeralVolumes,
  plugObstacle,
} from '../../../rules/live-update/volume-changes.ts';
import { empty, isDryRun, readOptions, VMI_NOT_RUNNING, vmConflict, vmiConflict } from './responses.ts';
import { type Call, fetchVm, fetchVmi, type Handler, isRunning, orRefused, patchWith } from './subresource-context.ts';

const TEMPLATE = '/spec/template/spec';
const VOLUMES = `${TEMPLATE}/volumes`;
const DISKS = `${TEMPLATE}/domain/devices/disks`;

/** Volumes and disks as they are to be; throws a text that says why they cannot. */
type Change = (
  volumes: readonly Volume[],
  disks: readonly Disk[],
) => { readonly volumes: readonly Volume[]; readonly disks: readonly Disk[]; readonly added?: string };

/** Throws ApiError 400 for options that say too little. */
type ReadChange = (options: Readonly<Record<string, unknown>>) => Change;

export const addVolumeToVm: Handler = async (call) => changeTemplate(call, 'Add', addition);
export const removeVolumeFromVm: Handler = async (call) => changeTemplate(call, 'Remove', removal);
export const addVolumeToVmi: Handler = async (call) => changeInstance(call, 'Add', addition);
export const removeVolumeFromVmi: Handler = async (call) => changeInstance(call, 'Remove', removal);

type Verb = 'Add' | 'Remove';

function refuseWithoutGate({ options }: Call, verb: Verb): void {
  const config = options.config();
  if (config.isEnabled('HotplugVolumes') || config.isEnabled('DeclarativeHotplugVolumes')) return;
  throw badRequest(`Unable to ${verb} Volume because HotplugVolumes feature gate is not enabled.`);
}

/**
 * Changes the instance alone: its virtual machine knows nothing of it, and starts without it the next time. Where volumes
 * follow the machine an instance of one is changed through it.
 */
async function changeInstance(call: Call, verb: Verb, read: ReadChange) {
  refuseWithoutGate(call, verb);
  const { key, request, options } = call;
  const asked = readOptions(request.body);
  const change = read(asked);
  const vmi = await fetchVmi(call);
  const isOwned = vmi.metadata.ownerReferences?.some(({ kind }) => kind === 'VirtualMachine') ?? false;
  if (isOwned && !options.config().isEnabled('HotplugVolumes'))
    throw badRequest(`Unable to ${verb} Volume because HotplugVolumes feature gate is not enabled.`);
  if (!isRunning(vmi)) throw vmiConflict(key.name, VMI_NOT_RUNNING);
  const now: Parts = { volumes: vmi.spec.volumes, disks: vmi.spec.domain.devices?.disks };
  const { volumes, disks, added } = attempt(change, now, (why) => vmiConflict(key.name, why));
  if (added !== undefined && vmi.status?.volumeStatus?.some(({ name }) => name === added))
    throw vmiConflict(key.name, `Unable to add volume [${added}] because it is still being detached`);
  const names = new Set(volumes.map(({ name }) => name));
  const ephemeral = [...ephemeralVolumes(vmi), ...(added === undefined ? [] : [added])].filter((one) => names.has(one));
  const annotations = { ...vmi.metadata.annotations, [EPHEMERAL_VOLUMES]: ephemeral.join(',') };
  const body: JsonPatchOperation[] = [
    { op: 'test', path: '/metadata/uid', value: vmi.metadata.uid },
    ...diskPatch(vmi.spec, { volumes, disks }),
    ...(isOwned ? [{ op: 'add' as const, path: '/metadata/annotations', value: annotations }] : []),
  ];
  const dryRun = isDryRun(asked);
  await orRefused(patchWith(call, VIRTUAL_MACHINE_INSTANCES, body, { dryRun }), 'unable to patch vmi: ');
  return empty(202);
}

async function changeTemplate(call: Call, verb: Verb, read: ReadChange) {
  refuseWithoutGate(call, verb);
  const asked = readOptions(call.request.body);
  const change = read(asked);
  const { spec } = (await fetchVm(call)).spec.template;
  const now: Parts = { volumes: spec?.volumes, disks: spec?.domain.devices?.disks };
  const { volumes, disks } = attempt(change, now, (why) => vmConflict(call.key.name, why));
  const patch: JsonPatchOperation[] = [
    // What is not there cannot be tested for.
    ...(now.volumes ? [{ op: 'test' as const, path: VOLUMES, value: now.volumes }] : []),
    ...(now.disks ? [{ op: 'test' as const, path: DISKS, value: now.disks }] : []),
    ...(spec?.domain.devices === undefined
      ? [{ op: 'add' as const, path: `${TEMPLATE}/domain/devices`, value: {} }]
      : []),
    { op: 'add', path: VOLUMES, value: volumes },
    { op: 'add', path: DISKS, value: disks },
  ];
  await orRefused(patchWith(call, VIRTUAL_MACHINES, patch, { dryRun: isDryRun(asked) }), 'unable to patch vm: ');
  return empty(202);
}

interface Parts {
  readonly volumes: readonly Volume[] | undefined;
  readonly disks: readonly Disk[] | undefined;
}

class Unable extends Error {}

function attempt(change: Change, { volumes = [], disks = [] }: Parts, conflict: (why: string) => ApiError) {
  try {
    return change(volumes, disks);
  } catch (error) {
    throw error instanceof Unable ? conflict(error.message) : error;
  }
}

function addition(options: Readonly<Record<string, unknown>>): Change {
  const { name, disk, volumeSource } = options;
  if (typeof name !== 'string' || name === '') throw badRequest('AddVolumeOptions requires name to be set');
  if (!isJsonObject(disk)) throw badRequest('AddVolumeOptions requires disk to not be nil');
  if (!isJsonObject(volumeSource)) throw badRequest('AddVolumeOptions requires VolumeSource to not be nil');
  const volume = { name, ...hotpluggable(volumeSource) } as Volume;
  const source = sourceOf(volume);
  const plugged = { ...disk, name } as Disk;
  const obstacle = plugObstacle(plugged);
  if (obstacle !== undefined) throw badRequest(`Unable to add volume [${name}]: ${obstacle}`);
  return (volumes, disks) => {
    for (const held of volumes) {
      if (held.name === name)
        throw new Unable(`Unable to add volume [${name}] because volume with that name already exists`);
      if (source !== undefined && sourceOf(held) === source)
        throw new Unable(`Unable to add volume source [${source}] because it already exists`);
    }
    return { volumes: [...volumes, volume], disks: [...disks, plugged], added: name };
  };
}

function removal({ name }: Readonly<Record<string, unknown>>): Change {
  if (typeof name !== 'string' || name === '') throw badRequest('RemoveVolumeOptions requires name to be set');
  return (volumes, disks) => {
    const found = volumes.find((volume) => volume.name === name || sourceOf(volume) === name);
    if (!found) throw new Unable(`Unable to remove volume [${name}] because it does not exist`);
    if (!(found.dataVolume?.hotpluggable ?? found.persistentVolumeClaim?.hotpluggable))
      throw new Unable(`Unable to remove volume [${found.name}] because it is not hotpluggable`);
    return {
      volumes: volumes.filter((volume) => volume !== found),
      disks: disks.filter((disk) => disk.name !== found.name),
    };
  };
}

function hotpluggable({ dataVolume, persistentVolumeClaim, ...rest }: JsonObject): JsonObject {
  if (isJsonObject(dataVolume)) return { dataVolume: { ...dataVolume, hotpluggable: true } };
  if (!isJsonObject(persistentVolumeClaim)) return rest;
  return { persistentVolumeClaim: { ...persistentVolumeClaim, hotpluggable: true } };
}

/** The claim, or the DataVolume, that a volume is of. */
const sourceOf = ({ dataVolume, persistentVolumeClaim }: Volume): string | undefined =>
  dataVolume?.name ?? persistentVolumeClaim?.claimName;
