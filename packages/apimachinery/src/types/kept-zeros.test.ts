import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinResource } from '../../../apiserver/src/kinds/builtin/builtin-resources.ts';
import { decodeErrors } from '../schema/decode-errors.ts';
import { applyDefaults, dropNulls } from '../schema/defaults.ts';
import { dropEmpty } from '../schema/drop-empty.ts';
import { pruneUnknown } from '../schema/prune.ts';

// biome-ignore lint/suspicious/noExplicitAny: documents of any form
type Json = Record<string, any>;

const ROWS: readonly {
  readonly of: readonly [group: string, resource: string];
  readonly given: Record<string, unknown>;
  readonly kept: Record<string, unknown>;
}[] = [
  {
    of: ['apps', 'deployments'],
    given: { spec: { paused: false, replicas: 0, minReadySeconds: 0, progressDeadlineSeconds: 0 } },
    kept: { spec: { replicas: 0, progressDeadlineSeconds: 0 } },
  },
  {
    of: ['', 'pods'],
    given: {
      metadata: { generateName: '', generation: 0 },
      spec: {
        hostNetwork: false,
        hostUsers: false,
        nodeName: '',
        priority: 0,
        containers: [{ name: '', image: '', stdin: false, ports: [{ containerPort: 0, hostPort: 0, protocol: '' }] }],
        tolerations: [{ key: '', operator: '', tolerationSeconds: 0 }],
      },
    },
    kept: {
      metadata: {},
      spec: {
        hostUsers: false,
        priority: 0,
        containers: [{ name: '', ports: [{ containerPort: 0 }] }],
        tolerations: [{ tolerationSeconds: 0 }],
      },
    },
  },
  {
    of: ['', 'secrets'],
    given: { type: '', immutable: false, data: { a: '' }, stringData: { b: '' } },
    kept: { immutable: false, data: { a: '' }, stringData: { b: '' } },
  },
  {
    of: ['admissionregistration.k8s.io', 'validatingwebhookconfigurations'],
    given: { webhooks: [{ name: 'a', clientConfig: { caBundle: '', url: '' }, timeoutSeconds: 0 }] },
    kept: { webhooks: [{ name: 'a', clientConfig: { url: '' }, timeoutSeconds: 0 }] },
  },
  {
    of: ['apps', 'controllerrevisions'],
    given: { data: { paused: false, name: '', count: 0 }, revision: 0 },
    kept: { data: { paused: false, name: '', count: 0 }, revision: 0 },
  },
  {
    of: ['resource.k8s.io', 'resourceslices'],
    given: { spec: { driver: '', sharedCounters: [{ name: 'a', counters: {} }] } },
    kept: { spec: { driver: '', sharedCounters: [{ name: 'a' }] } },
  },
];

for (const {
  of: [group, resource],
  given,
  kept,
} of ROWS) {
  // S-315: Objects of built-in kinds come back as Go writes them: without empty fields, with every digit of a quantity
  //   and of content of any form.
  // Compat Writing, P1, yes: empty fields of built-in kinds (`paused: false`, `''`, 0) that Go leaves out are not kept,
  //   and ask for the default
  test(`zeros that Go leaves out: ${resource}`, () => {
    const info = builtinResource({ group, version: 'v1', resource }) ?? assert.fail(`no ${resource}`);
    const object = structuredClone(given);
    dropEmpty(info.schema, object);
    assert.deepEqual(object, kept);
  });
}

// Compat CustomResourceDefinitions, P1, yes: schemas in `items`, `additionalProperties`, `dependencies` of a definition
//   are decoded: unknown fields go unreported, empty ones are left out, wrong types are 400
test('schemas of a definition that may be something else are decoded as well', () => {
  const info =
    builtinResource({ group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }) ??
    assert.fail();
  const schemaOf = (object: Json): unknown => object['spec'].versions[0].schema.openAPIV3Schema;
  const definition = (openAPIV3Schema: unknown): Json => ({ spec: { versions: [{ schema: { openAPIV3Schema } }] } });
  const inside = {
    type: 'string',
    description: '',
    nullable: false,
    maxLength: 0,
    required: [],
    bogus: 1,
    format: null,
  };
  const object = definition({
    items: inside,
    additionalProperties: { not: inside },
    dependencies: { a: ['b'], c: inside },
  });
  assert.deepEqual(
    pruneUnknown(info.schema, object, { custom: false }),
    [],
    'nobody is reported what is unknown there',
  );
  dropNulls(info.schema, object, { custom: false });
  dropEmpty(info.schema, object);
  const kept = { type: 'string', maxLength: 0 };
  assert.deepEqual(schemaOf(object), {
    items: kept,
    additionalProperties: { not: kept },
    dependencies: { a: ['b'], c: kept },
  });

  const gvk = { group: '', version: 'v1', kind: 'CustomResourceDefinition' };
  const problemOf = (schema: unknown): string | undefined => decodeErrors(info.schema, definition(schema), gvk);
  assert.equal(problemOf({ items: [inside], additionalProperties: false }), undefined);
  assert.match(problemOf({ additionalProperties: 1 })!, /: boolean or JSON schema expected$/);
  assert.match(
    problemOf({ items: { not: { nullable: 'no' } } })!,
    /spec\.versions\[0\]\.schema\.openAPIV3Schema\.items\.not\.nullable: expected bool, got string$/,
  );
});

test('what Go always writes is never among what it leaves out', () => {
  const info = builtinResource({ group: 'apps', version: 'v1', resource: 'statefulsets' }) ?? assert.fail();
  const object = { status: { conditions: [{}], availableReplicas: 0, currentReplicas: 0 } };
  dropEmpty(info.schema, object);
  applyDefaults(info.schema, object);
  const condition = { type: '', status: '', lastTransitionTime: null };
  assert.deepEqual(object.status, { conditions: [condition], availableReplicas: 0, replicas: 0 });
});
