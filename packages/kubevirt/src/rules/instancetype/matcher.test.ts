import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { InstancetypeSpec, PreferenceSpec, VirtualMachine } from '../../kinds/kubevirt.ts';
import { type InferenceObject, inferMatcher } from './infer.ts';
import { type Matcher, notFoundMessage, planSpecLookup, sourceType, validateMatchers } from './matcher.ts';
import {
  instancetypeWarnings,
  preferenceWarnings,
  validateInstancetypeSpec,
  validatePreferenceSpec,
} from './validate-kinds.ts';

const machine = (spec: Record<string, unknown>, status?: VirtualMachine['status']): VirtualMachine =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'vm', namespace: 'here' },
    spec: { template: { spec: { domain: { devices: {} } } }, ...spec },
    ...(status && { status }),
  }) as VirtualMachine;

describe('sourceType()', () => {
  const cases: ['instancetype' | 'preference', string | undefined, string | undefined][] = [
    ['instancetype', undefined, 'virtualmachineclusterinstancetypes'],
    ['instancetype', '', 'virtualmachineclusterinstancetypes'],
    ['instancetype', 'VirtualMachineInstancetype', 'virtualmachineinstancetypes'],
    ['instancetype', 'virtualmachineinstancetypes', 'virtualmachineinstancetypes'],
    ['instancetype', 'VIRTUALMACHINECLUSTERINSTANCETYPE', 'virtualmachineclusterinstancetypes'],
    ['instancetype', 'VirtualMachinePreference', undefined],
    ['preference', 'virtualMachinePreferences', 'virtualmachinepreferences'],
    ['preference', 'VirtualMachineClusterPreference', 'virtualmachineclusterpreferences'],
    ['preference', 'Pod', undefined],
  ];
  for (const [field, kind, resource] of cases)
    it(`${field} ${kind} is ${resource}`, () => assert.equal(sourceType(field, kind)?.resource, resource));
});

describe('planSpecLookup()', () => {
  const captured = { instancetypeRef: { controllerRevisionRef: { name: 'captured' } } };
  it('is nothing without a matcher', () =>
    assert.deepEqual(planSpecLookup(machine({}, captured), 'instancetype'), { from: 'none' }));
  it('takes revisionName, then the status reference of the same object, then the object', () => {
    const live = planSpecLookup(machine({ instancetype: { name: 'a' } }), 'instancetype');
    assert.equal(live.from, 'object');
    assert.deepEqual(planSpecLookup(machine({ instancetype: { name: 'a' } }, captured), 'instancetype'), {
      from: 'revision',
      name: 'captured',
      onlyFor: 'a',
      otherwise: live,
    });
    const about = { instancetypeRef: { name: 'a', ...captured.instancetypeRef } };
    assert.deepEqual(planSpecLookup(machine({ instancetype: { name: 'a' } }, about), 'instancetype'), {
      from: 'revision',
      name: 'captured',
      otherwise: live,
    });
    const pinned = machine({ instancetype: { name: 'a', revisionName: 'pinned' } }, captured);
    assert.deepEqual(planSpecLookup(pinned, 'instancetype'), { from: 'revision', name: 'pinned', otherwise: live });
  });
  it('looks for namespaced kinds beside the machine', () => {
    const lookup = planSpecLookup(
      machine({ preference: { name: 'p', kind: 'VirtualMachinePreference' } }),
      'preference',
    );
    assert.ok(lookup.from === 'object');
    assert.equal(lookup.ref.namespace, 'here');
    assert.equal(notFoundMessage(lookup.ref), 'virtualmachinepreferences.instancetype.kubevirt.io "p" not found');
  });
  it('says which kind it does not know', () =>
    assert.deepEqual(planSpecLookup(machine({ preference: { name: 'p', kind: 'Pod' } }), 'preference'), {
      from: 'error',
      message: 'got unexpected kind in PreferenceMatcher: Pod',
    }));
  it('looks for nothing without a name', () =>
    assert.deepEqual(planSpecLookup(machine({ instancetype: { inferFromVolume: 'v' } }), 'instancetype'), {
      from: 'error',
      message: 'resource name may not be empty',
    }));
});

