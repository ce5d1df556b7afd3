import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const LAST = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'lasts.example.test' },
  spec: {
    group: 'example.test',
    scope: 'Namespaced',
    names: { plural: 'lasts', singular: 'last', kind: 'Last', listKind: 'LastList' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
};

interface Definition {
  readonly metadata: {
    readonly name: string;
    readonly generation: number;
    readonly managedFields: readonly { readonly manager: string }[];
  };
  readonly status: {
    readonly observedGeneration?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

// S-1440: The definitions of a fresh control plane are established from the first moment, and are written once each.
test('a fresh control plane writes each of its definitions once', async (t) => {
  const plane = await startPlane();
  t.after(() => plane.stop());
  const isEstablished = ({ status }: Definition): boolean =>
    status.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True') === true;
  const definitions: Definition[] = (await plane.admin(`GET ${PATH}`)).items;
  assert.deepEqual(
    definitions.filter((one) => !isEstablished(one)).map(({ metadata }) => metadata.name),
    [],
  );
  // Definitions are looked at in the order in which they came: once the last one is served, all others were seen.
  await plane.admin(`POST ${PATH}`, LAST);
  await eventually('the definition that came last', async () =>
    isEstablished(await plane.admin(`GET ${PATH}/${LAST.metadata.name}`)),
  );
  const after: Definition[] = (await plane.admin(`GET ${PATH}`)).items;
  const writtenAgain = after
    .filter(({ metadata }) => metadata.managedFields.some(({ manager }) => manager === 'kube-apiserver'))
    .map(({ metadata }) => metadata.name);
  assert.deepEqual(writtenAgain, [LAST.metadata.name]);
  for (const { metadata, status } of after) assert.equal(status.observedGeneration, metadata.generation, metadata.name);
});
