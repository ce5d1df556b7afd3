import { stored } from '../../../../client/src/run-step.fixture.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
} from '../../kinds/kubevirt.ts';
import { EVACUATION_ANNOTATION } from '../../rules/launcher/launcher-labels.ts';
import { CONFLICT, GONE, KEY, REFUSED, testSteps } from '../step.fixture.ts';
import { DRAIN_ANNOTATION } from './evacuation-plan.ts';
import { EvacuationSteps } from './evacuation-steps.ts';

const guest = (annotations: Record<string, string> = {}, status: VirtualMachineInstance['status'] = {}) =>
  stored(VIRTUAL_MACHINE_INSTANCES, 'vm', { metadata: { annotations }, status: { phase: 'Running', ...status } });
const OBJECTS = [guest(), stored(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, 'job', { spec: { vmiName: 'vm' } })];

const ACTS = {
  evacuate: async (steps: EvacuationSteps) => {
    await steps.evacuate('n1', steps.vmis.get(KEY)!);
    return String(steps.expectations.satisfied('ns/vm'));
  },
  release: (steps: EvacuationSteps) => steps.release('n1', steps.vmis.get(KEY)!),
  note: (steps: EvacuationSteps) => steps.setNote(steps.vmis.get(KEY)!, 'n1'),
  removeNote: (steps: EvacuationSteps) => steps.setNote(steps.vmis.get(KEY)!, undefined),
  cancel: (steps: EvacuationSteps) => steps.cancel(steps.migrations.get({ namespace: 'ns', name: 'job' })!),
} as const;

const MIGRATIONS = 'virtualmachineinstancemigrations';
const INSTANCE = 'PATCH virtualmachineinstances/vm';
testSteps({ make: (environment) => new EvacuationSteps(environment) }, [
  {
    name: 'an evacuation creates a migration that names the node, and is expected to show up',
    act: ACTS.evacuate,
    objects: OBJECTS,
    outcome: 'false',
    writes: [
      [
        `POST ${MIGRATIONS}`,
        {
          metadata: { annotations: { [EVACUATION_ANNOTATION]: 'n1' } },
          spec: { vmiName: 'vm', priority: 'system-critical' },
        },
      ],
    ],
    events: ['Normal SuccessfulCreate Created Migration kubevirt-evacuation-x'],
  },
  {
    name: 'an evacuation that is refused is reported and tried again',
    act: ACTS.evacuate,
    objects: OBJECTS,
    refuse: { [`POST ${MIGRATIONS}`]: REFUSED },
    error: /not now/,
    writes: [[`POST ${MIGRATIONS}`]],
    events: ['Warning FailedCreate Error creating a Migration: not now'],
  },
  {
    name: 'a node that takes guests again takes the mark back',
    act: ACTS.release,
    objects: [guest({}, { evacuationNodeName: 'n1', nodeName: 'n1' })],
    writes: [[INSTANCE, { metadata: { uid: 'uid-vm' }, status: { evacuationNodeName: null } }]],
    events: ['Normal EvacuationCancelled Node n1 takes guests again: the evacuation of this instance is called off'],
  },
  {
    name: 'an instance that has gone is no reason to fail, and nothing is reported of it',
    act: ACTS.release,
    objects: [guest({}, { evacuationNodeName: 'n1' })],
    refuse: { [INSTANCE]: GONE },
    writes: [[INSTANCE]],
  },
  {
    name: 'a write that lost a race is not taken for one that was made',
    act: ACTS.release,
    objects: [guest({}, { evacuationNodeName: 'n1' })],
    refuse: { [INSTANCE]: CONFLICT },
    error: /another one/,
    writes: [[INSTANCE]],
  },
  {
    name: 'the drain is noted beside the other annotations',
    act: ACTS.note,
    objects: [guest({ a: 'b' })],
    writes: [[INSTANCE, { metadata: { annotations: { [DRAIN_ANNOTATION]: 'n1' } } }]],
  },
  { name: 'a note that is there is not written again', act: ACTS.note, objects: [guest({ [DRAIN_ANNOTATION]: 'n1' })] },
  {
    name: 'the note is removed alone',
    act: ACTS.removeNote,
    objects: [guest({ a: 'b', [DRAIN_ANNOTATION]: 'n1' })],
    writes: [[INSTANCE, { metadata: { annotations: { [DRAIN_ANNOTATION]: null } } }]],
  },
  {
    name: 'a migration is cancelled by deleting this very one',
    act: ACTS.cancel,
    objects: OBJECTS,
    writes: [[`DELETE ${MIGRATIONS}/job`, { preconditions: { uid: 'uid-job' } }]],
  },
  {
    name: 'a migration that was replaced meanwhile is left alone',
    act: ACTS.cancel,
    objects: OBJECTS,
    refuse: { [`DELETE ${MIGRATIONS}/job`]: CONFLICT },
    writes: [[`DELETE ${MIGRATIONS}/job`]],
  },
  {
    name: 'a migration that may not be cancelled is tried again',
    act: ACTS.cancel,
    objects: OBJECTS,
    refuse: { [`DELETE ${MIGRATIONS}/job`]: REFUSED },
    error: /not now/,
    writes: [[`DELETE ${MIGRATIONS}/job`]],
  },
]);
