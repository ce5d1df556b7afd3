/** Large objects are normalised and judged in steps: to the same result, with stops all along the way. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinResources } from '../../api/kinds/builtin/builtin-resources.ts';
import { cloneJson } from '../../api/meta/deep-clone.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import type { Steps } from '../../api/meta/steps.ts';
import { decodeErrors, decodeErrorsSteps } from '../../api/schema/validate.ts';
import { normalizeInput, normalizeSteps, validateObject, validateSteps } from './normalize-input.ts';

const MANY = 4000;
const many = <T>(make: (at: number) => T): T[] => Array.from({ length: MANY }, (_, at) => make(at));
const keys = (make: (at: number) => [string, unknown]): object => Object.fromEntries(many(make));
const workload = (containers: unknown, volumes: unknown = []): object => ({
  spec: {
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers, volumes } },
  },
});

const cases: readonly [name: string, resource: string, object: object][] = [
  ['containers', 'deployments', workload(many((at) => ({ name: `c${at}`, image: 'a' })))],
  ['containers with faults', 'deployments', workload(many((at) => ({ name: `C ${at}`, ports: [{}], x: 1 })))],
  ['containers that are nothing', 'daemonsets', workload(many(() => ({})))],
  ['nulls for containers', 'statefulsets', workload(many(() => null))],
  [
    'amounts',
    'deployments',
    workload(many((at) => ({ name: `c${at}`, resources: { limits: { cpu: at % 2 ? '1000m' : 'x' } } }))),
  ],
  [
    'variables of one container',
    'jobs',
    workload([{ name: 'c', env: many((at) => ({ name: at % 3 ? `E${at}` : '' })) }]),
  ],
  ['volumes', 'pods', { spec: { containers: [], volumes: many((at) => ({ name: `v${at % 5000}` })) } }],
  ['keys', 'configmaps', { data: keys((at) => [at % 2 ? `k${at}` : ` ${at}`, 'v']) }],
  [
    'keys of two maps',
    'configmaps',
    { data: keys((at) => [`k${at}`, 'v']), binaryData: keys((at) => [`k${at}`, 'AA==']) },
  ],
  ['keys of a secret', 'secrets', { data: keys((at) => [`k${at}`, 'AA==']), type: 'kubernetes.io/tls' }],
  [
    'labels',
    'configmaps',
    { metadata: { labels: keys((at) => [`l ${at}`, ' v']), annotations: keys((at) => [`a${at}`, 'v']) } },
  ],
  [
    'finalizers and owners',
    'configmaps',
    { metadata: { finalizers: many((at) => `f${at}`), ownerReferences: many(() => ({})) } },
  ],
  ['unknown fields', 'configmaps', keys((at) => [`f${at}`, at])],
  ['values of another type', 'configmaps', { data: keys((at) => [`k${at}`, at === 3500 ? 1 : 'v']) }],
];

/** The result, or what was thrown, and in how many steps it was reached. */
function outcome<T>(work: Steps<T>): { result: unknown; steps: number } {
  for (let steps = 1; ; steps++) {
    try {
      const step = work.next();
      if (step.done) return { result: step.value, steps };
    } catch (error) {
      return { result: (error as { status?: unknown }).status ?? error, steps };
    }
  }
}
function* once<T>(work: () => T): Steps<T> {
  yield;
  return work();
}

for (const [name, resource, more] of cases) {
  // S-257
  test(`thousands of ${name} are judged in steps as in one go`, () => {
    const info = builtinResources().find((one) => one.resource === resource)!;
    const given = {
      apiVersion: info.group ? `${info.group}/v1` : 'v1',
      kind: info.kind,
      ...more,
    } as UnstructuredObject;
    given.metadata = { name: 'a', ...(info.namespaced && { namespace: 'b' }), ...given.metadata };
    const [whole, inSteps] = [cloneJson(given), cloneJson(given)] as [UnstructuredObject, UnstructuredObject];
    const decoded = outcome(decodeErrorsSteps(info.schema, inSteps, info));
    assert.equal(decoded.result, decodeErrors(info.schema, whole, info));
    const normal = outcome(normalizeSteps(info, inSteps));
    assert.deepEqual(normal.result, normalizeInput(info, whole));
    assert.deepEqual(inSteps, whole);
    const judged = outcome(validateSteps(info, inSteps));
    assert.deepEqual(judged.result, outcome(once(() => validateObject(info, whole))).result);
    const steps = decoded.steps + normal.steps + judged.steps;
    assert.ok(steps >= 10, `${steps} steps`);
  });
}
