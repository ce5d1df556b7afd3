/** Laws of expansion, over arbitrary machines and over real instance types and preferences. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseAllDocuments } from 'yaml';
import { cloneJson } from '../../../../apimachinery/src/meta/deep-clone.ts';
import { deepEqual } from '../../../../apimachinery/src/meta/deep-equal.ts';
import { pruneUnknown } from '../../../../apimachinery/src/schema/prune.ts';
import { validateSchema } from '../../../../apimachinery/src/schema/validate.ts';
import {
  type InstancetypeSpec,
  kubevirtResources,
  type PreferenceSpec,
  type VirtualMachine,
  type VirtualMachineInstanceSpec,
  type VirtualMachineInstancetype,
  type VirtualMachinePreference,
} from '../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../machine-defaults/cluster-config.ts';
import { commonInstancetypes } from './bundle/bundle.ts';
import { spreadConflict } from './cpu-topology.ts';
import { decodeRevision } from './decode-revision.ts';
import { applyInstancetype, expandVirtualMachine, type Layers } from './expand.ts';
import type { SourceKind } from './matcher.ts';
import { buildRevision } from './revision.ts';

const config = clusterConfigOf(undefined);
const PUBLISHED = new URL('../../../../../../shared/data/common-instancetypes.yaml', import.meta.url);

const sources: SourceKind[] = existsSync(PUBLISHED)
  ? parseAllDocuments(readFileSync(PUBLISHED, 'utf8')).map((document) => document.toJS() as SourceKind)
  : commonInstancetypes();
const instancetypes = sources.filter(({ kind }) => kind.endsWith('Instancetype')) as VirtualMachineInstancetype[];
const preferences = sources.filter(({ kind }) => kind.endsWith('Preference')) as VirtualMachinePreference[];

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const text = (...values: string[]) => fc.constantFrom(...values);
/** Drops absent members: what is undefined was not written. */
const written = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  arbitrary.map((value) => JSON.parse(JSON.stringify(value)) as T);

/** What a user may write beside an instance type and a preference; a third of it meets an amount of an instance type. */
const userSpec = written(
  fc.record({
    nodeSelector: maybe(fc.constant({ zone: 'a' })),
    schedulerName: maybe(text('mine', '')),
    subdomain: maybe(text('sub')),
    architecture: maybe(text('amd64', 'arm64')),
    terminationGracePeriodSeconds: maybe(fc.integer({ min: 0, max: 90 })),
    volumes: fc.constant([
      { name: 'a', emptyDisk: { capacity: '1Gi' } },
      { name: 'b', containerDisk: { image: 'x:1' } },
      { name: 'c', cloudInitNoCloud: { userData: '#' } },
    ]),
    domain: fc.record({
      cpu: maybe(
        fc.record({
          cores: maybe(fc.constantFrom(0, 0, 2)),
          model: maybe(text('EPYC')),
          features: maybe(fc.constant([{ name: 'vmx' }])),
          maxSockets: maybe(fc.constant(8)),
          dedicatedCpuPlacement: maybe(fc.boolean()),
        }),
      ),
      memory: maybe(fc.record({ guest: maybe(text('1Gi')), hugepages: maybe(fc.constant({ pageSize: '2Mi' })) })),
      resources: maybe(fc.constantFrom({}, { requests: { cpu: '1' } }, { requests: { other: '1' } })),
      ioThreadsPolicy: maybe(text('shared')),
      machine: maybe(fc.record({ type: text('pc-q35-9.0', '') })),
      clock: maybe(fc.constantFrom({}, { timezone: 'Europe/Brno' }, { timer: { kvm: {} } })),
      features: maybe(fc.constantFrom({}, { smm: { enabled: false } }, { hyperv: { relaxed: { enabled: false } } })),
      firmware: maybe(fc.constantFrom({ uuid: 'u' }, { bootloader: { bios: {} } }, { bootloader: { efi: {} } })),
      devices: fc.record({
        autoattachInputDevice: maybe(fc.boolean()),
        autoattachPodInterface: maybe(fc.boolean()),
        blockMultiQueue: maybe(fc.boolean()),
        rng: maybe(fc.constant({})),
        tpm: maybe(fc.constant({ enabled: false })),
        video: maybe(fc.constantFrom({}, { type: 'vga' })),
        inputs: maybe(fc.constant([{ name: 'i', type: 'tablet' }])),
        disks: fc.subarray([
          { name: 'a', disk: { bus: 'sata' }, cache: 'none' },
          { name: 'b', cdrom: {} },
          { name: 'c', disk: {}, dedicatedIOThread: false },
        ]),
      }),
    }),
  }),
) as unknown as fc.Arbitrary<VirtualMachineInstanceSpec>;

