import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../../apimachinery/src/meta/object.ts';
import type { DeletedVirtualMachineContent } from '../../kinds/kinds.ts';
import { restoredDependent, restoredMachine } from './restored-objects.ts';

/** As a RootSync has written it, with what others put beside. */
const metadata = (name: string) => ({
  name,
  namespace: 'shop',
  uid: 'u',
  labels: {
    app: 'shop',
    'app.kubernetes.io/managed-by': 'configmanagement.gke.io',
    'applyset.kubernetes.io/part-of': 'applyset-x-v1',
    'configsync.gke.io/declared-version': 'v1',
  },
  annotations: {
    note: 'mine',
    'configmanagement.gke.io/managed': 'enabled',
    'configsync.gke.io/resource-id': `kubevirt.io_virtualmachine_shop_${name}`,
    'configsync.gke.io/manager': ':root',
    'config.k8s.io/owning-inventory': 'config-management-system_root-sync',
    'coracle.dev/dependents': '{}',
  },
});
const secret: KubeObject = { apiVersion: 'v1', kind: 'Secret', metadata: metadata('login') };
const content = {
  apiVersion: 'coracle.dev/v1alpha1',
  kind: 'DeletedVirtualMachineContent',
  metadata: { name: 'db.1', uid: 'c' },
  spec: {
    virtualMachine: { namespace: 'shop', name: 'db', uid: 'u' },
    namespaceUID: 'n',
    deletedAt: '2026-01-01T00:00:00Z',
    bytes: 1,
    objects: [
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: metadata('db'),
        spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} } } } },
      },
      secret,
    ],
  },
} as unknown as DeletedVirtualMachineContent;
const plan = { request: 'r', namespace: 'shop', name: 'db' };

// S-979: A machine that is undeleted, or restored after it has gone, is no sync's, and stays.
test('what is undeleted belongs to no sync: one that took it out of Git would take it away again', () => {
  for (const made of [restoredMachine(content, plan), restoredDependent(content, plan, secret)]) {
    assert.deepEqual(made.metadata.labels, { app: 'shop' });
    const { note, ...others } = made.metadata.annotations ?? {};
    assert.equal(note, 'mine');
    assert.deepEqual(
      Object.keys(others).filter((key) => !key.startsWith('coracle.dev/')),
      [],
    );
    assert.equal(others['coracle.dev/dependents'], undefined);
  }
});

test('a manager that is not a sync stays named', () => {
  const own = structuredClone(content) as DeletedVirtualMachineContent;
  own.spec.objects[0]!.metadata.labels = { 'app.kubernetes.io/managed-by': 'Helm' };
  assert.deepEqual(restoredMachine(own, plan).metadata.labels, { 'app.kubernetes.io/managed-by': 'Helm' });
});
