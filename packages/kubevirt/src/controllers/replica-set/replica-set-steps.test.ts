import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import type { ControllerEnvironment } from '../../../../client/src/controller/environment.ts';
import { NOW, stored } from '../../../../client/src/run-step.fixture.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
} from '../../kinds/kubevirt.ts';
import { CONFLICT, GONE, instance, REFUSED, testSteps } from '../step.fixture.ts';
import { MEMBERS, orphansOf, ReplicaSetSteps } from './replica-set-steps.ts';

const LABELS = { app: 'a' };
const SET = stored(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS, 'set', {
  spec: {
    replicas: 1,
    selector: { matchLabels: LABELS },
    template: { metadata: { labels: LABELS }, spec: { domain: { devices: {} } } },
  },
});
const OWNER = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceReplicaSet', name: 'set', uid: 'uid-set' };
const OWNED = [{ ...OWNER, controller: true, blockOwnerDeletion: true }];
const member = (metadata: Partial<VirtualMachineInstance['metadata']>) =>
  instance({}, { ownerReferences: OWNED, labels: LABELS, ...metadata });

const make = (environment: ControllerEnvironment) => {
  const vmis = environment.informers.of(VIRTUAL_MACHINE_INSTANCES);
  vmis.addIndex(MEMBERS, (vmi) => [controllerOf(vmi)?.uid ?? orphansOf(vmi.metadata.namespace)]);
  const sets = environment.informers.of(VIRTUAL_MACHINE_INSTANCE_REPLICA_SETS);
  return { steps: new ReplicaSetSteps(environment), vmis, sets };
};
type Made = ReturnType<typeof make>;
const claim = async ({ steps }: Made) => (await steps.claim(SET)).map(({ metadata }) => metadata.name);
const scale =
  (create: number, isRemoved = false) =>
  async ({ steps, vmis }: Made) => {
    const plan = { create, remove: isRemoved ? vmis.list() : [], replicas: 0, readyReplicas: 0, waitMs: undefined };
    const failure = await steps.scale(SET, plan);
    return { shown: failure?.shown, isSatisfied: steps.expectations.satisfied('ns/set') };
  };

const CREATE = 'POST virtualmachineinstances';
const DELETE = 'DELETE virtualmachineinstances/vm';
const WRITE = 'PATCH virtualmachineinstances/vm';
const events = ['Warning FailedCreate Error creating virtual machine instance: not now'];
testSteps({ make, act: claim }, [
  {
    name: 'an instance that nobody owns and the set selects becomes its own',
    objects: [SET, member({ ownerReferences: [] })],
    outcome: ['vm'],
    writes: [[WRITE, { metadata: { uid: 'uid-vmi', ownerReferences: [OWNER] } }]],
  },
  {
    name: 'a set that is going takes nothing more',
    objects: [
      { ...SET, metadata: { ...SET.metadata, deletionTimestamp: NOW, finalizers: ['x'] } },
      member({ ownerReferences: [] }),
    ],
    outcome: [],
  },
  {
    name: 'another set of the name takes nothing in its place',
    objects: [{ ...SET, metadata: { ...SET.metadata, uid: 'another' } }, member({ ownerReferences: [] })],
    outcome: [],
  },
  {
    name: 'an instance that the set selects no more is released',
    objects: [SET, member({ labels: {} })],
    outcome: [],
    writes: [[WRITE, { metadata: { ownerReferences: [] } }]],
  },
  {
    name: 'an instance that changed meanwhile is left to the next pass',
    objects: [SET, member({ labels: {} })],
    refuse: { [WRITE]: CONFLICT },
    outcome: [],
    writes: [[WRITE]],
  },
  {
    name: 'what is missing is made after the template, and expected to show up',
    act: scale(1),
    objects: [SET],
    outcome: { shown: undefined, isSatisfied: false },
    writes: [[CREATE, { metadata: { generateName: 'set', labels: LABELS, ownerReferences: [OWNER] } }]],
    events: ['Normal SuccessfulCreate Started the virtual machine by creating the new virtual machine instance setx'],
  },
  {
    name: 'the first refusal ends it: the next ones would meet the same',
    act: scale(3),
    objects: [SET],
    refuse: { [CREATE]: REFUSED },
    outcome: { shown: { reason: 'FailedCreate' }, isSatisfied: true },
    writes: [[CREATE]],
    events,
  },
  {
    name: 'what is too much is deleted, this very instance',
    act: scale(0, true),
    objects: [SET, member({ finalizers: ['x'] })],
    outcome: { shown: undefined, isSatisfied: false },
    writes: [[DELETE, { preconditions: { uid: 'uid-vmi' } }]],
    events: ['Normal SuccessfulDelete Stopped the virtual machine by deleting the virtual machine instance vm'],
  },
  {
    name: 'one that has gone by itself is not waited for',
    act: scale(0, true),
    objects: [SET, member({})],
    refuse: { [DELETE]: GONE },
    outcome: { shown: undefined, isSatisfied: true },
    writes: [[DELETE]],
  },
]);
