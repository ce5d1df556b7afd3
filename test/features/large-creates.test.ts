import { test } from 'node:test';
import { both, KEYS, keys, kindOf, large, many, pathOf, spec, useLargeServers } from '../testkit/large-servers.ts';

useLargeServers();

const created: readonly [name: string, resource: string, object: object][] = [
  ['containers', 'deployments', spec(many((at) => ({ name: `c${at}`, image: 'a' })))],
  ['containers that are wrong', 'deployments', spec(many((at) => ({ name: `C ${at}`, ports: [{}], x: 1 })))],
  ['containers that are nothing', 'daemonsets', spec(many(() => ({}), KEYS))],
  ['nulls for containers', 'statefulsets', spec(many(() => null, KEYS))],
  [
    'amounts',
    'deployments',
    spec(many((at) => ({ name: `c${at}`, resources: { limits: { cpu: at % 2 ? '1000m' : 'x' } } }))),
  ],
  [
    'variables',
    'replicasets',
    spec([{ name: 'c', image: 'a', env: many((at) => ({ name: at % 3 ? `E${at}` : '' })) }]),
  ],
  [
    'volumes',
    'pods',
    { spec: { containers: [{ name: 'c', image: 'a' }], volumes: many((at) => ({ name: `v${at}` })) } },
  ],
  ['keys', 'configmaps', { data: keys((at) => [`k${at}`, 'v']) }],
  ['wrong keys', 'configmaps', { data: keys((at) => [at % 2 ? `k${at}` : ` ${at}`, 'v']) }],
  ['keys of a secret', 'secrets', { data: keys((at) => [`k${at}`, 'AA==']), type: 'kubernetes.io/tls' }],
  [
    'labels',
    'configmaps',
    { metadata: { labels: keys((at) => [`l ${at}`, ' v']), annotations: keys((at) => [`a${at}`, 'v']) } },
  ],
  ['unknown fields', 'configmaps', keys((at) => [`f${at}`, at])],
  ['values of another type', 'configmaps', { data: keys((at) => [`k${at}`, at === 4500 ? 1 : 'v']) }],
  ['defaults of a definition', 'things', { spec: { list: many(() => ({}), KEYS) } }],
  ['values that a schema refuses', 'things', { spec: { list: many((at) => ({ b: at % 100 ? at : 'x' })) } }],
  ['items given twice', 'things', { spec: { set: many((at) => `s${at % (KEYS - 1)}`, KEYS) } }],
  ['items that a rule refuses', 'things', { spec: { set: ['bad', ...many((at) => `s${at}`, KEYS)] } }],
  ['content of any form', 'things', { spec: { open: keys((at) => [`k${at}`, { a: [at, null, 2 ** 40] }]) } }],
];

for (const [name, resource, object] of created) {
  // S-257
  test(`a create of thousands of ${name}`, async () => {
    const given = { ...kindOf(resource), ...object } as { metadata?: object };
    for (const query of ['?dryRun=All', '?fieldValidation=Strict', '']) {
      const metadata = { name: `n-${created.findIndex(([one]) => one === name)}`, ...given.metadata };
      const path = `${pathOf(resource)}${query}`;
      const { status } = await large({ method: 'POST', path, body: { ...given, metadata } });
      if (query === '' && status === 201) await both({ method: 'GET', path: `${pathOf(resource)}/${metadata.name}` });
      if (query === '?fieldValidation=Strict' && status === 201) {
        await both({ method: 'DELETE', path: `${pathOf(resource)}/${metadata.name}?gracePeriodSeconds=0` });
      }
    }
  });
}
