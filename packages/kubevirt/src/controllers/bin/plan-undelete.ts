/**
 * Whether a machine can come back, and under which names. Everything is looked up before anything is made: what stands in
 * the way is said with the way out, and what goes away by itself is waited for.
 */

import type { DeepReadonly, KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { NAMESPACES } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import type { PoolFacts } from '@coracle/cluster-rules/storage/pool-calls';
import type { PlannedName, UndeletePlan, UndeleteRequest } from '../../kinds/kinds.ts';
import { type ReadonlyVm, VIRTUAL_MACHINES, type VirtualMachine } from '../../kinds/kubevirt.ts';
import { keptDependents, otherName, restoredMachine } from '../../rules/bin/restored-objects.ts';
import { effectiveUuid, machineOfVm, sharedText } from '../../rules/identity/shared-uuids.ts';
import { type BinPass, BinProblem, current, NotYet, poolReason, volumeNow } from './bin-pass.ts';

type Request = DeepReadonly<UndeleteRequest & { namespace?: string }>;

/**
 * Decides.
 * @throws BinProblem when it cannot come back, NotYet while something is still on its way out
 */
export async function planUndelete(
  pass: BinPass,
  request: Request,
  vmsWith: (uuid: string) => readonly ReadonlyVm[],
): Promise<UndeletePlan> {
  const { content, client, signal } = pass;
  const { virtualMachine } = content.spec;
  const namespace = request.namespace ?? virtualMachine.namespace;
  const name = request.name ?? virtualMachine.name;
  const found = await orAbsent(client.get(NAMESPACES, { namespace: '', name: namespace }, { signal }));
  if (found && isDeleting(found)) throw new NotYet(`namespace ${namespace} is being deleted`);
  if (!found)
    throw new BinProblem(`namespace ${namespace} does not exist; make it: kubectl create namespace ${namespace}`);
  const there = await orAbsent(client.get(VIRTUAL_MACHINES, { namespace, name }, { signal }));
  if (there && isDeleting(there)) throw new NotYet(`virtual machine ${namespace}/${name} is still being deleted`);
  if (there)
    throw new BinProblem(
      `virtual machine ${namespace}/${name} already exists; bring the deleted one back under another name: --name NEW`,
    );
  const draft: UndeletePlan = {
    request: request.id,
    namespace,
    name,
    ...(request.newIdentity && { newIdentity: true }),
  };
  const names: PlannedName[] = [];
  for (const kept of keptDependents(content)) {
    const planned = await nameFor(pass, draft, kept, request.name !== undefined);
    if (planned) names.push(planned);
  }
  const plan: UndeletePlan = { ...draft, ...(names.length > 0 && { names }) };
  if (!plan.newIdentity) refuseSharedUuid(restoredMachine(content, plan), vmsWith);
  await refuseLostVolumes(pass);
  return plan;
}

/** Another name where the own is taken and may be changed; undefined where it stays. */
async function nameFor(
  pass: BinPass,
  plan: UndeletePlan,
  kept: ReadonlyObject,
  mayRename: boolean,
): Promise<PlannedName | undefined> {
  const name = kept.metadata.name ?? '';
  const { namespace } = plan;
  const found = await current(pass, kept, { namespace, name });
  if (!found) return undefined;
  const what = `${kept.kind} ${namespace}/${name}`;
  if (isDeleting(found) || (await isDoomed(pass, found))) throw new NotYet(`${what} is still being deleted`);
  if (found.metadata.uid === kept.metadata.uid) return undefined;
  if (!mayRename)
    throw new BinProblem(`${what} already exists and is a different object; bring the machine back with --name NEW`);
  const newName = otherName(plan, name);
  if (await current(pass, kept, { namespace, name: newName }))
    throw new BinProblem(`${what} already exists, and so does ${newName}; choose another --name`);
  return { kind: kept.kind, name, newName };
}

/** Owned by the machine that is gone, or by a DataVolume that goes with it: the garbage collector is about to delete it. */
async function isDoomed(pass: BinPass, { metadata }: KubeObject): Promise<boolean> {
  const { content } = pass;
  for (const { uid, name, kind } of metadata.ownerReferences ?? []) {
    if (uid === content.spec.virtualMachine.uid) return true;
    const owner = keptDependents(content).find((each) => each.metadata.uid === uid);
    if (!owner || kind !== owner.kind) continue;
    const now = await current(pass, owner, { namespace: metadata.namespace ?? '', name });
    if (!now || now.metadata.uid !== uid || isDeleting(now) || (await isDoomed(pass, now))) return true;
  }
  return false;
}

function refuseSharedUuid(machine: VirtualMachine, vmsWith: (uuid: string) => readonly ReadonlyVm[]): void {
  const uuid = effectiveUuid(machine);
  const machines = vmsWith(uuid).map(machineOfVm);
  if (machines.length > 0)
    throw new BinProblem(
      `${sharedText({ uuid, machines }, machine.metadata.namespace ?? '')}; restore this one with a new identity: --new-identity`,
    );
}

/** The disks are looked for where they lie, before anything is made. */
async function refuseLostVolumes(pass: BinPass): Promise<void> {
  const { content, callPool, signal } = pass;
  const pools = new Map<string, PoolFacts>();
  for (const { claim, volume, pool, handle } of content.spec.volumes ?? []) {
    const name = volume.metadata.name ?? '';
    if (pool === undefined || handle === undefined) {
      if (!(await volumeNow(pass, name)))
        throw new BinProblem(
          `the disk of claim ${claim} is lost: its storage, which Coracle does not manage, deleted volume ${name}`,
        );
      continue;
    }
    let facts = pools.get(pool);
    if (!facts) {
      try {
        facts = await callPool<PoolFacts>(pool, 'inspect', {}, signal);
      } catch (error) {
        if (poolReason(error) === undefined) throw error;
        throw new BinProblem(`the disk of claim ${claim} cannot be reached: ${(error as Error).message}`);
      }
      pools.set(pool, facts);
    }
    if (!facts.volumes.some((each) => each.handle === handle))
      throw new BinProblem(`the disk of claim ${claim} is lost: pool ${pool} no longer has it`);
  }
}
