import { isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '../../../../apimachinery/src/meta/deep-clone.ts';
import { NOW } from '../../../../client/src/run-step.fixture.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { VM_FINALIZER } from '../../rules/machine-defaults/hold-machine.ts';
import { RESUME_FROM } from '../../rules/memory-state/resume-request.ts';
import { instance, KEY, machine, REFUSED, testSteps } from '../step.fixture.ts';
import { type Pass, VmSteps } from './vm-steps.ts';

const going = { deletionTimestamp: NOW };

/** All steps in their order, as the controller runs them. */
async function act(steps: VmSteps): Promise<Pass & { readonly error?: string }> {
  const cached = steps.vms.get(KEY)!;
  const found = steps.vmis.get(KEY);
  const pass: Pass = {
    key: KEY,
    vm: cloneJson(cached) as VirtualMachine,
    instance: found && isControlledBy(found, cached.metadata.uid) ? found : undefined,
    expects: undefined,
    failure: undefined,
    restartRequired: undefined,
    layers: undefined,
    unneeded: [],
    disks: undefined,
    requeueMs: undefined,
    isOver: false,
    signal: new AbortController().signal,
  };
  try {
    for (const step of steps.STEPS) {
      await step(pass);
      if (pass.isOver) break;
    }
  } catch (error) {
    return { ...pass, error: String(error) };
  }
  return pass;
}

const CREATE = 'POST virtualmachineinstances';
const DELETE = ['DELETE virtualmachineinstances/vm', { preconditions: { uid: 'uid-vmi' } }] as const;
const STOPPED = 'Normal SuccessfulDelete Stopped the virtual machine by deleting the virtual machine instance uid-vmi';
const STARTED = 'Normal SuccessfulCreate Started the virtual machine by creating the new virtual machine instance vm';
testSteps({ make: (environment) => new VmSteps(environment), act }, [
  {
    name: 'a machine that is to run gets its finalizer, the record of its start and then an instance',
    objects: [machine({ runStrategy: 'Always' }, {}, { finalizers: [] })],
    outcome: { expects: 'create', vm: { metadata: { finalizers: [VM_FINALIZER] } } },
    writes: [
      ['POST controllerrevisions'],
      [CREATE, { metadata: { name: 'vm', ownerReferences: [{ uid: 'uid-vm' }] } }],
    ],
    events: [STARTED],
  },
  {
    name: 'an instance of the name that is not its own is in the way',
    objects: [machine({ runStrategy: 'Always' }), instance({ phase: 'Running' }, { ownerReferences: [] })],
    outcome: { failure: { reason: 'FailedCreate' }, expects: undefined },
  },
  {
    name: 'a machine that is being restored is not started',
    objects: [machine({ runStrategy: 'Always' }, { restoreInProgress: 'r' })],
    outcome: { expects: undefined, failure: undefined },
  },
  {
    name: 'a machine whose start failed waits until its time has come',
    objects: [
      machine(
        { runStrategy: 'Always' },
        { startFailure: { consecutiveFailCount: 1, retryAfterTimestamp: '2030-01-01T00:00:10Z' } },
      ),
    ],
    outcome: { requeueMs: 10_000, expects: undefined },
  },
  {
    name: 'an instance that is refused is a failure of the machine, and is tried again',
    objects: [machine({ runStrategy: 'Always' })],
    refuse: { [CREATE]: REFUSED },
    outcome: { failure: { reason: 'FailedCreate', message: 'not now' }, error: 'ApiError: not now' },
    writes: [['POST controllerrevisions'], [CREATE]],
    events: ['Warning FailedCreate Error creating virtual machine instance vm: not now'],
  },
  {
    name: 'an instance type that does not exist keeps a machine from being started',
    objects: [machine({ runStrategy: 'Always', instancetype: { name: 'none' } })],
    outcome: { requeueMs: 30_000, expects: undefined, layers: undefined },
    events: [
      'Warning FailedFindInstancetype virtualmachineclusterinstancetypes.instancetype.kubevirt.io "none" not found',
    ],
  },
  {
    name: 'a machine that was halted deletes this very instance',
    objects: [machine({ runStrategy: 'Halted' }), instance({ phase: 'Running' })],
    outcome: { expects: 'delete' },
    writes: [DELETE],
    events: [STOPPED],
  },
  {
    name: 'a guest that failed is run anew where the strategy says so',
    objects: [machine({ runStrategy: 'RerunOnFailure' }), instance({ phase: 'Failed' })],
    outcome: { expects: 'delete', vm: { status: { stateChangeRequests: [{ action: 'Start' }] } } },
    writes: [DELETE],
    events: [STOPPED],
  },
  {
    name: 'a paused start switches a halted machine on before anything is made',
    objects: [
      machine({ runStrategy: 'Halted' }, { stateChangeRequests: [{ action: 'Start', data: { paused: 'true' } }] }),
    ],
    outcome: { vm: { spec: { runStrategy: 'Always' } }, expects: undefined },
  },
  {
    // S-1563: A machine that goes deletes its instance only as it has seen it: one that was orphaned meanwhile runs on.
    name: 'a machine that is deleted takes its instance along first, as the cache has it',
    objects: [machine({ runStrategy: 'Always' }, {}, going), instance({ phase: 'Running' })],
    outcome: { vm: { metadata: { finalizers: [VM_FINALIZER] } }, expects: 'delete' },
    writes: [[DELETE[0], { preconditions: { uid: 'uid-vmi', resourceVersion: '102' } }]],
    events: [STOPPED],
  },
  {
    name: 'a machine that is deleted with --cascade=orphan goes and leaves its instance',
    objects: [
      machine({ runStrategy: 'Always' }, {}, { ...going, finalizers: [VM_FINALIZER, 'orphan'] }),
      instance({ phase: 'Running' }),
    ],
    outcome: { vm: { metadata: { finalizers: ['orphan'] } }, expects: undefined },
  },
  {
    name: 'an instance whose end is counted may go',
    objects: [
      machine({ runStrategy: 'Always' }, { startFailure: { lastFailedVMIUID: 'uid-vmi' } }),
      instance({ phase: 'Failed' }, { ...going, finalizers: ['x', VM_FINALIZER] }),
    ],
    writes: [['PATCH virtualmachineinstances/vm', [{ op: 'test' }, { op: 'remove', path: '/metadata/finalizers/1' }]]],
  },
  {
    name: 'an instance whose failed start is not counted yet stays',
    objects: [
      machine({ runStrategy: 'Always' }),
      instance({ phase: 'Failed' }, { ...going, finalizers: [VM_FINALIZER] }),
    ],
  },
  {
    name: 'a machine forgets the state that its guest has gone on from',
    objects: [
      machine({ runStrategy: 'Always' }, {}, { annotations: { [RESUME_FROM]: 's' } }),
      instance({ phase: 'Running' }, { annotations: { [RESUME_FROM]: 's' } }),
    ],
    outcome: { vm: { metadata: { annotations: { [RESUME_FROM]: undefined } } } },
  },
]);