const layers: fc.Arbitrary<{ type?: VirtualMachineInstancetype; preference?: VirtualMachinePreference }> = fc.record(
  { type: fc.constantFrom(...instancetypes), preference: fc.constantFrom(...preferences) },
  { requiredKeys: [] },
);

const machineOf = (spec: VirtualMachineInstanceSpec): VirtualMachine => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'vm', namespace: 'here', uid: 'u' },
  spec: {
    runStrategy: 'Halted',
    instancetype: { name: 't' },
    preference: { name: 'p' },
    template: { metadata: { annotations: { own: 'x' } }, spec },
  },
});

const specsOf = ({ type, preference }: { type?: SourceKind; preference?: SourceKind }): Layers => ({
  instancetype: type?.spec as InstancetypeSpec | undefined,
  preference: preference?.spec as PreferenceSpec | undefined,
});

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) deepFreeze(member);
    Object.freeze(value);
  }
  return value;
}

/** Fields where a layer overrides the user: upstream cannot tell there that the user said something. */
const OVERRIDDEN = /\.(acpi|disableHotplug|maxSockets)(\.|$)/;
/** The same as nothing there. */
const isZero = (value: unknown): boolean => value === '' || value === 0 || value === false;

/** Leaves of `user` that are not the same in `result`. */
function changed(user: unknown, result: unknown, path = ''): string[] {
  if (typeof user !== 'object' || user === null)
    return isZero(user) || deepEqual(user, result) || OVERRIDDEN.test(path) ? [] : [path];
  if (Array.isArray(user))
    return user.flatMap((item, i) => changed(item, (result as unknown[] | undefined)?.[i], `${path}[${i}]`));
  return Object.entries(user).flatMap(([key, member]) =>
    changed(member, (result as Record<string, unknown> | undefined)?.[key], `${path}.${key}`),
  );
}

const runs = { numRuns: 1500 };

