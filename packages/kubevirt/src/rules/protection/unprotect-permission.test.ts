import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ObjectMeta } from '../../../../apimachinery/src/meta/object.ts';
import { DELETE_PROTECTION_LABEL } from './delete-protection.ts';
import { protectionSettingsOf, UNPROTECT_PERMISSION_ANNOTATION } from './protection-settings.ts';
import { switchesProtectionOff, unprotectRefusal } from './unprotect-permission.ts';

const labelled = (value: string | undefined, more: Partial<ObjectMeta> = {}) => ({
  metadata: { name: 'vm', ...(value !== undefined && { labels: { [DELETE_PROTECTION_LABEL]: value } }), ...more },
});

test('switchesProtectionOff() is true for every way from on to off, and for no other change', () => {
  const cases: readonly [before: string | undefined, after: string | undefined, off: boolean][] = [
    ['true', 'True', false],
    ['True', 'true', false],
    ['true', 'TRUE', true],
    ['true', 'false', true],
    ['True', '', true],
    ['true', undefined, true],
    ['TRUE', undefined, false],
    [undefined, 'true', false],
    [undefined, undefined, false],
  ];
  for (const [before, after, off] of cases)
    assert.equal(switchesProtectionOff(labelled(before), labelled(after)), off, `${before} > ${after}`);
  const deleting = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  assert.equal(switchesProtectionOff(labelled('true', deleting), labelled(undefined, deleting)), false);
});

test('unprotectRefusal() names the right, the machine and the command that grants it', () => {
  const text = (username: string): string => unprotectRefusal({ username, namespace: 'shop', name: 'db' });
  assert.match(text('eve'), /verb "unprotect"/);
  assert.match(text('eve'), /VirtualMachine shop\/db/);
  assert.match(text('eve'), / rolebinding unprotect -n shop --clusterrole=coracle:unprotect --user=eve$/);
  assert.match(text('system:serviceaccount:ci:deployer'), / --serviceaccount=ci:deployer$/);
  assert.match(text('x; rm -rf /'), / --user=NAME$/, 'nothing to paste that a user wrote');
});

test('protectionSettingsOf() is on where one object says true, and off by default', () => {
  const object = (value?: string) => ({
    metadata: { name: 'o', ...(value !== undefined && { annotations: { [UNPROTECT_PERMISSION_ANNOTATION]: value } }) },
  });
  const isOn = (...values: (string | undefined)[]) => protectionSettingsOf(values.map(object)).unprotectNeedsPermission;
  assert.deepEqual(
    [isOn(), isOn(undefined), isOn('false'), isOn('1'), isOn('true')],
    [false, false, false, false, true],
  );
  assert.equal(isOn(undefined, 'true'), true);
});
