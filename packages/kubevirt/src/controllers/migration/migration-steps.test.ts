import { ApiError } from '../../../../apimachinery/src/meta/status.ts';
import type { Pod } from '../../../../apimachinery/src/types/types.ts';
import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { NOW, stored } from '../../../../client/src/run-step.fixture.ts';
import type { MigrationPhase } from '../../kinds/kinds.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../kinds/kubevirt.ts';
import {
  EVACUATION_ANNOTATION,
  MIGRATION_FINALIZER,
  MIGRATION_JOB_LABEL,
  MIGRATION_TARGET_NODE_LABEL,
} from '../../rules/launcher/launcher-labels.ts';
import { instance, launcher, settings, testSteps } from '../step.fixture.ts';
import { MigrationSteps, type Pass } from './migration-steps.ts';

const job = (
  phase: MigrationPhase,
  metadata: Partial<VirtualMachineInstanceMigration['metadata']> = {},
  name = 'job',
) =>
  stored(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, name, {
    metadata: { finalizers: [MIGRATION_FINALIZER], ...metadata },
    spec: { vmiName: 'vm' },
    status: { phase, phaseTransitionTimestamps: [{ phase, phaseTransitionTimestamp: NOW }] },
  });
type State = NonNullable<VirtualMachineInstance['status']>['migrationState'];
const guest = (migrationState?: State, metadata: Partial<VirtualMachineInstance['metadata']> = {}) =>
  instance({ phase: 'Running', nodeName: 'n1', ...(migrationState && { migrationState }) }, metadata);
const SOURCE = launcher('uid-vmi');
const running: Pod['status'] = {
  phase: 'Running',
  containerStatuses: [
    { name: 'compute', ready: true, state: { running: {} }, image: 'l', imageID: 'l', restartCount: 0 },
  ],
};
const target = (status: Pod['status'] = running, labels = { [MIGRATION_JOB_LABEL]: 'uid-job' }) => ({
  ...launcher('uid-vmi', { name: 'target', uid: 'uid-target', labels }, status),
  spec: { nodeName: 'n2', containers: [] },
});
const deleted = { deletionTimestamp: NOW, finalizers: [MIGRATION_FINALIZER] };
const quota = new ApiError({ code: 403, reason: 'Forbidden', message: 'exceeded quota: pods' });

const run = (step: 'act' | 'save') => async (steps: MigrationSteps) => {
  const key = { namespace: 'ns', name: 'job' };
  const migration = steps.migrations.get(key)!;
  const vmi = steps.vmiOf(migration);
  const pods = steps.podsOf(vmi);
  const pass: Pass = {
    key,
    migration,
    vmi,
    pods,
    target: steps.targetOf(migration, pods),
    source: pods.find(({ spec }) => spec.nodeName === 'n1'),
    quotaExceeded: false,
    failed: false,
    result: undefined,
  };
  try {
    await steps[step](pass);
  } catch (error) {
    return { ...pass, error: String(error) };
  }
  return pass;
};

