/**
 * Brings a machine back: volumes, claims, the rest of what went with it, the machine, owners. Each step looks at what is
 * there and makes what is missing, so that a pass may end anywhere. From the moment the machine is made the volumes are
 * its own: the content lets go of them just before, when all claims are bound.
 */

import type { DeepReadonly, KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { PERSISTENT_VOLUMES } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume, PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { isAlreadyExists, isNamespaceTerminating, orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import {
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  type DeletedVirtualMachineContent,
  type HeldVolume,
} from '../../kinds/kinds.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '../../kinds/kubevirt.ts';
import { heldHandles, holdLabel } from '../../rules/bin/bin-names.ts';
import {
  claimReference,
  finalOwners,
  isFrom,
  keptDependents,
  newNameOf,
  restoredDependent,
  restoredMachine,
  restoredVolume,
  takenOver,
} from '../../rules/bin/restored-objects.ts';
import { type BinPass, BinProblem, current, NotYet, planOf, typeOf, volumeNow, writeStatus } from './bin-pass.ts';

/**
 * One pass of it; the phase is `Undeleted` when all is done.
 * @throws BinProblem when something cannot be made, NotYet while others have to act
 */
export async function undelete(pass: BinPass): Promise<void> {
  const { content } = pass;
  const made = (await machineNow(pass)) ?? (await prepared(pass));
  if (!made) return;
  for (const kept of keptDependents(content)) await giveAway(pass, kept, made);
  pass.log.info('virtual machine brought back', { ns: made.metadata.namespace, vm: made.metadata.name });
  await writeStatus(pass, { phase: 'Undeleted', plan: undefined, message: undefined });
}

/** Makes everything that the machine needs, then the machine; undefined when another pass goes on. */
async function prepared(pass: BinPass): Promise<VirtualMachine | undefined> {
  const { content } = pass;
  for (const held of content.spec.volumes ?? []) await makeVolume(pass, held);
  for (const kept of keptDependents(content)) await makeDependent(pass, kept);
  for (const held of content.spec.volumes ?? []) await checkBound(pass, held);
  if (heldHandles(content.metadata.labels).length === 0) return makeMachine(pass);
  await letGo(pass);
  return undefined;
}

const machineKey = ({ content }: BinPass) => {
  const { namespace, name } = planOf(content);
  return { namespace, name };
};

async function machineNow(pass: BinPass): Promise<VirtualMachine | undefined> {
  const found = await orAbsent(pass.client.get(VIRTUAL_MACHINES, machineKey(pass), { signal: pass.signal }));
  if (found && !isFrom(found, pass.content))
    throw new BinProblem(
      `virtual machine ${found.metadata.namespace}/${found.metadata.name} already exists; --name NEW`,
    );
  return found;
}

/** The object under its own name when it never went; undefined when it has to be made. */
async function survivor(pass: BinPass, kept: ReadonlyObject): Promise<KubeObject | undefined> {
  const { namespace } = planOf(pass.content);
  const found = await current(pass, kept, { namespace, name: kept.metadata.name ?? '' });
  return found && found.metadata.uid === kept.metadata.uid && !isDeleting(found) ? found : undefined;
}

const claimOf = ({ content }: BinPass, { claim }: DeepReadonly<HeldVolume>): ReadonlyObject | undefined =>
  keptDependents(content).find(({ kind, metadata }) => kind === 'PersistentVolumeClaim' && metadata.name === claim);

async function makeVolume(pass: BinPass, held: DeepReadonly<HeldVolume>): Promise<void> {
  const { content, client, signal } = pass;
  const claim = claimOf(pass, held);
  if (!claim || (await survivor(pass, claim))) return;
  const plan = planOf(content);
  const name = held.volume.metadata.name ?? '';
  const volume = await volumeNow(pass, name);
  if (!volume) {
    if (held.handle === undefined)
      throw new BinProblem(`the disk of claim ${held.claim} is lost: volume ${name} is gone`);
    await make(() => client.create(PERSISTENT_VOLUMES, restoredVolume(content, plan, held), { signal }));
    return;
  }
  const wanted = claimReference(plan, held.claim);
  const reference = volume.spec?.claimRef;
  const isKept = reference?.namespace === wanted.namespace && reference.name === wanted.name;
  const now = await current(pass, claim, { namespace: wanted.namespace, name: wanted.name });
  if (isKept && ((reference.uid ?? '') === '' || (now && now.metadata.uid === reference.uid))) return;
  const { namespace = '', name: holder = '', uid } = reference ?? {};
  const owner =
    reference && ((await current(pass, claim, { namespace, name: holder })) as PersistentVolumeClaim | undefined);
  // Another claim of that name has another volume, and does not hold this one.
  const isHeld = owner !== undefined && (uid ? owner.metadata.uid === uid : (owner.spec?.volumeName || name) === name);
  if (isHeld && uid && uid !== claim.metadata.uid)
    throw new BinProblem(
      `the disk of claim ${held.claim} is lost: volume ${name} is that of claim ${namespace}/${holder}`,
    );
  const isOurs = held.handle !== undefined && volume.spec?.persistentVolumeReclaimPolicy === 'Delete';
  if (isHeld || isOurs || isDeleting(volume)) throw new NotYet(`volume ${name} is not released yet`);
  const after: PersistentVolume = { ...volume, spec: { ...volume.spec, claimRef: wanted } };
  await commit(client, PERSISTENT_VOLUMES, { before: volume, after, signal });
}

async function makeDependent(pass: BinPass, kept: ReadonlyObject): Promise<void> {
  const { content, client, signal } = pass;
  if (await survivor(pass, kept)) return;
  const plan = planOf(content);
  const name = newNameOf(plan, kept.kind, kept.metadata.name ?? '');
  const found = await current(pass, kept, { namespace: plan.namespace, name });
  if (found && isDeleting(found)) throw new NotYet(`${kept.kind} ${plan.namespace}/${name} is still being deleted`);
  if (found && isFrom(found, content)) return;
  if (found) throw new BinProblem(`${kept.kind} ${plan.namespace}/${name} already exists and is a different object`);
  if (kept.kind === 'DataVolume' && !(await servesDataVolumes(pass))) return;
  await make(() => client.create(typeOf(kept), restoredDependent(content, plan, kept), { signal }));
}

const servesDataVolumes = async ({ client, signal }: BinPass): Promise<boolean> =>
  (await orAbsent(client.raw('GET', '/apis/cdi.kubevirt.io/v1beta1', { signal }))) !== undefined;

async function checkBound(pass: BinPass, held: DeepReadonly<HeldVolume>): Promise<void> {
  const kept = claimOf(pass, held);
  if (!kept || (await survivor(pass, kept))) return;
  const { namespace, name } = claimReference(planOf(pass.content), held.claim);
  const claim = (await current(pass, kept, { namespace, name })) as PersistentVolumeClaim | undefined;
  const volume = await volumeNow(pass, held.volume.metadata.name ?? '');
  if (!claim || volume?.spec?.claimRef?.uid !== claim.metadata.uid)
    throw new NotYet(`claim ${namespace}/${name} is not bound yet`);
}

async function letGo({ content, client, signal }: BinPass): Promise<void> {
  const handles = new Set(heldHandles(content.metadata.labels).map(holdLabel));
  const labels = Object.fromEntries(Object.entries(content.metadata.labels ?? {}).filter(([key]) => !handles.has(key)));
  await commit<DeletedVirtualMachineContent>(client, DELETED_VIRTUAL_MACHINE_CONTENTS, {
    before: content,
    after: { ...content, metadata: { ...content.metadata, labels } },
    signal,
  });
}

async function makeMachine(pass: BinPass): Promise<VirtualMachine> {
  const { content, client, signal } = pass;
  return make(() => client.create(VIRTUAL_MACHINES, restoredMachine(content, planOf(content)), { signal }));
}

/** The object becomes the machine's, or nobody's; one that never went is owned again. */
async function giveAway(pass: BinPass, kept: ReadonlyObject, machine: VirtualMachine): Promise<void> {
  const { content, client, signal } = pass;
  const plan = planOf(content);
  const owners = finalOwners(content, kept, machine);
  const stayed = await survivor(pass, kept);
  if (stayed) {
    const others = (stayed.metadata.ownerReferences ?? []).filter(
      ({ uid }) => uid !== content.spec.virtualMachine.uid && uid !== machine.metadata.uid,
    );
    const ownerReferences = [...others, ...owners];
    if (ownerReferences.length === 0) return;
    const after = { ...stayed, metadata: { ...stayed.metadata, ownerReferences } };
    await commit(client, typeOf(kept), { before: stayed, after, signal });
    return;
  }
  const name = newNameOf(plan, kept.kind, kept.metadata.name ?? '');
  const found = await current(pass, kept, { namespace: plan.namespace, name });
  if (!found || !isFrom(found, content)) return;
  const after = { ...found, metadata: takenOver(found.metadata, owners) };
  await commit(client, typeOf(kept), { before: found, after, signal });
}

/** What the server refuses for good is a problem; a lost race, or a server in trouble, is tried again. */
async function make<T>(creating: () => Promise<T>): Promise<T> {
  try {
    return await creating();
  } catch (error) {
    if (isAlreadyExists(error) || isNamespaceTerminating(error)) throw new NotYet(error.message);
    if (error instanceof ApiError && [400, 403, 404, 422].includes(error.code)) throw new BinProblem(error.message);
    throw error;
  }
}
