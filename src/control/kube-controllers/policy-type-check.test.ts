import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schema } from '../../api/schema/schema.ts';
import { type CheckedPolicy, type TypedKind, typeWarnings } from './policy-type-check.ts';

const schema: Schema = { type: 'object', properties: { size: { type: 'integer' } } };
const kinds: TypedKind[] = Array.from({ length: 12 }, (_, i) => ({
  group: `g${i}`,
  version: 'v1',
  resource: `r${i}`,
  kind: `K${i}`,
  schema,
}));
const many = (prefix: string): string[] => Array.from({ length: 10_000 }, (_, i) => `${prefix}${i}`);
const policy = (rules: object[], expressions: string[]): CheckedPolicy =>
  ({
    spec: {
      matchConstraints: { resourceRules: rules },
      validations: expressions.map((expression) => ({ expression })),
    },
  }) as CheckedPolicy;
const checkedOf = async (rules: object[]): Promise<string[]> => {
  const [found] = await typeWarnings(policy(rules, ['object.nope == 1']), kinds, { turnIsLong: () => false });
  return [...(found?.warning ?? '').matchAll(/Kind=(\w+)/g)].map(([, kind]) => kind!);
};

test('groups, versions and resources of a rule are looked up, however many there are; after ten kinds no rule is read', async () => {
  const rule = { apiGroups: many('g'), apiVersions: many('v'), resources: many('r') };
  const ten = ['K0', 'K1', 'K10', 'K11', 'K2', 'K3', 'K4', 'K5', 'K6', 'K7'];
  const last = { apiGroups: ['g9'], apiVersions: ['v1'], resources: ['r9'] };
  assert.deepEqual(await checkedOf([rule, last]), ten);
  assert.deepEqual(await checkedOf([last, rule]), [...ten, 'K9']);
});

test('others have their turn between expressions', async () => {
  let turned = false;
  const rule = { apiGroups: ['g1'], apiVersions: ['v1'], resources: ['r1'] };
  const asked = policy([rule], Array<string>(5).fill('object.size > 1'));
  const done = typeWarnings(asked, kinds, { turnIsLong: () => true });
  setImmediate(() => {
    turned = true;
  });
  assert.deepEqual(await done, []);
  assert.equal(turned, true);
});
