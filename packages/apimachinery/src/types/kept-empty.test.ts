import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinResource } from '../../../apiserver/src/kinds/builtin/builtin-resources.ts';
import { applyDefaults } from '../schema/defaults.ts';
import { dropEmpty } from '../schema/drop-empty.ts';
import type { Schema } from '../schema/schema.ts';
import { builtinSchema, builtinTypeNames } from './builtin-types.ts';
import { keptEmpties } from './kept-zeros.ts';

test('every field of the table is a list or map of its type', () => {
  const types = new Map(builtinTypeNames().map((name) => [name.split('.').slice(-3).join('.'), name]));
  for (const [type, fields] of keptEmpties()) {
    const schema: Schema = builtinSchema(types.get(type) ?? assert.fail(`no type ${type}`));
    for (const entry of fields) {
      const dropped = entry.startsWith('-');
      const field = dropped ? entry.slice(1) : entry;
      const member = schema.properties?.[field] ?? assert.fail(`${type} has no ${field}`);
      assert.ok(member.type === 'array' || typeof member.additionalProperties === 'object', `${type}.${field}`);
      assert.equal(schema.required?.includes(field) ?? false, dropped, `${type}.${entry} says nothing new`);
    }
  }
});

const ROWS: readonly {
  readonly what: string;
  readonly of: readonly [group: string, resource: string];
  readonly given: Record<string, unknown>;
  readonly kept: Record<string, unknown>;
}[] = [
  {
    what: 'lists and maps of a kind itself are left out',
    of: ['', 'serviceaccounts'],
    given: { secrets: [], imagePullSecrets: [{ name: 'a' }], metadata: { labels: {}, managedFields: [] } },
    kept: { imagePullSecrets: [{ name: 'a' }], metadata: { managedFields: [] } },
  },
  { what: 'maps of text as well', of: ['', 'configmaps'], given: { data: {}, binaryData: {} }, kept: {} },
  {
    what: 'what Go always writes stays',
    of: ['rbac.authorization.k8s.io', 'roles'],
    given: { rules: [] },
    kept: { rules: [] },
  },
  {
    what: 'so does a required list; structs and items stay, whatever is in them',
    of: ['networking.k8s.io', 'networkpolicies'],
    given: {
      spec: { podSelector: { matchLabels: {} }, policyTypes: ['Ingress'], ingress: [{ from: [], ports: [{}] }] },
    },
    kept: { spec: { podSelector: {}, policyTypes: ['Ingress'], ingress: [{ ports: [{ protocol: 'TCP' }] }] } },
  },
  {
    what: 'content of any form is not looked into',
    of: ['apps', 'controllerrevisions'],
    given: { data: { list: [], map: {} }, revision: 1 },
    kept: { data: { list: [], map: {} }, revision: 1 },
  },
  {
    what: 'a definition keeps the empty default of a schema, but not its empty lists',
    of: ['apiextensions.k8s.io', 'customresourcedefinitions'],
    given: schemaWith({ type: 'object', default: {}, required: [], properties: {}, additionalProperties: {} }),
    kept: schemaWith({ type: 'object', default: {}, additionalProperties: {} }),
  },
];

function schemaWith(openAPIV3Schema: unknown): Record<string, unknown> {
  return { spec: { names: {}, versions: [{ name: 'v1', schema: { openAPIV3Schema } }] } };
}

for (const {
  what,
  of: [group, resource],
  given,
  kept,
} of ROWS) {
  // S-260: Fields that Go always writes are always shown and never asked for; empty lists and maps that it leaves out
  //   are not kept.
  // Compat Writing, P1, yes: empty lists and maps of built-in kinds that Go leaves out are not kept
  test(`empty lists and maps: ${what}`, () => {
    const info = builtinResource({ group, version: 'v1', resource }) ?? assert.fail(`no ${resource}`);
    const object = structuredClone(given);
    dropEmpty(info.schema, object);
    applyDefaults(info.schema, object);
    info.strategy.setDefaults?.(object);
    for (const [key, value] of Object.entries(kept)) {
      if (group === 'apiextensions.k8s.io') assert.deepEqual(schemaOf(object), schemaOf(kept));
      else assert.deepEqual(object[key], value);
    }
    for (const key of Object.keys(given)) if (!Object.hasOwn(kept, key)) assert.ok(!Object.hasOwn(object, key), key);
  });
}

const schemaOf = (object: Record<string, unknown>): unknown =>
  (object['spec'] as { versions: { schema: { openAPIV3Schema: unknown } }[] }).versions[0]!.schema.openAPIV3Schema;
