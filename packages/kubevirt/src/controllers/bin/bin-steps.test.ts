import { NAMESPACES } from '../../../../apimachinery/src/types/resource-types.ts';
import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { stored } from '../../../../client/src/run-step.fixture.ts';
import {
  DELETED_VIRTUAL_MACHINE_CONTENTS,
  DELETED_VIRTUAL_MACHINES,
  type DeletedVirtualMachineContent,
} from '../../kinds/kinds.ts';
import { machine, testSteps } from '../step.fixture.ts';
import type { BinPass } from './bin-pass.ts';
import { BinSteps, RELEASING } from './bin-steps.ts';

type Status = DeletedVirtualMachineContent['status'];
const VM = { namespace: 'ns', name: 'vm', uid: 'uid-vm' };
const content = (
  status?: Status,
  metadata: Partial<DeletedVirtualMachineContent['metadata']> = {},
  spec: Partial<DeletedVirtualMachineContent['spec']> = {},
) =>
  stored(DELETED_VIRTUAL_MACHINE_CONTENTS, 'c', {
    metadata: { finalizers: ['x'], ...metadata },
    spec: { virtualMachine: VM, namespaceUID: 'uid-ns', record: 'r', deletedAt: '', bytes: 1, objects: [], ...spec },
    ...(status && { status }),
  });
const RECORD = stored(DELETED_VIRTUAL_MACHINES, 'r', { spec: { virtualMachine: VM, content: 'c', deletedAt: '' } });
const namespace = (metadata: object = {}) => stored(NAMESPACES, 'ns', { metadata });
const kept = (goneAt: string): Status => ({ phase: 'Deleted', goneAt });
const YESTERDAY = '2029-12-31T00:00:00Z';
const TODAY = '2029-12-31T23:30:00Z';
const LONGEST = { requeueAfterMs: 3_600_000 };

const callPool = () => Promise.reject(new Error('no pool is asked'));
const make = (environment: ControllerEnvironment) => new BinSteps({ ...environment, callPool }, () => {});
const passOf = (steps: BinSteps): BinPass => {
  const [held] = steps.contents.list();
  const record = steps.recordOf(held!);
  const { client, events, log, clock } = steps;
  const { signal } = new AbortController();
  return { content: held!, record, client, callPool, events, log, now: clock.now(), signal };
};
const act = (steps: BinSteps) => steps.step(passOf(steps));
const show = (steps: BinSteps) => steps.showRecord(passOf(steps));
const fail = (steps: BinSteps) => steps.failed(passOf(steps), 'no room');

const WRITE = 'PATCH deletedvirtualmachinecontents/c/status';
const REMOVE = ['DELETE deletedvirtualmachinecontents/c', { preconditions: { uid: 'uid-c' } }] as const;
testSteps({ make, act }, [
  {
    name: 'a machine that is still there is not gone yet',
    objects: [content(), RECORD, machine({})],
    outcome: LONGEST,
    writes: [[WRITE, { status: { phase: 'Deleted', goneAt: undefined } }]],
  },
  {
    name: 'a machine that is gone is kept for a day from then on',
    objects: [content(), RECORD],
    outcome: undefined,
    writes: [[WRITE, { status: { goneAt: '2030-01-01T00:00:00Z', expiresAt: '2030-01-02T00:00:00Z' } }]],
  },
  {
    name: 'another machine of the name is not the one that was deleted',
    objects: [content(), RECORD, machine({}, {}, { uid: 'another' })],
    writes: [[WRITE, { status: { goneAt: '2030-01-01T00:00:00Z' } }]],
  },
  {
    name: 'a content whose record was deleted goes while its namespace lives',
    objects: [content(kept(TODAY)), namespace()],
    outcome: undefined,
    writes: [REMOVE],
  },
  {
    name: 'a content whose record went with its namespace is kept',
    objects: [content({ ...kept(TODAY), expiresAt: '2030-01-01T23:30:00Z' }), namespace({ uid: 'made anew' })],
    outcome: LONGEST,
  },
  {
    name: 'a content goes when its time is over',
    objects: [content(kept(YESTERDAY)), RECORD],
    outcome: undefined,
    writes: [REMOVE],
    events: ['Normal Expired Its retention has expired; its storage is released'],
  },
  {
    name: 'a request for a content that is being released comes too late',
    objects: [content(kept(TODAY), { deletionTimestamp: TODAY }, { undelete: { id: 'q', name: 'vm' } }), RECORD],
    error: new RegExp(RELEASING),
  },
  {
    name: 'a machine that is back has no content left',
    objects: [content({ phase: 'Undeleted' }), RECORD],
    outcome: undefined,
    writes: [REMOVE],
  },
  {
    name: 'an undelete that failed half-way is reverted, and its request is not tried again',
    act: fail,
    objects: [content({ phase: 'Undeleting', plan: { request: 'q', namespace: 'ns', name: 'vm' } }), RECORD],
    writes: [[WRITE, { status: { phase: 'Reverting', failedRequest: 'q', message: 'no room' } }]],
    events: ['Warning UndeleteFailed no room'],
  },
  {
    name: 'an undelete that was not begun leaves the machine in the bin',
    act: fail,
    objects: [content(kept(TODAY), {}, { undelete: { id: 'q', name: 'vm' } }), RECORD],
    writes: [[WRITE, { status: { phase: undefined, failedRequest: 'q' } }]],
    events: ['Warning UndeleteFailed no room'],
  },
  {
    name: 'tenants are shown the state without the plan',
    act: show,
    objects: [content({ phase: 'Undeleting', plan: { request: 'q', namespace: 'ns', name: 'vm' } }), RECORD],
    writes: [['PATCH deletedvirtualmachines/r/status', { status: { phase: 'Undeleting', plan: undefined } }]],
  },
  {
    name: 'the record of a machine that is back goes',
    act: show,
    objects: [content({ phase: 'Undeleted' }), RECORD],
    writes: [['DELETE deletedvirtualmachines/r', { preconditions: { uid: 'uid-r' } }]],
  },
]);
