/** What becomes of the objects around a machine, what stands against its deletion, and what would keep objects. */
import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import type { KubeObject } from '../../../../apimachinery/src/meta/object.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { type GraphKind, graphNode } from '../object-graph/graph-node.ts';
import { GRAPH_RESOURCES } from '../object-graph/graph-resources.ts';
import type { ExtendedGraphNode } from '../object-graph/mark-graph.ts';
import { blocksOf, finalizerRows, type NamespaceObject, previewRows } from './deletion-preview.ts';
import { listedLookup } from './listed-lookup.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const node = (kind: GraphKind, name: string, marks: Partial<ExtendedGraphNode> = {}): ExtendedGraphNode => ({
  ...graphNode(kind, { namespace: kind === 'PersistentVolume' ? '' : 'ns', name }),
  exists: true,
  ...marks,
});
const object = (kind: GraphKind, name: string, owners: string[] = []): NamespaceObject => {
  const { group, resource } = GRAPH_RESOURCES[kind];
  const metadata = {
    name,
    namespace: 'ns',
    uid: `${kind}/${name}`,
    ownerReferences: owners.map((uid) => ({ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid })),
  };
  return { group, resource, kind, metadata, object: { metadata } as KubeObject };
};
const machine = (name: string, labels: Record<string, string> = {}, volumes: object[] = []): VirtualMachine =>
  ({
    metadata: { name, namespace: 'ns', uid: name, labels },
    spec: { template: { spec: { domain: {}, volumes } } },
  }) as unknown as VirtualMachine;

// S-794
test('rows: deleted, held by a protected machine, kept, missing, unknown, and what the graph does not have', () => {
  const shared = [{ persistentVolumeClaim: { claimName: 'shared' } }];
  const copy = machine('copy', { [LABEL]: 'true' }, shared);
  const graph = node('VirtualMachine', 'db', {
    children: [
      node('PersistentVolumeClaim', 'own', {
        owned: true,
        children: [node('PersistentVolume', 'pv-own', { owned: true })],
      }),
      node('PersistentVolumeClaim', 'shared', {
        owned: true,
        usedBy: [{ apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'copy', namespace: 'ns' }],
        children: [node('PersistentVolume', 'pv-shared', { owned: true })],
      }),
      node('Secret', 'free'),
      node('Secret', 'absent', { exists: false }),
      { ...graphNode('ConfigMap', { namespace: 'ns', name: 'hidden' }), unknown: true },
      node('DataVolume', 'unlisted', { owned: true }),
    ],
  });
  const rows = previewRows({
    vm: machine('db', { [LABEL]: 'true' }, shared),
    graph,
    objects: [
      object('PersistentVolumeClaim', 'own', ['db']),
      object('PersistentVolumeClaim', 'shared', ['db']),
      object('Secret', 'free'),
      object('Secret', 'extra', ['db']),
      object('ConfigMap', 'below', ['Secret/extra']),
      object('ConfigMap', 'below-shared', ['PersistentVolumeClaim/shared']),
    ],
    lookup: listedLookup({ machines: [copy], claims: [], restores: [], contents: [] }),
  });
  assert.deepEqual(
    rows.map(({ kind, name, fate, usedBy }) => [`${kind}/${name}`, fate, ...(usedBy ?? [])].join(' ')),
    [
      'PersistentVolumeClaim/own Deleted',
      'PersistentVolume/pv-own Deleted',
      'PersistentVolumeClaim/shared Held VirtualMachine/copy',
      'PersistentVolume/pv-shared Kept',
      'Secret/free Kept',
      'Secret/absent Missing',
      'ConfigMap/hidden Unknown',
      'DataVolume/unlisted Deleted',
      'ConfigMap/below Deleted',
      'Secret/extra Deleted',
    ],
  );
  assert.match(
    rows.find(({ name }) => name === 'shared')!.why!,
    /^protected VirtualMachine ns\/copy \(spec\.template\.spec\.volumes\[0\]\.persistentVolumeClaim\.claimName\) refers to it/,
  );
});

// S-795
describe('blocksOf()', () => {
  const off = { unprotectNeedsPermission: false, deleteOnlyWhenStopped: false };
  const running = {
    metadata: { name: 'db', ownerReferences: [{ kind: 'VirtualMachine', uid: 'db', controller: true }] },
    status: { phase: 'Running' },
  };
  const STOPPED = 'coracle.dev/delete-only-when-stopped';
  const rows: [what: string, labels: Record<string, string>, more: object, expected: string[]][] = [
    ['nothing', {}, { settings: off, vmi: running }, []],
    ['a value that does not protect', { [LABEL]: 'TRUE' }, { settings: off }, []],
    [
      'the label, with the command that takes it off',
      { [LABEL]: 'True' },
      { settings: off },
      [`Protected label ${LABEL}=True: kubectl label vm db -n ns ${LABEL}-`],
    ],
    ['stopped first: it is stopped', { [STOPPED]: 'true' }, { settings: off }, []],
    [
      'stopped first: it runs',
      { [STOPPED]: 'true' },
      { settings: off, vmi: running },
      [
        `DeleteOnlyWhenStopped VirtualMachine ns/db may be deleted only when it is stopped (label ${STOPPED}), and its ` +
          'instance is Running; stop it first, with: virtctl stop db -n ns: virtctl stop db -n ns',
      ],
    ],
  ];
  for (const [what, labels, more, expected] of rows)
    it(what, () => {
      const blocks = blocksOf(machine('db', labels), more as never);
      assert.deepEqual(
        blocks.map(({ reason, message, command }) => `${reason} ${message}: ${command}`),
        expected,
      );
    });
});

test('finalizers say who takes them off, and which nobody here does', () => {
  const finalizers = ['kubernetes.io/pvc-protection', 'example.com/hold'];
  assert.deepEqual(
    finalizerRows([
      { kind: 'Pod', metadata: { name: 'a' } },
      { kind: 'PersistentVolumeClaim', metadata: { name: 'b', finalizers } },
    ]).map(({ kind, name, finalizer, waitsFor }) => `${kind}/${name} ${finalizer}: ${waitsFor}`),
    [
      'PersistentVolumeClaim/b kubernetes.io/pvc-protection: the control plane, when no Pod uses the claim',
      'PersistentVolumeClaim/b example.com/hold: the component that added it: it is not a finalizer of Kubernetes or KubeVirt',
    ],
  );
});