const JOB = 'PATCH virtualmachineinstancemigrations/job';
const GUEST = 'PATCH virtualmachineinstances/vm';
const DELETE = ['DELETE pods/target', { preconditions: { uid: 'uid-target' } }] as const;
const CANCELED = 'Normal SuccessfulDelete migration canceled and pod ns/target is deleted';
const setting = {
  make: (environment: ControllerEnvironment) => new MigrationSteps({ ...environment, settings }),
  own: ({ pods }: MigrationSteps) => [pods],
  act: run('act'),
};
testSteps(setting, [
  {
    name: 'a migration that may start gets a target Pod with its mark',
    objects: [job('Pending'), guest(), SOURCE],
    outcome: { result: undefined, target: { metadata: { labels: { [MIGRATION_JOB_LABEL]: 'uid-job' } } } },
    writes: [['POST pods']],
    events: ['Normal SuccessfulCreate Created migration target pod virt-launcher-vm-x'],
  },
  {
    name: 'a migration waits for the Pods of an earlier one',
    objects: [job('Pending'), guest(), SOURCE, target(running, { [MIGRATION_JOB_LABEL]: 'uid-earlier' })],
    outcome: { result: { requeueAfterMs: 1000 } },
  },
  {
    name: 'a migration waits while its node sends as many guests as it may',
    objects: [job('Pending'), job('Running', {}, 'a'), job('Running', {}, 'b'), guest(), SOURCE],
    outcome: { result: { requeueAfterMs: 5000 }, target: undefined },
  },
  {
    name: 'an automatic migration waits after one that failed',
    objects: [
      job('Pending', { annotations: { [EVACUATION_ANNOTATION]: 'n1' } }),
      job('Failed', { annotations: { [EVACUATION_ANNOTATION]: 'n1' } }, 'before'),
      guest(),
      SOURCE,
    ],
    outcome: { result: { requeueAfterMs: 20_000 } },
    events: ['Warning MigrationBackoff backoff migrating vmi ns/vm'],
  },
  {
    name: 'a quota that stands against the target is known from then on',
    objects: [job('Pending'), guest(), SOURCE],
    refuse: { 'POST pods': quota },
    outcome: { quotaExceeded: true, error: 'ApiError: exceeded quota: pods' },
    writes: [['POST pods']],
    events: ['Warning FailedCreate Error creating pod: exceeded quota: pods'],
  },
  {
    name: 'two migrations of one guest do not run at once',
    objects: [job('Pending'), job('Running', {}, 'a'), guest({ migrationUid: 'uid-a' }), SOURCE],
    outcome: { error: 'Error: vmi is ineligible for migration because another migration job is running' },
  },
  {
    name: 'a migration that is cancelled before it began deletes its target',
    objects: [job('Scheduling', deleted), guest(), SOURCE, target()],
    writes: [DELETE],
    events: [CANCELED],
  },
  {
    name: 'the agents are notified of a target that is ready: first the state, then the label',
    objects: [job('Scheduled'), guest(), SOURCE, target()],
    writes: [
      [GUEST, { status: { migrationState: { migrationUid: 'uid-job', sourceNode: 'n1', targetNode: 'n2' } } }],
      [GUEST, { metadata: { labels: { [MIGRATION_TARGET_NODE_LABEL]: 'n2' } } }],
    ],
    events: ['Normal SuccessfulHandOver Migration target pod is ready for preparation by virt-handler.'],
  },
  {
    name: 'a target that ended before the source began ends the migration',
    objects: [job('TargetReady'), guest({ migrationUid: 'uid-job' }), SOURCE, target({ phase: 'Failed' })],
    writes: [[GUEST, { status: { migrationState: { failed: true, failureReason: 'Target pod is down' } } }]],
    events: ['Warning FailedMigration VirtualMachineInstance migration uid uid-job failed. reason: Target pod is down'],
  },
  {
    name: 'a migration under way is asked to stop',
    objects: [job('Running', deleted), guest({ migrationUid: 'uid-job', startTimestamp: NOW }), SOURCE, target()],
    writes: [[GUEST, { status: { migrationState: { abortRequested: true } } }]],
    events: ['Normal SuccessfulAbortMigration Migration is ready to be canceled by virt-handler.'],
  },
  {
    name: 'a migration that ended lets go of its finalizer',
    act: run('save'),
    objects: [job('Failed'), guest(), SOURCE],
    writes: [[JOB, { metadata: { finalizers: null } }]],
  },
  {
    name: 'a migration that failed stays while its target lives',
    act: run('save'),
    objects: [job('Failed'), guest(), SOURCE, target()],
  },
  {
    name: 'the oldest of six migrations that ended goes',
    act: run('save'),
    objects: [
      job('Failed', { finalizers: [] }),
      ...['a', 'b', 'c', 'd', 'e'].map((name) => job('Failed', { finalizers: [] }, name)),
      guest(),
    ],
    writes: [['DELETE virtualmachineinstancemigrations/a', { preconditions: { uid: 'uid-a' } }]],
  },
]);
