import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import * as core from '../../../apimachinery/src/types/resource-types.ts';
import type { Node, Pod } from '../../../apimachinery/src/types/types.ts';
import type { ControllerEnvironment } from '../../../client/src/controller/environment.ts';
import { NOW, stored, testTable } from '../../../client/src/run-step.fixture.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { SchedulerSteps } from './scheduler-steps.ts';

const pod = (cpu: string, spec: Partial<Pod['spec']> = {}, metadata: Partial<Pod['metadata']> = {}, name = 'p') =>
  stored(core.PODS, name, {
    metadata,
    spec: {
      schedulerName: 'default-scheduler',
      containers: [{ name: 'c', image: 'i', resources: { requests: { cpu } } }],
      ...spec,
    },
    status: { phase: 'Pending' },
  });
const node = (conditions: NonNullable<Node['status']>['conditions']) =>
  stored(core.NODES, 'n1', {
    spec: {},
    status: { conditions, allocatable: { cpu: '4', memory: '8Gi', pods: '10' } },
  });
const NODE = node([{ type: 'Ready', status: 'True' }]);
const terminating = new ApiError({
  code: 403,
  reason: 'Forbidden',
  message: 'namespace ns is being terminated',
  details: { causes: [{ reason: 'NamespaceTerminating', message: '' }] },
});

const make = (environment: ControllerEnvironment) => new SchedulerSteps(environment);
const act = (steps: SchedulerSteps) =>
  steps.reconcile(
    { namespace: 'ns', name: 'p' },
    {
      client: steps.client,
      signal: new AbortController().signal,
      log: silentLogger,
    },
  );

const BIND = 'POST pods/p/binding';
const STATUS = 'PATCH pods/p/status';
const FITS_NOWHERE = 'Warning FailedScheduling 0/1 nodes are available: 1 Insufficient cpu.';
const noRoom = (why: string) =>
  `${FITS_NOWHERE} no new claims to deallocate, preemption: 0/1 nodes are available: 1 ${why}`;
const LATER = { requeueAfterMs: 60_000 };
testTable({ types: Object.values(core), make, act }, [
  {
    name: 'a Pod is bound to the node where it fits',
    objects: [pod('1'), NODE],
    outcome: undefined,
    writes: [[BIND, { metadata: { uid: 'uid-p' }, target: { kind: 'Node', name: 'n1' } }]],
    events: ['Normal Scheduled Successfully assigned ns/p to n1'],
  },
  {
    name: 'a Pod that fits nowhere says so and is looked at again',
    objects: [pod('5'), NODE],
    outcome: LATER,
    writes: [
      [STATUS, { status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] } }],
    ],
    events: [noRoom('Preemption is not helpful for scheduling.')],
  },
  {
    name: 'what other Pods of a node ask for is not free',
    objects: [pod('2'), pod('3', { nodeName: 'n1' }, {}, 'other'), NODE],
    outcome: LATER,
    writes: [[STATUS]],
    events: [noRoom('No preemption victims found for incoming pod.')],
  },
  {
    name: 'a Pod that ranks higher takes the place of one that ranks lower: nominated first, then evicted',
    objects: [pod('2', { priority: 10 }), pod('3', { nodeName: 'n1', priority: 1 }, {}, 'other'), NODE],
    outcome: LATER,
    writes: [[STATUS, { status: { nominatedNodeName: 'n1' } }], ['PATCH pods/other/status'], ['DELETE pods/other']],
    events: [FITS_NOWHERE, 'Normal Preempted Preempted by pod uid-p on node n1'],
  },
  {
    name: 'a Pod waits for nodes that have not reported yet before it is refused',
    objects: [pod('5'), node([])],
    outcome: { requeueAfterMs: 10_000 },
  },
  {
    name: 'a Pod behind a gate is not placed',
    objects: [pod('1', { schedulingGates: [{ name: 'g' }] }), NODE],
    outcome: undefined,
    writes: [
      [STATUS, { status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] } }],
    ],
  },
  {
    name: 'a Pod of another scheduler is left alone',
    objects: [pod('1', { schedulerName: 'mine' }), NODE],
    outcome: undefined,
  },
  {
    name: 'a Pod that goes is not placed any more',
    objects: [pod('1', {}, { deletionTimestamp: NOW, finalizers: ['x'] }), NODE],
    outcome: undefined,
  },
  {
    name: 'a Pod whose namespace ends is no failure',
    objects: [pod('1'), NODE],
    refuse: { [BIND]: terminating },
    outcome: undefined,
    writes: [[BIND]],
  },
]);
