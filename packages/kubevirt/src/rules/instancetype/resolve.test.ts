import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ControllerRevision } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import type { SourceKind } from './matcher.ts';
import { layersOf, readSources, type SourceReader } from './resolve.ts';
import { buildRevision, revisionName } from './revision.ts';

const type = (
  name: string,
  { guest = 2, generation = 1, kind = 'VirtualMachineClusterInstancetype' } = {},
): SourceKind =>
  ({
    apiVersion: 'instancetype.kubevirt.io/v1beta1',
    kind,
    metadata: { name, uid: `uid-of-${name}`, generation },
    spec: { cpu: { guest }, memory: { guest: '1Gi' } },
  }) as SourceKind;

const vm = (
  instancetype: object | undefined,
  captured?: string,
  { uid = 'vm-uid', isNew = false } = {},
): VirtualMachine =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'vm', namespace: 'ns', ...(uid && { uid }) },
    spec: { ...(instancetype && { instancetype }), template: {} },
    status: {
      ...(!isNew && { printableStatus: 'Stopped' }),
      ...(captured && { instancetypeRef: { controllerRevisionRef: { name: captured } } }),
    },
  }) as unknown as VirtualMachine;

const owner = vm(undefined);
/** A reader over fixed objects that says what it was asked. */
function readerOf(objects: readonly SourceKind[], revisions: readonly ControllerRevision[] = []) {
  const asked: string[] = [];
  const reader: SourceReader = {
    revision: async (_namespace, name) => {
      asked.push(`revision ${name}`);
      return revisions.find(({ metadata }) => metadata.name === name);
    },
    object: async (ref) => {
      asked.push(`object ${ref.name}`);
      return objects.find(({ kind, metadata }) => kind === ref.type.kind && metadata.name === ref.name);
    },
    own: async () => {
      asked.push('own');
      return revisions;
    },
  };
  return { reader, asked };
}

const [a, b] = [type('a'), type('b', { guest: 8 })];
const copyOfA = buildRevision(owner, a);
const nameOfA = revisionName('vm', a);
const edited = type('a', { guest: 4, generation: 2 });

interface Case {
  readonly title: string;
  readonly machine: VirtualMachine;
  readonly objects?: readonly SourceKind[];
  readonly revisions?: readonly ControllerRevision[];
  /** Processors that are found, or the text of what is missing; undefined without a matcher. */
  readonly expected: number | string | undefined;
  readonly asked: readonly string[];
}

const CASES: readonly Case[] = [
  { title: 'nothing without a matcher', machine: vm(undefined), expected: undefined, asked: [] },
  { title: 'the live object', machine: vm({ name: 'a' }), objects: [a], expected: 2, asked: ['object a'] },
  {
    title: 'the captured copy before an edited object',
    machine: vm({ name: 'a' }, nameOfA),
    objects: [edited],
    revisions: [copyOfA],
    expected: 2,
    asked: [`revision ${nameOfA}`],
  },
  {
    title: 'the live object when the copy is another one’s',
    machine: vm({ name: 'b' }, nameOfA),
    objects: [b],
    revisions: [copyOfA],
    expected: 8,
    asked: [`revision ${nameOfA}`, 'object b'],
  },
  {
    title: 'the revision that the machine names',
    machine: vm({ name: 'b', revisionName: nameOfA }),
    objects: [b],
    revisions: [copyOfA],
    expected: 2,
    asked: [`revision ${nameOfA}`],
  },
  {
    title: 'the object in place of a missing copy that it still is',
    machine: vm({ name: 'a' }, nameOfA),
    objects: [a],
    expected: 2,
    asked: [`revision ${nameOfA}`, 'object a'],
  },
  {
    title: 'nothing in place of a missing copy when the object changed',
    machine: vm({ name: 'a' }, nameOfA),
    objects: [edited],
    expected: `controllerrevisions.apps "${nameOfA}" not found`,
    asked: [`revision ${nameOfA}`, 'object a'],
  },
  {
    title: 'nothing for a named revision that is missing',
    machine: vm({ name: 'a', revisionName: 'x' }),
    objects: [a],
    expected: 'controllerrevisions.apps "x" not found',
    asked: ['revision x', 'object a'],
  },
  {
    title: 'the copy taken at creation for an object that is gone',
    machine: vm({ name: 'a' }),
    revisions: [copyOfA],
    expected: 2,
    asked: ['object a', 'own'],
  },
  {
    title: 'the copy taken at creation before an object that was edited since',
    machine: vm({ name: 'a' }, undefined, { isNew: true }),
    objects: [edited],
    revisions: [copyOfA],
    expected: 2,
    asked: ['object a', `revision ${revisionName('vm', edited)}`, 'own'],
  },
  {
    title: 'the copy taken at creation by its name while the object is what it was',
    machine: vm({ name: 'a' }, undefined, { isNew: true }),
    objects: [a],
    revisions: [copyOfA],
    expected: 2,
    asked: ['object a', `revision ${nameOfA}`],
  },
  {
    title: "its own copies where that of the name is another machine's",
    machine: vm({ name: 'a' }, undefined, { isNew: true, uid: 'another' }),
    objects: [a],
    revisions: [copyOfA],
    expected: 2,
    asked: ['object a', `revision ${nameOfA}`, 'own'],
  },
  {
    title: 'the live object when nothing was captured at creation',
    machine: vm({ name: 'a' }, undefined, { isNew: true }),
    objects: [a],
    expected: 2,
    asked: ['object a', `revision ${nameOfA}`, 'own'],
  },
  {
    title: 'the live object before an old copy once the controller was there',
    machine: vm({ name: 'a' }),
    objects: [edited],
    revisions: [copyOfA],
    expected: 4,
    asked: ['object a'],
  },
  {
    title: 'no copy of an object of another kind',
    machine: vm({ name: 'a', kind: 'VirtualMachineInstancetype' }),
    revisions: [copyOfA],
    expected: 'virtualmachineinstancetypes.instancetype.kubevirt.io "a" not found',
    asked: ['object a', 'own'],
  },
  {
    title: 'no copies of a machine that was never stored',
    machine: vm({ name: 'a' }, undefined, { uid: '' }),
    revisions: [copyOfA],
    expected: 'virtualmachineclusterinstancetypes.instancetype.kubevirt.io "a" not found',
    asked: ['object a'],
  },
  {
    title: 'nothing in a revision that holds something else',
    machine: vm({ name: 'a' }, 'other'),
    revisions: [{ ...copyOfA, metadata: { ...copyOfA.metadata, name: 'other' }, data: { spec: {} } }],
    expected: 'failed to decode object in ControllerRevision: no version without a kind is not known',
    asked: ['revision other'],
  },
  {
    title: 'nothing for a kind that is none of ours',
    machine: vm({ name: 'a', kind: 'Deployment' }),
    expected: 'got unexpected kind in InstancetypeMatcher: Deployment',
    asked: [],
  },
];

describe('readSources() finds', () => {
  for (const { title, machine, objects = [], revisions = [], expected, asked } of CASES) {
    it(title, async () => {
      const at = readerOf(objects, revisions);
      const found = await readSources(machine, at.reader);
      const { instancetype } = found;
      assert.equal(
        instancetype.type === 'missing' ? instancetype.message : layersOf(found).instancetype?.cpu.guest,
        expected,
      );
      assert.deepEqual(at.asked, asked);
    });
  }
});
