/** DefaultStorageClass and DefaultIngressClass: the class marked as default goes into objects that name none. */

import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionPlugin } from './plugin.ts';

/** `legacy` is the annotation that named the class before there was a field. */
const RULES = [
  {
    name: 'DefaultStorageClass',
    of: { group: '', resource: 'persistentvolumeclaims' },
    classes: 'storage.k8s.io/storageclasses',
    annotation: 'storageclass.kubernetes.io/is-default-class',
    field: 'storageClassName',
    legacy: 'volume.beta.kubernetes.io/storage-class',
  },
  {
    name: 'DefaultIngressClass',
    of: { group: 'networking.k8s.io', resource: 'ingresses' },
    classes: 'networking.k8s.io/ingressclasses',
    annotation: 'ingressclass.kubernetes.io/is-default-class',
    field: 'ingressClassName',
    legacy: 'kubernetes.io/ingress.class',
  },
];

/** Both plug-ins over this store's classes. */
export const defaultClasses = (store: Pick<ObjectStore, 'list'>): AdmissionPlugin[] =>
  RULES.map(({ name, of, classes, annotation, field, legacy }) => ({
    name,
    matches: (operation, info, subresource) =>
      operation === 'CREATE' && info.resource === of.resource && info.group === of.group && subresource === '',
    mutate({ object }) {
      const { metadata } = object!;
      const spec = object!['spec'];
      // An empty text means "no class", which is an answer.
      if (!isJsonObject(spec) || (spec[field] !== undefined && spec[field] !== null)) return;
      if (metadata.annotations?.[legacy] !== undefined) return;
      const [newest] = store
        .list(classes)
        .items.filter((item) => item.object.metadata.annotations?.[annotation] === 'true')
        .sort(
          (a, b) =>
            (b.object.metadata.creationTimestamp ?? '').localeCompare(a.object.metadata.creationTimestamp ?? '') ||
            (a.name < b.name ? -1 : 1),
        );
      if (newest) spec[field] = newest.name;
    },
  }));