describe('validateMatchers()', () => {
  const cases: [Matcher, string[]][] = [
    [{ name: 'a' }, []],
    [{ inferFromVolume: 'v', inferFromVolumeFailurePolicy: 'Ignore' }, []],
    [
      {},
      [
        'FieldValueNotFound spec.preference Either Name or InferFromVolume should be provided within the preference matcher',
      ],
    ],
    [
      { inferFromVolume: 'v', name: 'a', kind: 'k' },
      [
        'FieldValueNotSupported spec.preference.name Name should not be provided when InferFromVolume is used within the preference matcher',
        'FieldValueNotSupported spec.preference.kind Kind should not be provided when InferFromVolume is used within the preference matcher',
      ],
    ],
    [
      { name: 'a', inferFromVolumeFailurePolicy: 'Maybe' },
      [
        "FieldValueInvalid spec.preference.inferFromVolumeFailurePolicy Invalid value 'Maybe' for InferFromVolumeFailurePolicy",
      ],
    ],
  ];
  for (const [preference, expected] of cases)
    it(JSON.stringify(preference), () => {
      const causes = validateMatchers(machine({ preference }));
      assert.deepEqual(
        causes.map(({ type, field, detail }) => `${type} ${field} ${detail}`),
        expected,
      );
    });

  const updates: [old: Matcher | undefined, next: Matcher | undefined, refused: boolean][] = [
    [{ name: 'a', revisionName: 'r' }, { name: 'b', revisionName: 'r' }, true],
    [{ name: 'a', revisionName: 'r' }, { name: 'b', revisionName: 's' }, false],
    [{ name: 'a', revisionName: 'r' }, { name: 'b' }, false],
    [{ name: 'a', revisionName: 'r' }, { name: 'a' }, false],
    [{ name: 'a' }, { name: 'b' }, false],
    [undefined, { name: 'b', revisionName: 'r' }, false],
    [{ name: 'a', revisionName: 'r' }, undefined, false],
  ];
  for (const [old, next, refused] of updates)
    it(`update of ${JSON.stringify(old)} to ${JSON.stringify(next)} is ${refused ? 'refused' : 'fine'}`, () => {
      const causes = validateMatchers(machine({ instancetype: next }), machine({ instancetype: old }));
      assert.deepEqual(
        causes.map(({ field }) => field),
        refused ? ['spec.instancetype.revisionName'] : [],
      );
    });
});