describe('expansion', () => {
  // S-175: Expansion of an instance type and a preference tells every conflict, never changes a field that the user
  //   set, and is idempotent.
  it('without conflicts never changes a field that the user set', () => {
    let expanded = 0;
    fc.assert(
      fc.property(userSpec, layers, (spec, chosen) => {
        const result = applyInstancetype({ ...specsOf(chosen), spec });
        if (!result.ok) return;
        expanded++;
        assert.deepEqual(changed(spec, result.spec), []);
      }),
      runs,
    );
    assert.ok(expanded > runs.numRuns / 20, `only ${expanded} of ${runs.numRuns} were without conflicts`);
  });
  // S-175
  it('is idempotent: what is expanded expands to itself, and a preference adds nothing the second time', () => {
    fc.assert(
      fc.property(userSpec, layers, (spec, chosen) => {
        const first = expandVirtualMachine(machineOf(spec), specsOf(chosen), config);
        if (!first.ok) return;
        const again = expandVirtualMachine(first.vm, specsOf(chosen), config);
        assert.ok(again.ok);
        assert.deepEqual(again.vm, first.vm);
        const { preference } = specsOf(chosen);
        const template = first.vm.spec.template.spec!;
        const twice = applyInstancetype({
          preference,
          spec: template,
          metadata: first.vm.spec.template.metadata ?? {},
        });
        assert.ok(twice.ok);
        assert.deepEqual(twice.spec, template);
      }),
      runs,
    );
  });
  it('does not touch what it is given', () => {
    fc.assert(
      fc.property(userSpec, layers, (spec, chosen) => {
        const vm = deepFreeze(machineOf(spec));
        expandVirtualMachine(vm, specsOf(deepFreeze(cloneJson(chosen))), config);
      }),
      { numRuns: 500 },
    );
  });
  // S-176
  it('of captured copies equals expansion of the objects', () => {
    fc.assert(
      fc.property(userSpec, layers, (spec, chosen) => {
        const vm = machineOf(spec);
        const capture = (source: SourceKind) => JSON.parse(JSON.stringify(buildRevision(vm, source)));
        const captured: Layers = {
          instancetype: chosen.type && (decodeRevision(capture(chosen.type)).spec as InstancetypeSpec),
          preference: chosen.preference && (decodeRevision(capture(chosen.preference)).spec as PreferenceSpec),
        };
        assert.deepEqual(expandVirtualMachine(vm, captured, config), expandVirtualMachine(vm, specsOf(chosen), config));
      }),
      { numRuns: 500 },
    );
  });
  it('tells every conflict that a single field would have, processors all and memory the first', () => {
    fc.assert(
      fc.property(userSpec, fc.constantFrom(...instancetypes), (spec, { spec: instancetype }) => {
        const all = applyInstancetype({ instancetype, spec });
        const paths = all.ok ? [] : all.conflicts.map(({ path }) => path);
        assert.equal(new Set(paths).size, paths.length);
        const has = (path: string) => paths.includes(`spec.template.spec.${path}`);
        const { cpu, memory, resources } = spec.domain;
        assert.equal(has('domain.cpu.cores'), Boolean(cpu?.cores));
        assert.equal(has('domain.resources.requests.cpu'), resources?.requests?.['cpu'] !== undefined);
        assert.equal(has('domain.memory.guest'), memory?.guest !== undefined);
        assert.ok(paths.filter((path) => path.includes('.memory.')).length <= 1);
      }),
      runs,
    );
  });
});

describe('the real objects', () => {
  const schema = kubevirtResources().find(({ kind }) => kind === 'VirtualMachine')!.schema;
  const plain = machineOf({
    domain: { devices: {} },
    volumes: [{ name: 'root', containerDisk: { image: 'fedora:42' } }],
  });
  it(`expand to machines that fit the schema: each of ${instancetypes.length} with each of ${preferences.length}`, () => {
    for (const type of instancetypes) {
      for (const preference of preferences) {
        const chosen = specsOf({ type, preference });
        const result = expandVirtualMachine(plain, chosen, config);
        const name = `${type.metadata.name} with ${preference.metadata.name}`;
        assert.ok(result.ok, name);
        const { cpu, memory } = result.vm.spec.template.spec!.domain;
        if (spreadConflict(chosen.instancetype, chosen.preference) === undefined)
          assert.equal(cpu!.sockets! * cpu!.cores! * cpu!.threads!, type.spec.cpu.guest, name);
        assert.equal(memory!.guest, type.spec.memory.guest, name);
      }
    }
  });
  it('leave no unknown field behind', () => {
    const [type] = instancetypes;
    for (const preference of preferences) {
      const { name = '' } = preference.metadata;
      const result = expandVirtualMachine(plain, specsOf({ type: type!, preference }), config);
      assert.ok(result.ok);
      assert.deepEqual(validateSchema(schema, result.vm, { custom: true }), [], name);
      assert.deepEqual(pruneUnknown(schema, cloneJson(result.vm), { custom: true }), [], name);
    }
  });
});
