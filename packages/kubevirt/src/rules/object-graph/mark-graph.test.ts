/** What is said of each object: existence, ownership, who else refers to it; nothing of what may not be read. */
import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { VirtualMachine, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { type GraphLists, keyOfNode } from './extend-graph.ts';
import { type GraphKind, graphNode } from './graph-node.ts';
import {
  type ExtendedGraphNode,
  type Looked,
  MAX_USERS,
  markGraph,
  type ObjectUsers,
  usersOfObjects,
  volumesBelowClaims,
} from './mark-graph.ts';

const at = (kind: GraphKind, name: string, children: ExtendedGraphNode[] = []): ExtendedGraphNode =>
  graphNode(kind, { namespace: kind === 'PersistentVolume' ? '' : 'ns', name }, { children });
const found = (uid: string, owners: string[] = [], rest: object = {}): Looked =>
  ({ metadata: { uid, ownerReferences: owners.map((owner) => ({ uid: owner })) }, ...rest }) as unknown as Looked;
const lookedAt = (entries: [ExtendedGraphNode, Looked][]): ReadonlyMap<string, Looked> =>
  new Map(entries.map(([node, looked]) => [keyOfNode(node), looked]));

const marks = (node: ExtendedGraphNode): string =>
  [
    node.objectReference.name,
    node.exists === false && 'missing',
    node.unknown && 'unknown',
    node.owned && 'owned',
    node.usedBy && `used by ${node.usedBy.map(({ kind, name }) => `${kind}/${name}`).join(',')}`,
    node.usedByTotal && `${node.usedByTotal} in all`,
  ]
    .filter(Boolean)
    .join(' ');

const marked = (
  children: ExtendedGraphNode[],
  { looked = [], users = new Map() }: { looked?: [ExtendedGraphNode, Looked][]; users?: ObjectUsers } = {},
): string[] => {
  const root = at('VirtualMachine', 'vm', children);
  const graph = markGraph(root, { rootUid: 'root', looked: lookedAt(looked), users, notListed: [] });
  const flat = (node: ExtendedGraphNode): string[] => [marks(node), ...(node.children ?? []).flatMap(flat)];
  return flat(graph).slice(1);
};

const usersOf = (nodes: ExtendedGraphNode[], lists: GraphLists): Promise<ObjectUsers> =>
  usersOfObjects(at('VirtualMachine', 'vm', nodes), lists, async () => {});

test('existence: found, missing, and nothing of what may not be read', async () => {
  const nodes = ['a', 'b', 'c', 'd'].map((name) => at('Secret', name));
  const users = await usersOf(nodes, {
    machines: ['a', 'c'].map((name) => vmWith(`uses-${name}`, [{ secret: { secretName: name } }])),
  });
  assert.deepEqual(
    marked(nodes, {
      looked: [
        [nodes[0]!, found('1')],
        [nodes[1]!, 'missing'],
        [nodes[2]!, 'forbidden'],
      ],
      users,
    }),
    ['a used by VirtualMachine/uses-a', 'b missing', 'c unknown', 'd unknown'],
  );
});

describe('ownership', () => {
  const pv = (policy: string): Looked => found('pv', [], { spec: { persistentVolumeReclaimPolicy: policy } });
  const rows: [what: string, looked: [ExtendedGraphNode, Looked][], expected: string[]][] = [
    [
      'by way of another that goes, in any order',
      [
        [at('PersistentVolumeClaim', 'claim'), found('claim', ['dv'])],
        [at('DataVolume', 'dv'), found('dv', ['root'])],
      ],
      ['claim owned', 'dv owned'],
    ],
    ['not with a second owner', [[at('Secret', 's'), found('s', ['root', 'else'])]], ['s']],
    ['not without an owner', [[at('Secret', 's'), found('s')]], ['s']],
    [
      'a volume as its class reclaims it',
      [
        [at('PersistentVolumeClaim', 'claim', [at('PersistentVolume', 'pv')]), found('claim', ['root'])],
        [at('PersistentVolume', 'pv'), pv('Delete')],
      ],
      ['claim owned', 'pv owned'],
    ],
    [
      'a volume that is retained',
      [
        [at('PersistentVolumeClaim', 'claim', [at('PersistentVolume', 'pv')]), found('claim', ['root'])],
        [at('PersistentVolume', 'pv'), pv('Retain')],
      ],
      ['claim owned', 'pv'],
    ],
    [
      'a volume whose claim stays',
      [
        [at('PersistentVolumeClaim', 'claim', [at('PersistentVolume', 'pv')]), found('claim')],
        [at('PersistentVolume', 'pv'), pv('Delete')],
      ],
      ['claim', 'pv'],
    ],
  ];
  for (const [what, looked, expected] of rows)
    it(what, () => {
      const nodes = looked.map(([node]) => node).filter(({ objectReference: { kind } }) => kind !== 'PersistentVolume');
      assert.deepEqual(marked(nodes, { looked }), expected);
    });
});

const vmWith = (name: string, volumes: object[], spec: object = {}): VirtualMachine =>
  partly({ metadata: { name, namespace: 'ns' }, spec: { ...spec, template: { spec: { domain: {}, volumes } } } });
const vmiWith = (name: string, volumes: object[], metadata: object = {}): VirtualMachineInstance =>
  partly({ metadata: { name, namespace: 'ns', ...metadata }, spec: { domain: {}, volumes } });

test('users: machines by every kind of reference, instances of their own, clones of the machine; not the machine itself', async () => {
  const claim = { persistentVolumeClaim: { claimName: 'disk' } };
  const template = { metadata: { name: 'new' }, spec: { source: { pvc: { name: 'disk' } } } };
  const elsewhere = { metadata: { name: 'new' }, spec: { source: { pvc: { name: 'disk', namespace: 'other' } } } };
  const owned = { ownerReferences: [{ kind: 'VirtualMachine', controller: true }] };
  const disk = at('PersistentVolumeClaim', 'disk');
  const revision = at('ControllerRevision', 'r');
  const sized = graphNode('VirtualMachineClusterInstancetype', { namespace: '', name: 'u1' });
  const users = await usersOf([disk, revision, sized], {
    machines: [
      vmWith('vm', [claim]),
      vmWith('twice', [claim, claim]),
      vmWith('fills', [], { dataVolumeTemplates: [template] }),
      vmWith('fills-elsewhere', [], { dataVolumeTemplates: [elsewhere] }),
      vmWith('sized', [], {
        instancetype: { kind: 'virtualmachineclusterinstancetype', name: 'u1', revisionName: 'r' },
      }),
    ],
    instances: [vmiWith('alone', [claim]), vmiWith('twice', [claim], owned), vmiWith('vm', [claim])],
    clones: [
      partly({ metadata: { name: 'copy', namespace: 'ns' }, spec: { source: { kind: 'VirtualMachine', name: 'vm' } } }),
    ],
  });
  const of = (node: ExtendedGraphNode) => users.get(keyOfNode(node))?.map(({ kind, name }) => `${kind}/${name}`);
  assert.deepEqual(of(disk), ['VirtualMachine/twice', 'VirtualMachine/fills', 'VirtualMachineInstance/alone']);
  assert.deepEqual(of(revision), ['VirtualMachine/sized']);
  assert.deepEqual(of(sized), ['VirtualMachine/sized']);
  assert.deepEqual(of(at('VirtualMachine', 'vm')), ['VirtualMachineClone/copy']);
});

test('of many users the first are named, by name, and all are counted', async () => {
  const node = at('Secret', 's');
  const machines = Array.from({ length: 12 }, (_, i) => vmWith(`m${11 - i}`, [{ secret: { secretName: 's' } }]));
  const users = await usersOf([node], { machines: machines });
  const [text] = marked([node], { looked: [[node, found('1')]], users });
  assert.equal(text!.split(',').length, MAX_USERS);
  assert.match(text!, /^s used by VirtualMachine\/m0,VirtualMachine\/m1,VirtualMachine\/m10,.* 12 in all$/);
});

test('volumes stand below claims that are bound and may be read', () => {
  const claims = ['bound', 'pending', 'hidden'].map((name) => at('PersistentVolumeClaim', name));
  const looked = lookedAt([
    [claims[0]!, found('1', [], { spec: { volumeName: 'pv' } })],
    [claims[1]!, found('2', [], { spec: {} })],
    [claims[2]!, 'forbidden'],
  ]);
  const tree = volumesBelowClaims(at('VirtualMachine', 'vm', claims), looked);
  const below = (tree.children ?? []).map(({ children = [] }) =>
    children.map(({ objectReference }) => objectReference),
  );
  assert.deepEqual(below, [[{ apiGroup: '', kind: 'PersistentVolume', name: 'pv', namespace: '' }], [], []]);
});
