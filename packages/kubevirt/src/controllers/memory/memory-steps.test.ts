import { ApiError } from '../../../../apimachinery/src/meta/status.ts';
import { NODES } from '../../../../apimachinery/src/types/resource-types.ts';
import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { NOW, stored } from '../../../../client/src/run-step.fixture.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS, type VirtualMachineSnapshot } from '../../kinds/kubevirt.ts';
import { INCLUDE_MEMORY } from '../../rules/memory-state/resume-request.ts';
import {
  MEMORY_FINALIZER,
  MEMORY_INCLUDED,
  MEMORY_NODE,
  MEMORY_OUTCOME,
} from '../../rules/memory-state/saved-memory.ts';
import { GONE, instance, machine, REFUSED, testSteps } from '../step.fixture.ts';
import { MemorySteps } from './memory-steps.ts';

const snapshot = (
  annotations: Record<string, string>,
  metadata: Partial<VirtualMachineSnapshot['metadata']> = {},
  status: VirtualMachineSnapshot['status'] = {},
) =>
  stored(VIRTUAL_MACHINE_SNAPSHOTS, 's', {
    metadata: {
      annotations: { [INCLUDE_MEMORY]: 'true', ...annotations },
      finalizers: [MEMORY_FINALIZER],
      ...metadata,
    },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'vm' } },
    status,
  });
const GUEST = [machine({}), instance({ phase: 'Running', nodeName: 'n1' }), stored(NODES, 'n1', {})];
const deleted = { deletionTimestamp: NOW };
const down = new ApiError({ code: 503, reason: 'ServiceUnavailable', message: 'down' });
const saved = { [MEMORY_NODE]: 'n1', [MEMORY_OUTCOME]: 'Saved' };

const make = (environment: ControllerEnvironment) =>
  new MemorySteps({
    ...environment,
    // What an agent is asked for is noted as the other writes are.
    askAgent: async (node, path, body) => {
      await environment.client.raw('POST', `/apis/subresources.agents/v1/${node}${path}`, { body });
      return { bytes: 2 ** 20, pauseMs: 5 };
    },
  });
const act = (steps: MemorySteps) => steps.reconcile({ namespace: 'ns', name: 's' }, new AbortController().signal);

const SAVE = 'POST n1/memory/v1/save';
const DELETE = 'POST n1/memory/v1/delete';
const WRITE = 'PATCH virtualmachinesnapshots/s';
const NODE_NOTED = [WRITE, { metadata: { annotations: { [MEMORY_NODE]: 'n1' } } }] as const;
const NOT_SAVED = [WRITE, { metadata: { annotations: { [MEMORY_OUTCOME]: 'NotSaved' } } }] as const;
const reported = (status: string, reason: string) =>
  [`${WRITE}/status`, { status: { conditions: [{ type: MEMORY_INCLUDED, status, reason }] } }] as const;
const LATER = { requeueAfterMs: 2000 };
testSteps({ make, act }, [
  {
    name: 'the node is written down before its agent is asked, and then how it came out',
    objects: [snapshot({}), ...GUEST],
    outcome: undefined,
    writes: [
      NODE_NOTED,
      [SAVE, { state: 'uid-s', namespace: 'ns', vmi: 'vm', vmiUid: 'uid-vmi', snapshots: undefined }],
      [WRITE, { metadata: { annotations: { [MEMORY_OUTCOME]: 'Saved' } } }],
      reported('True', 'Saved'),
    ],
    events: ['Normal Saved Memory and devices of the guest are part of the snapshot: 1 MiB, taken within 5 ms'],
  },
  {
    name: 'a guest that moved after it was asked is asked where it was',
    objects: [snapshot({ [MEMORY_NODE]: 'n0' }), ...GUEST],
    refuse: { 'POST n0/memory/v1/save': down },
    outcome: LATER,
    writes: [['POST n0/memory/v1/save']],
  },
  {
    name: 'a machine that does not run has no memory to save',
    objects: [snapshot({}), machine({}), instance({ phase: 'Failed', nodeName: 'n1' })],
    outcome: undefined,
    writes: [NOT_SAVED, reported('False', 'NotRunning')],
    events: ['Warning NotRunning VirtualMachine vm does not run: there is no memory to save'],
  },
  {
    name: 'a machine that does not exist is named',
    objects: [snapshot({})],
    writes: [NOT_SAVED, reported('False', 'SourceMissing')],
    events: ['Warning SourceMissing VirtualMachine vm does not exist'],
  },
  {
    name: 'an agent that does not answer is asked again',
    objects: [snapshot({}), ...GUEST],
    refuse: { [SAVE]: down },
    outcome: LATER,
    writes: [NODE_NOTED, [SAVE]],
  },
  {
    name: 'an agent that does not know its guest yet is asked again',
    objects: [snapshot({}), ...GUEST],
    refuse: { [SAVE]: GONE },
    outcome: LATER,
    writes: [NODE_NOTED, [SAVE]],
  },
  {
    name: 'what an agent refuses is not saved, for its reason',
    objects: [snapshot({}), ...GUEST],
    refuse: { [SAVE]: REFUSED },
    outcome: undefined,
    writes: [NODE_NOTED, [SAVE], NOT_SAVED, reported('False', 'NotSaved')],
    events: ['Warning NotSaved not now'],
  },
  {
    name: 'a snapshot that is deleted removes its state before it may go',
    objects: [snapshot(saved, deleted), ...GUEST],
    outcome: undefined,
    writes: [
      [DELETE, { state: 'uid-s', namespace: 'ns' }],
      [WRITE, { metadata: { finalizers: null } }],
    ],
  },
  {
    name: 'a snapshot stays while the agent cannot remove its state',
    objects: [snapshot(saved, deleted), ...GUEST],
    refuse: { [DELETE]: down },
    outcome: LATER,
    writes: [[DELETE]],
  },
  {
    name: 'a node that is gone has taken the state along',
    objects: [snapshot(saved, deleted)],
    outcome: undefined,
    writes: [[WRITE, { metadata: { finalizers: null } }]],
  },
  {
    name: 'what the condition says already is not written again',
    objects: [snapshot(saved, {}, { conditions: [{ type: MEMORY_INCLUDED, status: 'True' }] }), ...GUEST],
    outcome: undefined,
  },
]);
