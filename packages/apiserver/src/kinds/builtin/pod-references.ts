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
  const { initContainers = [], containers = [], ephemeralContainers = [], imagePullSecrets = [], volumes = [] } = spec;
  const all = [...initContainers, ...containers, ...ephemeralContainers];
  const values = all.flatMap(({ env = [] }) => env.map(({ valueFrom }) => valueFrom));
  const envFrom = all.flatMap((container) => container.envFrom ?? []);
  const projected = volumes.flatMap((volume) => volume.projected?.sources ?? []);
  return {
    secrets: namesIn([
      ...imagePullSecrets.map((secret) => secret.name),
      ...values.map((from) => from?.secretKeyRef?.name),
      ...envFrom.map((from) => from.secretRef?.name),
      ...volumes.map((volume) => volume.secret?.secretName),
      ...projected.map((source) => source.secret?.name),
    ]),
    configmaps: namesIn([
      ...values.map((from) => from?.configMapKeyRef?.name),
      ...envFrom.map((from) => from.configMapRef?.name),
      ...[...volumes, ...projected].map((holder) => holder.configMap?.name),
    ]),
    persistentvolumeclaims: namesIn([
      ...volumes.map((volume) => volume.persistentVolumeClaim?.claimName),
      // A generic ephemeral volume's claim is named after Pod and volume.
      ...volumes.map(({ ephemeral, name }) => (ephemeral ? `${pod.metadata.name}-${name}` : undefined)),
    ]),
    serviceaccounts: namesIn([spec.serviceAccountName]),
  };
}

const namesIn = (names: readonly (string | undefined)[]): ReadonlySet<string> =>
  new Set(names.filter((name): name is string => name !== undefined && name !== ''));
