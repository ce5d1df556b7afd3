import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ObjectHealth } from '../kinds/kinds.ts';
import { healthOf } from './health.ts';

const ready = (status: string) => ({ conditions: [{ type: 'Ready', status }] });
const ROWS: readonly [what: string, object: object | undefined, health: ObjectHealth][] = [
  ['nothing', undefined, 'NotFound'],
  ['one that goes', { metadata: { deletionTimestamp: 't' } }, 'Terminating'],
  ['one whose controller is behind', { metadata: { generation: 2 }, status: { observedGeneration: 1 } }, 'InProgress'],
  [
    'Reconciling before Stalled',
    {
      status: {
        conditions: [
          { type: 'Stalled', status: 'True' },
          { type: 'Reconciling', status: 'True' },
        ],
      },
    },
    'InProgress',
  ],
  ['Stalled', { status: { conditions: [{ type: 'Stalled', status: 'True' }] } }, 'Failed'],
  ['an unknown kind', {}, 'Current'],
  ['an unknown kind that is not ready', { status: ready('Unknown') }, 'InProgress'],
  ['a ConfigMap', { apiVersion: 'v1', kind: 'ConfigMap' }, 'Current'],
  ['a claim', { apiVersion: 'v1', kind: 'PersistentVolumeClaim', status: { phase: 'Pending' } }, 'InProgress'],
  [
    'a Deployment',
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      spec: { replicas: 1 },
      status: {
        replicas: 1,
        updatedReplicas: 1,
        readyReplicas: 1,
        availableReplicas: 1,
        conditions: [{ type: 'Available', status: 'True' }],
      },
    },
    'Current',
  ],
  [
    'a Deployment on its way',
    { apiVersion: 'apps/v1', kind: 'Deployment', spec: { replicas: 2 }, status: { replicas: 1 } },
    'InProgress',
  ],
  [
    'a Deployment that gave up',
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      status: { conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' }] },
    },
    'Failed',
  ],
  [
    'a definition',
    {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      status: { conditions: [{ type: 'Established', status: 'True' }] },
    },
    'Current',
  ],
  [
    'a machine that runs',
    {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      spec: { runStrategy: 'Always' },
      status: { created: true, ...ready('True') },
    },
    'Current',
  ],
  [
    'a machine that starts',
    {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      spec: { runStrategy: 'Always' },
      status: { printableStatus: 'Stopped', ...ready('False') },
    },
    'InProgress',
  ],
  [
    'a machine that is to be off',
    {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      spec: { runStrategy: 'Halted' },
      status: { printableStatus: 'Stopped', ...ready('False') },
    },
    'Current',
  ],
  [
    'a machine without its claim',
    {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      spec: { runStrategy: 'Always' },
      status: { printableStatus: 'ErrorPvcNotFound', ...ready('False') },
    },
    'Failed',
  ],
  [
    'an instance that failed',
    { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', status: { phase: 'Failed' } },
    'Failed',
  ],
];
for (const [what, object, health] of ROWS)
  test(`healthOf() ${what}: ${health}`, () => {
    const live = object && { apiVersion: 'example.org/v1', kind: 'Thing', metadata: {}, ...object };
    assert.equal(healthOf(live), health);
  });
