/** What the extended graph has beyond upstream's, and where. */
import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { buildMachineGraph } from './build-graph.ts';
import { extendInstanceGraph, extendMachineGraph, type GraphLists } from './extend-graph.ts';
import { graphNode, type ObjectGraphNode } from './graph-node.ts';

const machine = (spec: object = {}, template: object = {}, status: object = {}): VirtualMachine =>
  ({
    metadata: { name: 'vm', namespace: 'ns' },
    spec: { ...spec, template: { spec: { domain: {}, ...template } } },
    status,
  }) as unknown as VirtualMachine;

const object = (name: string, rest: object = {}, metadata: object = {}): never =>
  ({ metadata: { name, namespace: 'ns', ...metadata }, ...rest }) as never;
const ofVm = (name: string) => ({ source: { kind: 'VirtualMachine', name } });

const line = ({ objectReference: { kind, name }, optional, children = [] }: ObjectGraphNode): string =>
  `${kind}/${name}${optional ? '?' : ''}${children.length === 0 ? '' : `(${children.map(line).join(' ')})`}`;
const extended = (vm: VirtualMachine, lists: GraphLists = {}): string[] =>
  (extendMachineGraph(buildMachineGraph(vm, { launchers: [], stateClaims: [] }), vm, lists).children ?? []).map(line);

// S-792
describe('extendMachineGraph()', () => {
  const rows: [what: string, vm: VirtualMachine, lists: GraphLists, expected: string[]][] = [
    ['nothing beyond', machine(), {}, []],
    [
      'revisions below what they are of',
      machine({
        instancetype: { kind: 'VirtualMachineInstancetype', name: 'i', revisionName: 'ri' },
        preference: { kind: 'VirtualMachinePreference', name: 'p', revisionName: 'rp' },
      }),
      {},
      ['VirtualMachineInstancetype/i?(ControllerRevision/ri)', 'VirtualMachinePreference/p?(ControllerRevision/rp)'],
    ],
    [
      'a revision whose source has no node stands alone',
      machine({ instancetype: { name: 'i', revisionName: 'ri' } }),
      {},
      ['ControllerRevision/ri'],
    ],
    [
      'what upstream leaves out, each once',
      machine(
        {},
        {
          volumes: [
            { name: 'a', sysprep: { secret: { name: 'answers' } } },
            { name: 'b', memoryDump: { claimName: 'dump' } },
            { name: 'c', secret: { secretName: 'answers' } },
            { name: 'd', ephemeral: { persistentVolumeClaim: { claimName: 'dump' } } },
          ],
        },
      ),
      {},
      ['Secret/answers', 'PersistentVolumeClaim/dump'],
    ],
    [
      'snapshots with contents and volumes, of this machine alone',
      machine(),
      {
        snapshots: [object('s', { spec: ofVm('vm') }), object('t', { spec: ofVm('other') })],
        contents: [
          object('c', { spec: { virtualMachineSnapshotName: 's', volumeBackups: [{ volumeSnapshotName: 'v' }, {}] } }),
        ],
      },
      ['VirtualMachineSnapshot/s?(VirtualMachineSnapshotContent/c?(VolumeSnapshot/v?))'],
    ],
    [
      'restores under way, not those that ended',
      machine(),
      {
        restores: [
          object('now', { spec: { target: { kind: 'VirtualMachine', name: 'vm' } } }),
          object('done', { spec: { target: { kind: 'VirtualMachine', name: 'vm' } }, status: { complete: true } }),
          object('else', { spec: { target: { kind: 'VirtualMachine', name: 'other' } } }),
        ],
      },
      ['VirtualMachineRestore/now?'],
    ],
    [
      'trackers with their backups, and backups of the machine itself',
      machine(),
      {
        trackers: [object('t', { spec: ofVm('vm') }), object('u', { spec: ofVm('other') })],
        backups: [
          object('b', { spec: { source: { kind: 'VirtualMachineBackupTracker', name: 't' } } }),
          object('c', { spec: ofVm('vm') }),
          object('d', { spec: { source: { kind: 'VirtualMachineBackupTracker', name: 'u' } } }),
        ],
      },
      ['VirtualMachineBackupTracker/t?(VirtualMachineBackup/b?)', 'VirtualMachineBackup/c?'],
    ],
    [
      'exports of the machine, of its snapshots and of its claims',
      machine({}, { volumes: [{ name: 'a', dataVolume: { name: 'root' } }] }),
      {
        snapshots: [object('s', { spec: ofVm('vm') })],
        exports: [
          object('e1', { spec: ofVm('vm') }),
          object('e2', { spec: { source: { kind: 'PersistentVolumeClaim', name: 'root' } } }),
          object('e3', { spec: { source: { kind: 'VirtualMachineSnapshot', name: 's' } } }),
          object('e4', { spec: { source: { kind: 'VirtualMachineSnapshot', name: 'root' } } }),
        ],
      },
      [
        'DataVolume/root(PersistentVolumeClaim/root)',
        'VirtualMachineSnapshot/s?',
        'VirtualMachineExport/e1?',
        'VirtualMachineExport/e2?',
        'VirtualMachineExport/e3?',
      ],
    ],
    [
      'addresses by their label',
      machine(),
      {
        ipamClaims: [
          object('vm.blue', {}, { labels: { 'kubevirt.io/vm': 'vm' } }),
          object('other.blue', {}, { labels: { 'kubevirt.io/vm': 'other' } }),
        ],
      },
      ['IPAMClaim/vm.blue?'],
    ],
  ];
  for (const [what, vm, lists, expected] of rows) it(what, () => assert.deepEqual(extended(vm, lists), expected));
});

test('extendInstanceGraph() adds addresses', () => {
  const root = graphNode('VirtualMachineInstance', { namespace: 'ns', name: 'vm' });
  const ipamClaims = [object('vm.blue', {}, { labels: { 'kubevirt.io/vm': 'vm' } })];
  assert.equal(line(extendInstanceGraph(root, { ipamClaims })), 'VirtualMachineInstance/vm(IPAMClaim/vm.blue?)');
});