describe('inferMatcher()', () => {
  const NAME = 'instancetype.kubevirt.io/default-instancetype';
  const labelled: InferenceObject = {
    metadata: { labels: { [NAME]: 'big', [`${NAME}-kind`]: 'VirtualMachineInstancetype' } },
  };
  const bare = (spec?: unknown): InferenceObject => ({ metadata: {}, spec });
  type World = Record<string, InferenceObject>;

  /** Infers from the objects of `world`; returns what was looked up on the way. */
  async function run(vm: VirtualMachine, world: World): Promise<{ seen: string[]; error: string | undefined }> {
    const seen: string[] = [];
    const error = await inferMatcher(vm, 'instancetype', async ({ resource, namespace, name }) => {
      const key = `${resource}/${namespace}/${name}`;
      seen.push(key);
      return world[key];
    });
    return { seen, error };
  }
  const vmWith = (volume: unknown, more: Record<string, unknown> = {}, policy?: string): VirtualMachine =>
    machine({
      instancetype: { inferFromVolume: 'v', ...(policy && { inferFromVolumeFailurePolicy: policy }) },
      template: {
        spec: { domain: { devices: {}, memory: { guest: '1Gi' } }, volumes: [{ name: 'v', ...(volume as object) }] },
      },
      ...more,
    });
  const dv = { dataVolume: { name: 'd' } };
  const template = (spec: unknown) => ({ dataVolumeTemplates: [{ metadata: { name: 'd' }, spec }] });

  const paths: [name: string, vm: VirtualMachine, world: World, seen: string[]][] = [
    [
      'a claim',
      vmWith({ persistentVolumeClaim: { claimName: 'c' } }),
      { 'persistentvolumeclaims/here/c': labelled },
      ['persistentvolumeclaims/here/c'],
    ],
    ['a DataVolume', vmWith(dv), { 'datavolumes/here/d': labelled }, ['datavolumes/here/d']],
    [
      'a DataVolume collected as garbage',
      vmWith(dv),
      { 'persistentvolumeclaims/here/d': labelled },
      ['datavolumes/here/d', 'persistentvolumeclaims/here/d'],
    ],
    [
      'a DataVolume made from a claim',
      vmWith(dv),
      {
        'datavolumes/here/d': bare({ source: { pvc: { name: 'c', namespace: 'there' } } }),
        'persistentvolumeclaims/there/c': labelled,
      },
      ['datavolumes/here/d', 'persistentvolumeclaims/there/c'],
    ],
    [
      'a template made from a claim',
      vmWith(dv, template({ source: { pvc: { name: 'c', namespace: 'there' } } })),
      { 'persistentvolumeclaims/there/c': labelled },
      ['persistentvolumeclaims/there/c'],
    ],
    [
      'a template made from a snapshot',
      vmWith(dv, template({ source: { snapshot: { name: 's', namespace: 'there' } } })),
      { 'volumesnapshots/there/s': labelled },
      ['volumesnapshots/there/s'],
    ],
    [
      'a template made from a DataSource of the same namespace',
      vmWith(dv, template({ sourceRef: { kind: 'DataSource', name: 'ds' } })),
      { 'datasources/here/ds': labelled },
      ['datasources/here/ds'],
    ],
    [
      'a DataSource made from a claim',
      vmWith(dv, template({ sourceRef: { kind: 'DataSource', name: 'ds', namespace: 'there' } })),
      {
        'datasources/there/ds': bare({ source: { pvc: { name: 'c', namespace: 'x' } } }),
        'persistentvolumeclaims/x/c': labelled,
      },
      ['datasources/there/ds', 'persistentvolumeclaims/x/c'],
    ],
    [
      'a DataSource made from a snapshot',
      vmWith(dv, template({ sourceRef: { kind: 'DataSource', name: 'ds' } })),
      {
        'datasources/here/ds': bare({ source: { snapshot: { name: 's', namespace: 'x' } } }),
        'volumesnapshots/x/s': labelled,
      },
      ['datasources/here/ds', 'volumesnapshots/x/s'],
    ],
  ];
  for (const [name, vm, world, seen] of paths)
    it(`reads ${name}`, async () => {
      assert.deepEqual(await run(vm, world), { seen, error: undefined });
      assert.deepEqual(vm.spec.instancetype, { name: 'big', kind: 'VirtualMachineInstancetype' });
      assert.deepEqual(vm.spec.template.spec?.domain.memory, { guest: '1Gi' });
    });

  const failures: [
    name: string,
    volume: unknown,
    more: Record<string, unknown>,
    world: World,
    error: string,
    ignorable: boolean,
  ][] = [
    [
      'an unsupported volume',
      { containerDisk: { image: 'x' } },
      {},
      {},
      'unable to infer defaults from volume v as type is not supported',
      true,
    ],
    [
      'a missing label',
      { persistentVolumeClaim: { claimName: 'c' } },
      {},
      { 'persistentvolumeclaims/here/c': bare() },
      `unable to find required ${NAME} label on the volume`,
      true,
    ],
    [
      'an unsupported source',
      dv,
      template({ source: { http: {} } }),
      {},
      'unable to infer defaults from DataVolumeSpec as DataVolumeSource is not supported',
      true,
    ],
    [
      'an unsupported source kind',
      dv,
      template({ sourceRef: { kind: 'Foo', name: 'x' } }),
      {},
      'unable to infer defaults from DataVolumeSourceRef as Kind Foo is not supported',
      true,
    ],
    [
      'a DataSource without a source',
      dv,
      template({ sourceRef: { kind: 'DataSource', name: 'ds' } }),
      { 'datasources/here/ds': bare({ source: {} }) },
      "unable to infer defaults from DataSource that doesn't provide DataVolumeSourcePVC",
      true,
    ],
    [
      'a missing claim',
      { persistentVolumeClaim: { claimName: 'c' } },
      {},
      {},
      'persistentvolumeclaims "c" not found',
      false,
    ],
    [
      'a missing DataSource',
      dv,
      template({ sourceRef: { kind: 'DataSource', name: 'ds' } }),
      {},
      'datasources.cdi.kubevirt.io "ds" not found',
      false,
    ],
  ];
  for (const [name, volume, more, world, error, ignorable] of failures) {
    it(`refuses ${name}`, async () => assert.equal((await run(vmWith(volume, more), world)).error, error));
    it(`${ignorable ? 'ignores' : 'still refuses'} ${name} when that is requested`, async () => {
      const vm = vmWith(volume, more, 'Ignore');
      assert.equal((await run(vm, world)).error, ignorable ? undefined : error);
      assert.equal(vm.spec.instancetype === undefined, ignorable);
    });
  }
  it('refuses a volume that is not there, whatever the policy', async () => {
    const vm = machine({ instancetype: { inferFromVolume: 'v', inferFromVolumeFailurePolicy: 'Ignore' } });
    assert.equal((await run(vm, {})).error, 'unable to find volume v to infer defaults');
  });
  // Compat KubeVirt's API, P1, yes: inference from claims; DataVolumes, DataSources and failure policies
  it('takes the memory away that was meant for a failed inference', async () => {
    const vm = vmWith({ persistentVolumeClaim: { claimName: 'c' } }, {}, 'Ignore');
    await run(vm, { 'persistentvolumeclaims/here/c': labelled });
    assert.equal(vm.spec.template.spec?.domain.memory, undefined);
  });
});

