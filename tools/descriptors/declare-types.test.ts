import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declareTypes } from './declare-types.ts';

/** The declaration of one type. */
const declarationOf = (name: string): string =>
  new RegExp(`^export interface ${name} [^}]*}`, 'm').exec(declareTypes())?.[0] ?? '';

test('a kind is declared with its own fields: what they hold, which values they may have, and whether they may be absent', () => {
  assert.equal(
    declarationOf('Pod'),
    'export interface Pod extends KubeObject {\n  spec: PodSpec;\n  status?: PodStatus;\n}',
  );
  assert.equal(
    declarationOf('Taint'),
    "export interface Taint {\n  effect: 'NoExecute' | 'NoSchedule' | 'PreferNoSchedule';\n  key: string;\n  timeAdded?: string;\n  value?: string;\n}",
  );
  assert.equal(
    declarationOf('ResourceRequirements'),
    'export interface ResourceRequirements {\n  claims?: ResourceClaim[];\n  limits?: Record<string, QuantityText>;\n  requests?: Record<string, QuantityText>;\n}',
  );
  assert.match(declarationOf('PodStatus'), /conditions\?: PodCondition\[\];/);
  assert.match(declarationOf('NamespaceStatus'), /conditions\?: Condition\[\];/);
});

test('types of one name in two packages are declared under different names', () => {
  assert.match(declarationOf('EndpointSlice'), /ports\?: EndpointPort\[\];/);
  assert.match(declarationOf('EndpointSubset'), /ports\?: CoreEndpointPort\[\];/);
  assert.match(declarationOf('CoreEndpointPort'), /port: number;/);
});
