/** The machines of a VirtualMachinePool: their names, and what each is made from. Pure. */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { PoolSpec, ReadonlyPool, ReadonlyVm, VirtualMachine } from '../../kinds/kubevirt.ts';

/** Label of a machine and of its instance: the revision of the pool that it was made from. */
export const POOL_REVISION_LABEL = 'kubevirt.io/vm-pool-revision-name';
/** Holds a machine until what is to be kept of it has been taken off it. */
export const POOL_FINALIZER = 'pool.kubevirt.io/finalizer';

/** Name of the ControllerRevision that holds the pool as it is now. */
export const poolRevisionName = ({ metadata }: ReadonlyPool): string => `${metadata.name}-${metadata.generation ?? 0}`;

/** The number at the end of a member's name; 0 where somebody gave it another. */
export function memberIndex({ metadata }: ReadonlyVm): number {
  const digits = /-([0-9]{1,9})$/.exec(metadata.name ?? '')?.[1];
  return digits === undefined ? 0 : Number(digits);
}

/** The lowest numbers whose names are free. */
export function freeIndices({ metadata }: ReadonlyPool, count: number, isTaken: (name: string) => boolean): number[] {
  const found: number[] = [];
  for (let index = 0; found.length < count; index++) if (!isTaken(`${metadata.name}-${index}`)) found.push(index);
  return found;
}

/** What the strategy keeps of a machine that goes. */
export function keepsState({ spec: { scaleInStrategy } }: ReadonlyPool): boolean {
  const { statePreservation = 'Disabled' } = scaleInStrategy?.proactive ?? scaleInStrategy?.opportunistic ?? {};
  return statePreservation !== 'Disabled';
}

/** The machine with that number as it is to be made. */
export function newMember(pool: ReadonlyPool, index: number): VirtualMachine {
  const { metadata } = pool.spec.virtualMachineTemplate;
  const revision = poolRevisionName(pool);
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: {
      name: `${pool.metadata.name}-${index}`,
      namespace: pool.metadata.namespace ?? '',
      labels: { ...metadata?.labels, [POOL_REVISION_LABEL]: revision },
      annotations: { ...metadata?.annotations },
      ownerReferences: [controllerReference(pool)],
      ...(keepsState(pool) && { finalizers: [POOL_FINALIZER] }),
    },
    spec: memberSpec(pool.spec, index, revision),
  };
}

/** Annotations that the program writes on machines: no template says them. */
const isOurs = (key: string): boolean => /(^|\.)(kubevirt\.io|coracle\.dev)\//.test(key);

/** A member as the pool's template says now. Who it is stays: its firmware's UUID and serial. */
export function updatedMember(pool: ReadonlyPool, vm: ReadonlyVm): VirtualMachine {
  const next = newMember(pool, memberIndex(vm));
  const { uuid, serial } = vm.spec.template.spec?.domain?.firmware ?? {};
  const domain = next.spec.template.spec?.domain;
  if (domain && (uuid || serial))
    domain.firmware = { ...(uuid && { uuid }), ...(serial && { serial }), ...domain.firmware };
  const kept = Object.entries(vm.metadata.annotations ?? {}).filter(([key]) => isOurs(key));
  return {
    ...(cloneJson(vm) as VirtualMachine),
    metadata: {
      ...(cloneJson(vm.metadata) as VirtualMachine['metadata']),
      labels: { ...next.metadata.labels },
      annotations: { ...Object.fromEntries(kept), ...next.metadata.annotations },
    },
    spec: next.spec,
  };
}

function memberSpec(
  { virtualMachineTemplate, nameGeneration }: DeepReadonly<PoolSpec>,
  index: number,
  revision: string,
) {
  const spec = cloneJson(virtualMachineTemplate.spec ?? {}) as VirtualMachine['spec'];
  const { metadata, spec: instance } = spec.template;
  spec.template.metadata = { ...metadata, labels: { ...metadata?.labels, [POOL_REVISION_LABEL]: revision } };
  const numbered = (name: string): string => `${name}-${index}`;
  const own = new Set<string | undefined>();
  for (const { metadata: dataVolume } of spec.dataVolumeTemplates ?? []) {
    if (!dataVolume?.name) continue;
    own.add(dataVolume.name);
    dataVolume.name = numbered(dataVolume.name);
  }
  const numberIn = (target: { name?: string | undefined } | undefined, isWanted: boolean | undefined): void => {
    if (isWanted && target?.name) target.name = numbered(target.name);
  };
  const { appendIndexToConfigMapRefs: configMaps, appendIndexToSecretRefs: secrets } = nameGeneration ?? {};
  for (const volume of instance?.volumes ?? []) {
    const { persistentVolumeClaim, dataVolume, secret } = volume;
    numberIn(dataVolume, own.has(dataVolume?.name));
    if (persistentVolumeClaim && own.has(persistentVolumeClaim.claimName))
      persistentVolumeClaim.claimName = numbered(persistentVolumeClaim.claimName);
    numberIn(volume.configMap, configMaps);
    numberIn(volume.sysprep?.configMap, configMaps);
    numberIn(volume.sysprep?.secret, secrets);
    if (secrets && secret?.secretName) secret.secretName = numbered(secret.secretName);
    for (const source of [volume.cloudInitNoCloud, volume.cloudInitConfigDrive]) {
      numberIn(source?.secretRef, secrets);
      numberIn(source?.networkDataSecretRef, secrets);
    }
  }
  return spec;
}
