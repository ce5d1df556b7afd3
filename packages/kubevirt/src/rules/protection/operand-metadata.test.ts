import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ObjectMeta } from '../../../../apimachinery/src/meta/object.ts';
import { isOfSsp, operandMetadata } from './operand-metadata.ts';

const OPERAND = { name: 'vm-delete-protection', component: 'vmDeleteProtection' };
const LABELS = {
  'app.kubernetes.io/name': 'vm-delete-protection',
  'app.kubernetes.io/component': 'vmDeleteProtection',
  'app.kubernetes.io/managed-by': 'ssp-operator',
};
const OF_SSP = {
  'operator-sdk/primary-resource': 'kubevirt/ssp',
  'operator-sdk/primary-resource-type': 'SSP.ssp.kubevirt.io',
};
const PARTS = { 'app.kubernetes.io/part-of': 'hyperconverged-cluster', 'app.kubernetes.io/version': 'v1' };
const ssp = { metadata: { namespace: 'kubevirt', name: 'ssp', labels: { ...PARTS, other: 'label' } } };
const plain = { metadata: { namespace: 'kubevirt', name: 'ssp' } };
const name = 'p';

const CASES: readonly [what: string, found: ObjectMeta, owner: typeof ssp | typeof plain | undefined, ObjectMeta][] = [
  ['a new one', { name }, undefined, { name, labels: LABELS }],
  ['a new one of an SSP object', { name }, ssp, { name, labels: { ...LABELS, ...PARTS }, annotations: OF_SSP }],
  ['an SSP object without labels', { name }, plain, { name, labels: LABELS, annotations: OF_SSP }],
  [
    'a label of ours changed, labels and annotations of users',
    { name, labels: { mine: '1', 'app.kubernetes.io/name': 'x' }, annotations: { mine: '2' } },
    ssp,
    { name, labels: { mine: '1', ...LABELS, ...PARTS }, annotations: { mine: '2', ...OF_SSP } },
  ],
  [
    'the SSP object is gone: what it gave goes, what users gave stays',
    { name, labels: { mine: '1', ...LABELS, ...PARTS }, annotations: { mine: '2', ...OF_SSP } },
    undefined,
    { name, labels: { mine: '1', ...LABELS }, annotations: { mine: '2' } },
  ],
  [
    'labels of users that an SSP object could have given',
    { name, labels: { ...LABELS, ...PARTS } },
    undefined,
    { name, labels: { ...LABELS, ...PARTS } },
  ],
  [
    'an owner reference: the collector would take the operand',
    { name, labels: LABELS, ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'u' }] },
    undefined,
    { name, labels: LABELS },
  ],
];
for (const [what, found, owner, expected] of CASES) {
  test(`metadata of an operand: ${what}`, () => {
    const wanted = operandMetadata(found, OPERAND, owner);
    assert.deepEqual(wanted, expected);
    assert.equal(operandMetadata(wanted, OPERAND, owner), wanted, 'nothing more to change');
  });
}

test('the annotations say whose an operand is', () => {
  const other = { metadata: { namespace: 'kubevirt', name: 'other' } };
  assert.deepEqual(
    [isOfSsp({ annotations: OF_SSP }, ssp), isOfSsp({ annotations: OF_SSP }, other), isOfSsp({ name }, ssp)],
    [true, false, false],
  );
});
