/** The schema of metadata, for kinds whose own schema does not spell it out (custom resources, embedded resources). */
import type { Schema } from './schema.ts';

const string: Schema = { type: 'string' };
const time: Schema = { type: 'string', format: 'date-time' };
const int64: Schema = { type: 'integer', format: 'int64' };
const stringMap: Schema = { type: 'object', additionalProperties: string };

/** meta/v1 ObjectMeta. */
export const OBJECT_META_SCHEMA: Schema = {
  type: 'object',
  properties: {
    annotations: stringMap,
    creationTimestamp: time,
    deletionGracePeriodSeconds: int64,
    deletionTimestamp: time,
    finalizers: {
      type: 'array',
      items: string,
      'x-kubernetes-list-type': 'set',
      'x-kubernetes-patch-strategy': 'merge',
    },
    generateName: string,
    generation: int64,
    labels: stringMap,
    managedFields: {
      type: 'array',
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        properties: {
          apiVersion: string,
          fieldsType: string,
          fieldsV1: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          manager: string,
          operation: string,
          subresource: string,
          time,
        },
        'x-coracle-name': 'io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry',
      },
    },
    name: string,
    namespace: string,
    ownerReferences: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      'x-kubernetes-patch-merge-key': 'uid',
      'x-kubernetes-patch-strategy': 'merge',
      items: {
        type: 'object',
        required: ['apiVersion', 'kind', 'name', 'uid'],
        properties: {
          apiVersion: string,
          blockOwnerDeletion: { type: 'boolean' },
          controller: { type: 'boolean' },
          kind: string,
          name: string,
          uid: string,
        },
        'x-kubernetes-map-type': 'atomic',
        'x-coracle-name': 'io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference',
      },
    },
    resourceVersion: string,
    selfLink: string,
    uid: string,
  },
  'x-coracle-name': 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
};

/** The part every custom object shares: checks it with `decodeErrors` before the kind's own schema is looked at. */
export const CUSTOM_ROOT_SCHEMA: Schema = {
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  properties: { apiVersion: string, kind: string, metadata: OBJECT_META_SCHEMA },
};
