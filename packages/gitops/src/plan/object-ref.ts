/** Objects by group, kind, namespace and name: one object is one, whatever version it is written in. */

import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import type { ObjectRef } from '../kinds/kinds.ts';

/** The reference of an object. */
export const refOf = (object: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>): ObjectRef => ({
  group: parseApiVersion(object.apiVersion).group,
  kind: object.kind,
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name ?? '',
});

/** For maps: equal texts are the same object. */
export const refId = ({ group, kind, namespace, name }: ObjectRef): string => `${group}/${kind}/${namespace}/${name}`;

/** For people: `Deployment.apps, ns/name`. */
export const refText = ({ group, kind, namespace, name }: ObjectRef): string =>
  `${kind}${group === '' ? '' : `.${group}`}, ${namespace}/${name}`;

/** Namespace and name. */
export const keyOfRef = ({ namespace, name }: ObjectRef): ObjectKey => ({ namespace, name });

/** Value of annotation `configsync.gke.io/resource-id`. */
export const resourceId = ({ group, kind, namespace, name }: ObjectRef): string =>
  [group, kind.toLowerCase(), ...(namespace === '' ? [] : [namespace]), name].join('_');
