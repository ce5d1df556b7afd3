/** What a Pod refers to by name: whoever runs it may read these (pkg/api/v1/pod/util.go, the node authorizer's graph). */

import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { PodParts } from '@coracle/apimachinery/types/types';

interface NameRef {
  name?: string;
}
interface SecretRefs {
  secretRef?: NameRef;
}

/** Volume sources that name one Secret as `secretRef`. */
const WITH_SECRET_REF = ['cephfs', 'cinder', 'flexVolume', 'rbd', 'scaleIO', 'iscsi', 'storageos'] as const;

/** The names, by plural resource. */
export interface PodReferences {
  readonly secrets: ReadonlySet<string>;
  readonly configmaps: ReadonlySet<string>;
  readonly persistentvolumeclaims: ReadonlySet<string>;
  readonly serviceaccounts: ReadonlySet<string>;
  readonly resourceclaims: ReadonlySet<string>;
  readonly trustBundles: boolean;
}

export const nodeNameOf = (pod: Readonly<KubeObject>): string => (pod as PodParts).spec?.nodeName ?? '';

/** Reads them all. */
export function podReferences(pod: Readonly<KubeObject>): PodReferences {
  const { spec = {}, status = {} } = pod as PodParts;
  const secrets = new Set<string>();
  const configmaps = new Set<string>();
  const claims = new Set<string>();
  let trustBundles = false;
  const add = (names: Set<string>, name: string | undefined): void => {
    if (name) names.add(name);
  };
  for (const secret of spec.imagePullSecrets ?? []) add(secrets, secret.name);
  for (const container of [
    ...(spec.initContainers ?? []),
    ...(spec.containers ?? []),
    ...(spec.ephemeralContainers ?? []),
  ]) {
    for (const { valueFrom } of container.env ?? []) {
      add(secrets, valueFrom?.secretKeyRef?.name);
      add(configmaps, valueFrom?.configMapKeyRef?.name);
    }
    for (const from of container.envFrom ?? []) {
      add(secrets, from.secretRef?.name);
      add(configmaps, from.configMapRef?.name);
    }
  }
  for (const volume of spec.volumes ?? []) {
    add(secrets, volume.secret?.secretName);
    add(secrets, volume.azureFile?.secretName);
    add(secrets, volume.csi?.nodePublishSecretRef?.name);
    for (const source of WITH_SECRET_REF) add(secrets, (volume[source] as SecretRefs | undefined)?.secretRef?.name);
    add(configmaps, volume.configMap?.name);
    for (const source of volume.projected?.sources ?? []) {
      add(secrets, source.secret?.name);
      add(configmaps, source.configMap?.name);
      if (source.clusterTrustBundle) trustBundles = true;
    }
    add(claims, volume.persistentVolumeClaim?.claimName);
    // A generic ephemeral volume's claim is named after Pod and volume.
    if (volume.ephemeral) add(claims, `${pod.metadata.name}-${volume.name}`);
  }
  const resourceclaims = new Set<string>();
  for (const claim of spec.resourceClaims ?? []) add(resourceclaims, claim.resourceClaimName);
  for (const claim of status.resourceClaimStatuses ?? []) add(resourceclaims, claim.resourceClaimName);
  return {
    secrets,
    configmaps,
    persistentvolumeclaims: claims,
    serviceaccounts: new Set(spec.serviceAccountName ? [spec.serviceAccountName] : []),
    resourceclaims,
    trustBundles,
  };
}
