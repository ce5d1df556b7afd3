import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachineInstance } from '../../kinds/kinds.ts';
import type { MachinePlan, NodeFacts } from '../machine/machine-plan.ts';
import { machinePlan } from '../machine/plan.ts';
import { hostOf, resumeDifference, resumedPlan } from './resume-plan.ts';
import { parseResumeFrom, RESUME_FROM, resumeFrom } from './resume-request.ts';

const A = '11111111-2222-4333-8444-555555555555';
const B = '99999999-2222-4333-8444-555555555555';

test('a request is the UID of a state, with a ticket or without; nothing else is one', () => {
  assert.deepEqual(parseResumeFrom(A), { state: A });
  assert.deepEqual(parseResumeFrom(`${A}/${B}`), { state: A, ticket: B });
  for (const text of ['', 'x', `${A}/`, `${A}/x`, `../${A}`, `${A}/..`, `${A}\n`, A.toUpperCase().replace('1', 'F')])
    assert.equal(parseResumeFrom(text), undefined, JSON.stringify(text));
  assert.equal(resumeFrom({ state: A }), A);
  assert.equal(resumeFrom({ state: A, ticket: B }), `${A}/${B}`);
});

const FACTS: NodeFacts = {
  architecture: 'amd64',
  qemuVersion: '7.2.22',
  accelerator: 'tcg',
  machineTypes: ['pc-q35-7.2'],
  machineAliases: { q35: 'pc-q35-7.2' },
  cpuModels: ['max', 'Haswell'],
  cpuFeatures: [],
  devices: ['virtio-net-pci', 'vmgenid'],
  sandbox: true,
};

interface Change {
  readonly name?: string;
  readonly uuid?: string;
  readonly domain?: object;
  readonly nic?: object;
  readonly annotations?: Record<string, string>;
  readonly facts?: Partial<NodeFacts>;
}

const planOf = ({ name = 'vm', uuid = A, domain = {}, nic = {}, annotations = {}, facts = {} }: Change): MachinePlan =>
  machinePlan(
    {
      metadata: { name, namespace: 'ns', uid: uuid, annotations },
      spec: {
        domain: {
          memory: { guest: '128Mi' },
          firmware: { uuid, serial: uuid },
          devices: { interfaces: [{ name: 'default', masquerade: {}, ...nic }] },
          ...domain,
        },
        networks: [{ name: 'default', pod: {} }],
      },
    } as unknown as VirtualMachineInstance,
    { ...FACTS, ...facts },
  );

// S-672: A machine that differs from the saved one (hardware, release of QEMU, processor of the host) is not resumed,
//   and says what differs; identity may differ. It boots instead only where its user says so.
test('a machine of another identity fits a state; one of other hardware, or another QEMU, does not', () => {
  const saved = { plan: planOf({}), host: { qemuVersion: '7.2.22' } };
  const cases: readonly [what: string, change: Change, problem: RegExp | undefined][] = [
    ['the same', {}, undefined],
    ['another name and UUID', { name: 'fork', uuid: B }, undefined],
    ['another MAC address and port', { nic: { macAddress: '02:00:00:00:00:09', ports: [{ port: 9 }] } }, undefined],
    ['another ticket', { annotations: { [RESUME_FROM]: A } }, undefined],
    ['a later patch of QEMU', { facts: { qemuVersion: '7.2.30' } }, undefined],
    ['another QEMU', { facts: { qemuVersion: '8.2.0' } }, /saved by QEMU 7.2.22, this node has 8.2.0/],
    ['KVM', { facts: { accelerator: 'kvm' } }, /differs in accelerator/],
    ['more memory', { domain: { memory: { guest: '256Mi' } } }, /differs in memoryBytes/],
    ['another processor', { domain: { cpu: { model: 'Haswell' } } }, /differs in cpu/],
    ['another card', { nic: { model: 'e1000' }, facts: { devices: ['e1000', 'vmgenid'] } }, /differs in interfaces/],
    ['no generation id', { facts: { devices: ['virtio-net-pci'] } }, /differs in generationId/],
  ];
  for (const [what, change, problem] of cases) {
    const plan = planOf(change);
    const facts = { ...FACTS, ...change.facts };
    const why = resumeDifference(saved, { plan, host: hostOf(plan, facts, 'cpu') });
    if (problem) assert.match(why ?? '', problem, what);
    else assert.equal(why, undefined, what);
  }
});

// S-672
test('a guest that was given the processor of its host goes on beside one of that name only', () => {
  const plan = { ...planOf({ facts: { accelerator: 'kvm' } }), cpu: { ...planOf({}).cpu, model: 'host' } };
  const facts = { qemuVersion: '7.2.22' };
  const saved = { plan, host: hostOf(plan, facts, 'Epyc') };
  assert.equal(resumeDifference(saved, { plan, host: hostOf(plan, facts, 'Epyc') }), undefined);
  assert.match(resumeDifference(saved, { plan, host: hostOf(plan, facts, 'Xeon') }) ?? '', /saved on a Epyc/);
});

test('the machine to resume on has the identity of its object, and tells the guest that it was copied', () => {
  const saved = planOf({});
  const plan = planOf({ name: 'fork', uuid: B, annotations: { [RESUME_FROM]: A } });
  const resumed = resumedPlan(saved, plan);
  assert.deepEqual([resumed.uuid, resumed.name, resumed.smbios], [B, 'ns_fork', plan.smbios]);
  assert.equal(resumed.generationId, plan.generationId);
  assert.notEqual(resumed.generationId, saved.generationId);
  const { generationId: _, ...old } = saved;
  assert.equal(resumedPlan(old, plan).generationId, undefined, 'a machine of an older version has no such device');
});
