/** What has to be there before some of the bombs: a kind of its own, and large objects. */
import { DEPLOYMENTS, deployment, repeated } from './body.ts';

/** A definition of a kind whose spec has these properties. */
export const definition = (name: string, properties: object): object => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${name}s.fuzz.example` },
  spec: {
    group: 'fuzz.example',
    names: { plural: `${name}s`, singular: name, kind: `${name[0]!.toUpperCase()}${name.slice(1)}` },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
      },
    ],
  },
});

/** What has to be there before some of the bombs: a kind of its own, and large objects. */
export function bombTargets(): { readonly path: string; readonly object: object }[] {
  const item = { type: 'object', properties: { name: { type: 'string' }, value: { type: 'integer' } } };
  return [
    {
      path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      object: definition('bomb', {
        set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
        keyed: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: { ...item, required: ['name'] },
        },
        table: { type: 'object', additionalProperties: { type: 'string', pattern: '^(a+)+$' } },
        open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        defaulted: {
          type: 'array',
          items: { type: 'object', properties: { a: { type: 'string', default: 'x' }, b: { type: 'integer' } } },
        },
      }),
    },
    {
      path: '/api/v1/namespaces/default/serviceaccounts',
      object: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } },
    },
    {
      path: '/api/v1/namespaces/default/configmaps',
      object: {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'large' },
        data: Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`k${at}`, 'v'])),
      },
    },
    {
      path: DEPLOYMENTS,
      object: JSON.parse(
        deployment(repeated(3000, (at) => `{"name":"c${at}","image":"a"}`)).replace('"bomb"', '"owned"'),
      ),
    },
  ];
}
