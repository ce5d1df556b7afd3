/** What a Pod refers to by name: whoever runs it may read these (pkg/api/v1/pod/util.go, the node authorizer's graph). */

import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { PodParts } from '@coracle/apimachinery/types/types';

/** The names, by plural resource. */
export interface PodReferences {
  readonly secrets: ReadonlySet<string>;
  readonly configmaps: ReadonlySet<string>;
  readonly persistentvolumeclaims: ReadonlySet<string>;
  readonly serviceaccounts: ReadonlySet<string>;
}

export const nodeNameOf = (pod: Readonly<KubeObject>): string => (pod as PodParts).spec?.nodeName ?? '';

/** Reads them all. */
export function podReferences(pod: Readonly<KubeObject>): PodReferences {
  const { spec = {} } = pod as PodParts;
  const secrets = new Set<string>();
  const configmaps = new Set<string>();
  const claims = new Set<string>();
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
    add(configmaps, volume.configMap?.name);
    for (const source of volume.projected?.sources ?? []) {
      add(secrets, source.secret?.name);
      add(configmaps, source.configMap?.name);
    }
    add(claims, volume.persistentVolumeClaim?.claimName);
    // A generic ephemeral volume's claim is named after Pod and volume.
    if (volume.ephemeral) add(claims, `${pod.metadata.name}-${volume.name}`);
  }
  return {
    secrets,
    configmaps,
    persistentvolumeclaims: claims,
    serviceaccounts: new Set(spec.serviceAccountName ? [spec.serviceAccountName] : []),
  };
}