describe('validation of the kinds', () => {
  const instancetypes: [InstancetypeSpec, string[]][] = [
    [{ cpu: { guest: 1 }, memory: { guest: '1Gi', overcommitPercent: 100 } }, []],
    [
      { cpu: { guest: 1 }, memory: { guest: '1Gi', overcommitPercent: 101 } },
      ["spec.memory.overcommitPercent '101': must be in range between 0 and 100."],
    ],
    [
      { cpu: { guest: 1 }, memory: { guest: '1Gi', overcommitPercent: 15, hugepages: {} } },
      ['spec.memory.overcommitPercent and spec.memory.hugepages should not be requested together.'],
    ],
  ];
  for (const [spec, expected] of instancetypes)
    it(JSON.stringify(spec.memory), () =>
      assert.deepEqual(
        validateInstancetypeSpec(spec).map(({ detail }) => detail),
        expected,
      ),
    );
  const preferences: [unknown, string[]][] = [
    [{ preferredCPUTopology: 'preferAny' }, []],
    [{ preferredCPUTopology: 'sideways' }, ['spec.cpu.preferredCPUTopology unknown preferredCPUTopology sideways']],
    [{ preferredCPUTopology: 'sockets', spreadOptions: { across: 'Nothing' } }, []],
    [
      { preferredCPUTopology: 'spread', spreadOptions: { across: 'Nothing' } },
      ['spec.cpu.spreadOptions.across across Nothing is not supported'],
    ],
    [{ preferredCPUTopology: 'spread', spreadOptions: { across: 'CoresThreads', ratio: 2 } }, []],
    [
      { preferredCPUTopology: 'preferSpread', spreadOptions: { across: 'CoresThreads', ratio: 4 } },
      [
        'spec.cpu.spreadOptions.ratio only a ratio of 2 (1 core 2 threads) is allowed when spreading vCPUs over cores and threads',
      ],
    ],
  ];
  for (const [cpu, expected] of preferences)
    it(JSON.stringify(cpu), () =>
      assert.deepEqual(
        validatePreferenceSpec({ cpu } as PreferenceSpec).map(({ field, detail }) => `${field} ${detail}`),
        expected,
      ),
    );
  it('warns of what is deprecated', () => {
    assert.deepEqual(preferenceWarnings({ cpu: { preferredCPUTopology: 'preferCores' } }), [
      'PreferredCPUTopology preferCores is deprecated for removal in a future release, please use cores instead',
    ]);
    assert.deepEqual(preferenceWarnings({ cpu: { preferredCPUTopology: 'cores' } }), []);
    const spec: InstancetypeSpec = { cpu: { guest: 1 }, memory: { guest: 1 }, launchSecurity: {} };
    assert.equal(instancetypeWarnings(spec).length, 1);
  });
});
