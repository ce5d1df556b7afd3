/** The claim that a DataVolume asks for (CDI pkg/controller/datavolume, newPersistentVolumeClaim). */
import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { UPLOAD_TARGET, USE_POPULATOR } from '@coracle/cluster-rules/storage/provision-plan';
import type { ClaimPropertySet, ReadonlyDataVolume } from '../../kinds/kinds.ts';

const CONTENT_TYPE = 'cdi.kubevirt.io/storage.contentType';
/** On a DataVolume: its claim is made where there is room, and waits for no Pod. */
export const BIND_IMMEDIATELY = 'cdi.kubevirt.io/storage.bind.immediate.requested';
/** On a DataVolume: a claim of its name that is there already becomes its own, as it is. */
export const PREPOPULATED = 'cdi.kubevirt.io/storage.prePopulated';
/** On a DataVolume that a pool took off a machine that went: the name of the machine that may have it. */
export const KEPT_FOR = 'coracle.dev/kept-for';
export const ALLOW_ADOPTION = 'cdi.kubevirt.io/allowClaimAdoption';

const LABELS = {
  app: 'containerized-data-importer',
  'app.kubernetes.io/component': 'storage',
  'app.kubernetes.io/managed-by': 'cdi-controller',
};

export interface ClaimFacts {
  /** What the profile of the storage class says. */
  readonly propertySets: readonly DeepReadonly<ClaimPropertySet>[];
  /** Class of the claim: that it names, or the default one. */
  readonly className?: string | undefined;
  /** Size of the source, where the DataVolume may leave it out. */
  readonly sourceBytes?: number;
}

/** The claim, or what is missing to make it. */
export function claimOfDataVolume(
  dataVolume: ReadonlyDataVolume,
  { propertySets, className, sourceBytes }: ClaimFacts,
): { readonly claim: PersistentVolumeClaim } | { readonly problem: string } {
  const { metadata, spec } = dataVolume;
  const { pvc, storage } = spec;
  const asked = (pvc ?? storage ?? {}) as NonNullable<typeof pvc>;
  const { resources, accessModes, volumeMode, ...rest } = asked;
  const request = resources?.requests?.['storage'] ?? (storage ? sourceBytes?.toString() : undefined);
  if (request === undefined) return { problem: 'PVC size is missing' };
  // `spec.pvc` is taken literally, `spec.storage` is completed.
  const set = storage ? propertySets.find((one) => fits(one, { accessModes, volumeMode })) : undefined;
  const modes = accessModes?.length ? accessModes : set?.accessModes;
  if (!modes?.length)
    return {
      // CDI's words: programs look for them.
      problem: className
        ? `no accessMode specified in StorageProfile ${className}`
        : 'PVC spec is missing accessMode and no storageClass to choose profile',
    };
  const mode = volumeMode ?? set?.volumeMode;
  return {
    claim: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: metadata.name ?? '',
        namespace: metadata.namespace ?? '',
        labels: { ...metadata.labels, ...LABELS },
        annotations: {
          ...metadata.annotations,
          [CONTENT_TYPE]: spec.contentType || 'kubevirt',
          [USE_POPULATOR]: 'true',
          ...(spec.source?.upload && { [UPLOAD_TARGET]: '' }),
        },
        ownerReferences: [controllerReference(dataVolume)],
      },
      spec: {
        ...(rest as object),
        accessModes: [...modes],
        ...(mode !== undefined && { volumeMode: mode as 'Block' | 'Filesystem' }),
        resources: { ...(resources as object), requests: { ...resources?.requests, storage: String(request) } },
      },
    },
  };
}

const fits = (
  set: DeepReadonly<ClaimPropertySet>,
  { accessModes, volumeMode }: { accessModes: readonly string[] | undefined; volumeMode: string | undefined },
): boolean =>
  (volumeMode === undefined || set.volumeMode === volumeMode) &&
  (!accessModes?.length || accessModes.every((mode) => set.accessModes?.includes(mode)));
