/** What has to be there before some of the bombs: a kind of its own, and large objects. */
import { DEFINITIONS, DEPLOYMENTS, deployment, repeated } from './body.ts';
import { tolerant } from './list-bombs.ts';

/** A definition of a kind whose spec has these properties, and may say more. */
export const definition = (name: string, properties: object, more: object = {}): object => ({
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
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties, ...more } } } },
      },
    ],
  },
});

/** Texts in fields of these names. */
export const texts = (count: number, more: (at: number) => object = () => ({})): Record<string, object> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, { type: 'string', ...more(at) }]));

/** What one sends to make a target: a new object, or what `fuzz` applies to one that is there. */
export interface BombTarget {
  readonly path: string;
  readonly object: object;
  readonly applied?: true;
}

/** What has to be there before some of the bombs: a kind of its own, and large objects. */
export function bombTargets(): BombTarget[] {
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
    // Who has applied before loses what they no longer mention: all of the object is gone through for that.
    ...[
      ['/api/v1/namespaces/default/configmaps/large', 'v1', 'ConfigMap'] as const,
      [`${DEPLOYMENTS}/owned`, 'apps/v1', 'Deployment'] as const,
    ].map(
      ([path, apiVersion, kind]): BombTarget => ({ path, object: mentioned(path, apiVersion, kind), applied: true }),
    ),
    { path: '/api/v1/namespaces/default/pods', object: tolerant() },
    { path: DEFINITIONS, object: definition('wide', texts(50_000)) },
    {
      path: DEFINITIONS,
      object: definition(
        'filled',
        texts(40_000, () => ({ default: 'v' })),
      ),
    },
  ];
}

/** Hardly anything of an object. */
export const mentioned = (path: string, apiVersion: string, kind: string): object => ({
  apiVersion,
  kind,
  metadata: { name: path.slice(path.lastIndexOf('/') + 1), labels: { a: 'b' } },
});
