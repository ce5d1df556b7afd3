import { CONTROLLER_REVISIONS } from '../../../../apimachinery/src/types/resource-types.ts';
import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { NOW, stored } from '../../../../client/src/run-step.fixture.ts';
import { DATA_VOLUMES } from '../../kinds/kinds.ts';
import {
  type PoolSpec,
  VIRTUAL_MACHINE_POOLS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachinePool,
} from '../../kinds/kubevirt.ts';
import { KEPT_FOR } from '../../rules/data-volume/claim-of-data-volume.ts';
import { POOL_FINALIZER } from '../../rules/sets/pool-member.ts';
import type { PoolPlan } from '../../rules/sets/pool-plan.ts';
import { CONFLICT, machine, REFUSED, testSteps } from '../step.fixture.ts';
import { PoolSteps } from './pool-steps.ts';

const pool = (spec: Partial<PoolSpec> = {}, status: VirtualMachinePool['status'] = {}) =>
  stored(VIRTUAL_MACHINE_POOLS, 'pool', {
    metadata: { generation: 2 },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'a' } },
      virtualMachineTemplate: { metadata: { labels: { app: 'a' } }, spec: { runStrategy: 'Always', template: {} } },
      ...spec,
    },
    status,
  });
const KEEPS: Partial<PoolSpec> = { scaleInStrategy: { proactive: { statePreservation: 'Offline' } } };
const OWNER = { apiVersion: 'pool.kubevirt.io/v1beta1', kind: 'VirtualMachinePool', name: 'pool', uid: 'uid-pool' };
const OWNED = { ownerReferences: [{ ...OWNER, controller: true }] };
const member = (metadata: Partial<VirtualMachine['metadata']> = {}) =>
  machine({ dataVolumeTemplates: [{ metadata: { name: 'd' }, spec: {} }] }, {}, { ...OWNED, ...metadata });
const revision = (name: string) =>
  stored(CONTROLLER_REVISIONS, name, { metadata: { labels: { 'coracle.dev/pool': '' }, ...OWNED }, revision: 1 });
const disk = stored(DATA_VOLUMES, 'd', {
  metadata: { ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm', uid: 'uid-vm' }] },
});
const going = { deletionTimestamp: NOW, finalizers: [POOL_FINALIZER] };

const make = (environment: ControllerEnvironment) => ({
  steps: new PoolSteps(environment),
  pools: environment.informers.of(VIRTUAL_MACHINE_POOLS),
  vms: environment.informers.of(VIRTUAL_MACHINES),
});
type Made = ReturnType<typeof make>;
const carryOut =
  (plan: (made: Made) => Partial<PoolPlan>) =>
  async (made: Made): Promise<object> => {
    const none: PoolPlan = { create: 0, remove: [], update: [], restart: [], relabel: [], waitMs: undefined };
    const failure = await made.steps.carryOut(made.pools.list()[0]!, { ...none, ...plan(made) });
    return { shown: failure?.shown, isSatisfied: made.steps.expectations.satisfied('ns/pool') };
  };
const create = carryOut(() => ({ create: 1 }));
const remove = carryOut(({ vms }) => ({ remove: vms.list() }));
const letGo = ({ steps, pools }: Made) => steps.letGo({ namespace: 'ns', name: 'pool' }, pools.list()[0]);
const prune = ({ steps, pools, vms }: Made) => steps.pruneRevisions(pools.list()[0]!, vms.list());
const sayPaused = ({ steps, pools }: Made) => steps.tellPaused(pools.list()[0]!);

const CREATE = 'POST virtualmachines';
const DELETE = ['DELETE virtualmachines/vm', { preconditions: { uid: 'uid-vm' } }] as const;
const LET_GO = ['PATCH virtualmachines/vm', { metadata: { finalizers: null } }] as const;
const own = ({ steps }: Made) => [steps.revisions];
testSteps({ make, own, act: create }, [
  {
    name: 'the revision is written down before the first member of it is made',
    objects: [pool()],
    outcome: { shown: undefined, isSatisfied: false },
    writes: [
      ['POST controllerrevisions', { metadata: { name: 'pool-2' }, revision: 2 }],
      [CREATE, { metadata: { name: 'pool-0', ownerReferences: [OWNER] } }],
    ],
    events: ['Normal SuccessfulCreate Created VM ns/pool-0'],
  },
  {
    name: 'a revision that is there is not made again, and a name that is taken is left out',
    objects: [pool(), revision('pool-2'), { ...member(), metadata: { ...member().metadata, name: 'pool-0' } }],
    writes: [[CREATE, { metadata: { name: 'pool-1' } }]],
    events: ['Normal SuccessfulCreate Created VM ns/pool-1'],
  },
  {
    name: 'a member that is refused is a problem of the pool',
    objects: [pool(), revision('pool-2')],
    refuse: { [CREATE]: REFUSED },
    outcome: { shown: { reason: 'FailedScaleOut', message: 'not now' }, isSatisfied: true },
    writes: [[CREATE]],
    events: ['Warning FailedCreate Error creating VM: not now'],
  },
  {
    name: 'a member that is too much is deleted, and waited for',
    act: remove,
    objects: [pool(), member({ finalizers: ['x'] })],
    outcome: { shown: undefined, isSatisfied: false },
    writes: [DELETE],
    events: ['Normal SuccessfulDelete Deleted VM ns/vm with uid uid-vm from pool'],
  },
  {
    name: 'one that was replaced meanwhile is not waited for',
    act: remove,
    objects: [pool(), member()],
    refuse: { [DELETE[0]]: CONFLICT },
    outcome: { shown: undefined, isSatisfied: true },
    writes: [DELETE],
    events: ['Normal SuccessfulDelete Deleted VM ns/vm with uid uid-vm from pool'],
  },
  {
    name: 'the disks of a member that goes are taken off first where its state is kept',
    act: letGo,
    objects: [pool(KEEPS), member(going), disk],
    writes: [['PATCH datavolumes/d', { metadata: { ownerReferences: [], annotations: { [KEPT_FOR]: 'vm' } } }], LET_GO],
  },
  {
    name: 'elsewhere they go with it',
    act: letGo,
    objects: [pool(), member(going), disk],
    writes: [LET_GO],
  },
  {
    name: 'a revision that nobody names any more goes',
    act: prune,
    objects: [
      pool(),
      revision('pool-0'),
      revision('pool-1'),
      revision('pool-2'),
      member({ labels: { 'kubevirt.io/vm-pool-revision-name': 'pool-1' } }),
    ],
    writes: [['DELETE controllerrevisions/pool-0']],
  },
  {
    name: 'a pool that is paused says so once',
    act: sayPaused,
    objects: [pool({ paused: true })],
    events: ['Normal SuccessfulPaused Pool is paused'],
  },
  {
    name: 'a pool that goes on says so',
    act: sayPaused,
    objects: [pool({}, { conditions: [{ type: 'ReplicaPaused', status: 'True' }] })],
    events: ['Normal SuccessfulResume Pool is unpaused'],
  },
]);
