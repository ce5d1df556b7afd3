/** Instance types and preferences on a real API server with the real VirtualMachine controller; no node. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const TYPES = '/apis/instancetype.kubevirt.io/v1beta1';
const REVISIONS = '/apis/apps/v1/namespaces/default/controllerrevisions';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const WAIT = { timeout: 600_000 };

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

const instancetype = (name: string, spec: object, kind = 'VirtualMachineInstancetype') => ({
  apiVersion: 'instancetype.kubevirt.io/v1beta1',
  kind,
  metadata: { name },
  spec,
});
const small = { cpu: { guest: 2 }, memory: { guest: '64Mi' } };
const vm = (name: string, spec: object = {}, template: object = {}) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name },
  spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} }, ...template } }, ...spec },
});
const named = (name: string) => ({ kind: 'VirtualMachineInstancetype', name });
const preferred = (name: string) => ({ kind: 'VirtualMachinePreference', name });

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
  await plane.run(['vm'], { rootCa: '' });
});
after(() => plane.stop());

const refused = async (line: string, body?: unknown): Promise<Any> => {
  const answer = await plane.ask(line, { as: ['admin', 'system:masters'], ...(body !== undefined && { body }) });
  assert.ok(answer.status >= 400, `${line} was accepted`);
  return answer.json;
};
const getVm = (name: string): Promise<Any> => plane.admin(`GET ${VMS}/${name}`);
const patchVm = (name: string, body: unknown): Promise<Any> => plane.admin(`PATCH ${VMS}/${name}`, body);
const captured = (name: string): Promise<Any> =>
  eventually(
    () => getVm(name),
    ({ spec, status }) =>
      (spec.instancetype === undefined || status?.instancetypeRef?.controllerRevisionRef) &&
      (spec.preference === undefined || status?.preferenceRef?.controllerRevisionRef),
  );
const failure = (name: string, reason: string): Promise<Any> =>
  eventually(
    async () => (await getVm(name)).status?.conditions?.find(({ type }: Any) => type === 'Failure'),
    (found) => found?.reason === reason,
  );
const started = (name: string): Promise<Any> =>
  eventually(
    async () => (await plane.ask(`GET ${VMIS}/${name}`, { as: ['admin', 'system:masters'] })).json,
    (found) => found.kind === 'VirtualMachineInstance',
  );
const revisionsOf = async (name: string): Promise<Any[]> =>
  (await plane.admin(`GET ${REVISIONS}`)).items.filter(
    ({ metadata }: Any) =>
      metadata.ownerReferences?.[0]?.name === name && !metadata.name.startsWith('revision-start-vm-'),
  );

describe('admission', WAIT, () => {
  // Compat KubeVirt's API, P1, yes: the four kinds of instancetype.kubevirt.io: rules and warnings
  it('validates the four kinds', async () => {
    const wrong = instancetype('wrong', { ...small, memory: { guest: '1Gi', overcommitPercent: 10, hugepages: {} } });
    const answer = await refused(`POST ${TYPES}/namespaces/default/virtualmachineinstancetypes`, wrong);
    assert.equal(answer.code, 422);
    assert.match(answer.message, /virtualmachineinstancetype-validator\.instancetype\.kubevirt\.io/);
    const preference = instancetype('wrong', { cpu: { preferredCPUTopology: 'diagonal' } }, 'VirtualMachinePreference');
    const causes = (await refused(`POST ${TYPES}/namespaces/default/virtualmachinepreferences`, preference)).details;
    assert.equal(causes.causes[0].field, 'spec.cpu.preferredCPUTopology');
    const old = await plane.ask(`POST ${TYPES}/virtualmachineclusterpreferences`, {
      as: ['admin', 'system:masters'],
      body: instancetype('old', { cpu: { preferredCPUTopology: 'preferCores' } }, 'VirtualMachineClusterPreference'),
    });
    assert.match(old.headers['warning'] ?? '', /preferCores is deprecated/);
  });

  // Compat KubeVirt's API, P0, yes: matchers: rules, conflicts with every field path
  it('refuses matchers that are not well-formed, and conflicts with every field path', async () => {
    await plane.admin(`POST ${TYPES}/namespaces/default/virtualmachineinstancetypes`, instancetype('checked', small));
    assert.deepEqual((await refused(`POST ${VMS}`, vm('a', { instancetype: {} }))).details.causes, [
      {
        reason: 'FieldValueNotFound',
        message: 'Either Name or InferFromVolume should be provided within the instancetype matcher',
        field: 'spec.instancetype',
      },
    ]);
    const own = { domain: { devices: {}, cpu: { cores: 2, threads: 1 }, memory: { guest: '1Gi' } } };
    const answer = await refused(`POST ${VMS}`, vm('a', { instancetype: named('checked') }, own));
    assert.equal(answer.code, 422);
    assert.deepEqual(
      answer.details.causes.map(({ field }: Any) => field),
      ['cpu.cores', 'cpu.threads', 'memory.guest'].map((field) => `spec.template.spec.domain.${field}`),
    );
  });

  // S-179
  // Compat KubeVirt's API, P1, yes: requirements of a preference
  it('asks what a preference requires', async () => {
    const preference = { requirements: { cpu: { guest: 4 } } };
    await plane.admin(
      `POST ${TYPES}/namespaces/default/virtualmachinepreferences`,
      instancetype('hungry', preference, 'VirtualMachinePreference'),
    );
    const answer = await refused(
      `POST ${VMS}`,
      vm('a', { instancetype: named('checked'), preference: preferred('hungry') }),
    );
    assert.match(answer.message, /failure checking preference requirements: insufficient CPU resources of 2 vCPU/);
    assert.equal(answer.details.causes[0].field, 'spec.instancetype');
  });

  // S-179: Instance types and preferences are inferred from the labels of volumes, requirements are checked, and
  //   presets are applied to new instances.
  it('infers both from the labels of a claim', async () => {
    await plane.admin('POST /api/v1/namespaces/default/persistentvolumeclaims', {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: 'labelled',
        labels: {
          'instancetype.kubevirt.io/default-instancetype': 'checked',
          'instancetype.kubevirt.io/default-instancetype-kind': 'VirtualMachineInstancetype',
        },
      },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    const volumes = { volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'labelled' } }] };
    const inferred = vm('inferred', { instancetype: { inferFromVolume: 'root' } }, volumes);
    const made = await plane.admin(`POST ${VMS}`, inferred);
    assert.deepEqual(made.spec.instancetype, named('checked'));
    const answer = await refused(`POST ${VMS}`, vm('b', { preference: { inferFromVolume: 'root' } }, volumes));
    assert.equal(answer.code, 400);
    assert.match(answer.message, /unable to find required instancetype\.kubevirt\.io\/default-preference label/);
    const matcher = { inferFromVolume: 'root', inferFromVolumeFailurePolicy: 'Ignore' };
    assert.equal(
      (await plane.admin(`POST ${VMS}`, vm('b', { preference: matcher }, volumes))).spec.preference,
      undefined,
    );
    assert.match(
      (await refused(`POST ${VMS}`, vm('c', { preference: { inferFromVolume: 'no' } }))).message,
      /volume no/,
    );
  });

  // Compat KubeVirt's API, P1, yes: architecture, machine type and storage class of a preference are kept in the
  //   machine
  it('keeps machine type and architecture of a preference in the machine', async () => {
    await plane.admin(
      `POST ${TYPES}/namespaces/default/virtualmachinepreferences`,
      instancetype('old-machine', { machine: { preferredMachineType: 'pc-q35-6.2' } }, 'VirtualMachinePreference'),
    );
    const made = await plane.admin(`POST ${VMS}`, vm('machine', { preference: preferred('old-machine') }));
    assert.equal(made.spec.template.spec.domain.machine.type, 'pc-q35-6.2');
  });

  // S-179
  // Compat KubeVirt's API, P2, yes: VirtualMachineInstancePreset
  it('applies presets to new instances, warns, and refuses presets that contradict each other', async () => {
    const preset = (name: string, model: string) => ({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstancePreset',
      metadata: { name },
      spec: { selector: { matchLabels: { flavour: 'mint' } }, domain: { devices: {}, cpu: { model } } },
    });
    const path = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancepresets';
    await plane.admin(`POST ${path}`, preset('first', 'Nehalem'));
    const instance = (name: string, domain: object = {}) => ({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name, labels: { flavour: 'mint' } },
      spec: { domain: { devices: {}, memory: { guest: '64Mi' }, ...domain } },
    });
    const answer = await plane.ask(`POST ${VMIS}`, { as: ['admin', 'system:masters'], body: instance('with-preset') });
    assert.match(answer.headers['warning'] ?? '', /VirtualMachineInstancePresets is now deprecated/);
    const made = answer.json;
    assert.equal(made.spec.domain.cpu.model, 'Nehalem');
    assert.equal(made.metadata.annotations['virtualmachinepreset.kubevirt.io/first'], 'kubevirt.io/v1');
    const own = await plane.ask(`POST ${VMIS}`, {
      as: ['admin', 'system:masters'],
      body: instance('own', { cpu: { model: 'Penryn' } }),
    });
    assert.equal(own.status, 201);
    assert.match(own.headers['warning'] ?? '', /Unable to apply VirtualMachineInstancePreset 'first'/);
    await plane.admin(`POST ${path}`, preset('second', 'Penryn'));
    const torn = await refused(`POST ${VMIS}`, instance('torn'));
    assert.equal(torn.code, 422);
    assert.match(torn.message, /presets 'second' and 'first' conflict|presets 'first' and 'second' conflict/);
    for (const name of ['first', 'second']) await plane.admin(`DELETE ${path}/${name}`);
  });
});

describe('captured copies', WAIT, () => {
  before(async () => {
    const { admin } = plane;
    await admin(`POST ${TYPES}/namespaces/default/virtualmachineinstancetypes`, instancetype('kept', small));
    const likes = { devices: { preferredDiskBus: 'virtio', preferredInputBus: 'virtio' } };
    await admin(
      `POST ${TYPES}/namespaces/default/virtualmachinepreferences`,
      instancetype('liked', likes, 'VirtualMachinePreference'),
    );
  });

  // Compat KubeVirt's API, P0, yes: ControllerRevisions: name, data, labels, owner, status references
  it('are made with the machine, in one commit, and named in its status', async () => {
    const matchers = { instancetype: named('kept'), preference: preferred('liked') };
    const writes = plane.plane.store.stats();
    const made = await plane.admin(`POST ${VMS}`, vm('copies', matchers));
    const copies = await revisionsOf('copies');
    assert.equal(copies.length, 2, 'before any controller saw the machine');
    assert.ok(plane.plane.store.stats().writes - writes.writes >= 3);
    const type = await plane.admin(`GET ${TYPES}/namespaces/default/virtualmachineinstancetypes/kept`);
    const { uid, generation } = type.metadata;
    const copy = copies.find(({ metadata }) => metadata.name.includes('kept'));
    assert.equal(copy.metadata.name, `copies-kept-v1beta1-${uid}-${generation}`);
    assert.deepEqual(copy.metadata.ownerReferences, [
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        name: 'copies',
        uid: made.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
    const { status } = await captured('copies');
    assert.deepEqual(status.instancetypeRef, {
      name: 'kept',
      kind: 'VirtualMachineInstancetype',
      controllerRevisionRef: { name: copy.metadata.name },
      resources: status.instancetypeRef.resources,
    });
    assert.equal((await revisionsOf('copies')).length, 2, 'once');
  });

  // S-176
  it('are not made in a dry run or for a machine that is refused', async () => {
    await plane.admin(`POST ${VMS}?dryRun=All`, vm('dry', { instancetype: named('kept') }));
    await refused(`POST ${VMS}`, vm('copies', { instancetype: named('kept') }));
    assert.equal((await revisionsOf('dry')).length, 0);
    assert.equal((await revisionsOf('copies')).length, 2);
  });

  // S-177: A machine starts though the source of its copies is gone; a lost copy comes back while the source is the
  //   same, and its absence is a condition otherwise; clearing `revisionName` alone resolves a pinned copy that is
  //   missing, and one that comes or goes is noticed at once.
  it('start the machine when what they were taken from is gone', async () => {
    await plane.admin(`POST ${TYPES}/namespaces/default/virtualmachineinstancetypes`, instancetype('brief', small));
    await plane.admin(`POST ${VMS}`, vm('survivor', { instancetype: named('brief') }));
    await plane.admin(`DELETE ${TYPES}/namespaces/default/virtualmachineinstancetypes/brief`);
    await patchVm('survivor', { spec: { runStrategy: 'Always' } });
    const { metadata, spec } = await started('survivor');
    assert.equal(metadata.annotations['kubevirt.io/instancetype-name'], 'brief');
    assert.equal(spec.domain.memory.guest, '64Mi');
    assert.equal(spec.domain.cpu.sockets, 2);
    await captured('survivor');
  });

  // S-177
  // Compat KubeVirt's API, P0, yes: a missing instance type, preference or copy is a condition, not a refusal
  it('come back while the source is the same, and their absence is a condition otherwise', async () => {
    await plane.admin(`POST ${TYPES}/namespaces/default/virtualmachineinstancetypes`, instancetype('again', small));
    await plane.admin(`POST ${VMS}`, vm('rebuilt', { instancetype: named('again') }));
    const name = (await captured('rebuilt')).status.instancetypeRef.controllerRevisionRef.name;
    await plane.admin(`DELETE ${REVISIONS}/${name}`);
    await eventually(
      () => revisionsOf('rebuilt'),
      ({ length }) => length === 1,
    );

    await plane.admin(`DELETE ${TYPES}/namespaces/default/virtualmachineinstancetypes/again`);
    await plane.admin(`DELETE ${REVISIONS}/${name}`);
    const { message } = await failure('rebuilt', 'FailedFindInstancetype');
    assert.equal(message, `controllerrevisions.apps "${name}" not found`);
    // It can be changed, it is not started, and another matcher ends it.
    await patchVm('rebuilt', { metadata: { labels: { a: 'b' } }, spec: { runStrategy: 'Always' } });
    assert.equal((await plane.ask(`GET ${VMIS}/rebuilt`, { as: ['admin', 'system:masters'] })).status, 404);
    await patchVm('rebuilt', { spec: { instancetype: named('kept') } });
    const { spec } = await started('rebuilt');
    assert.equal(spec.domain.cpu.sockets, 2);
    await eventually(
      () => getVm('rebuilt'),
      ({ status }) => status.conditions.every(({ type }: Any) => type !== 'Failure'),
    );
  });

  // S-177
  // Compat KubeVirt's API, P1, yes: `revisionName` wins
  it('that a machine names itself win, and a missing one is no deadlock', async () => {
    const matcher = { ...named('kept'), revisionName: 'nowhere' };
    await plane.admin(`POST ${VMS}`, vm('pinned', { instancetype: matcher }));
    assert.equal(
      (await failure('pinned', 'FailedFindInstancetype')).message,
      'controllerrevisions.apps "nowhere" not found',
    );
    await patchVm('pinned', { spec: { instancetype: { revisionName: null } } });
    await plane.admin(`PATCH ${VMS}/pinned/status`, { status: { instancetypeRef: null } });
    await captured('pinned');
    await eventually(
      () => getVm('pinned'),
      ({ status }) => status.conditions.every(({ type }: Any) => type !== 'Failure'),
    );
    await plane.admin(`POST ${VMS}`, vm('freed', { instancetype: matcher }));
    await failure('freed', 'FailedFindInstancetype');
    await patchVm('freed', { spec: { instancetype: { revisionName: null } } });
    await captured('freed');
    // So it is with one that was in force until it was deleted.
    const copy = (await captured('pinned')).status.instancetypeRef.controllerRevisionRef.name;
    await patchVm('freed', { spec: { instancetype: { revisionName: copy } } });
    await eventually(
      () => getVm('freed'),
      ({ status }) => status.instancetypeRef.controllerRevisionRef?.name === copy,
    );
    await plane.admin(`DELETE ${VMS}/pinned`);
    await plane.admin(`DELETE ${REVISIONS}/${copy}`);
    await failure('freed', 'FailedFindInstancetype');
    await patchVm('freed', { spec: { instancetype: { revisionName: null } } });
    await eventually(
      () => getVm('freed'),
      ({ status }) => status.instancetypeRef.controllerRevisionRef?.name.startsWith('freed-'),
    );
    await plane.admin(`POST ${VMS}`, vm('doomed', { instancetype: matcher }));
    await failure('doomed', 'FailedFindInstancetype');
    await plane.admin(`DELETE ${VMS}/doomed`);
    await eventually(
      () => plane.ask(`GET ${VMS}/doomed`, { as: ['admin', 'system:masters'] }),
      ({ status }) => status === 404,
    );
  });

  const copyOf = (owner: Any, name: string, data: object) => ({
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name,
      labels: { 'instancetype.kubevirt.io/object-name': 'kept' },
      ownerReferences: [
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          name: owner.name,
          uid: owner.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    data,
    revision: 0,
  });
  const oldData = {
    apiVersion: 'instancetype.kubevirt.io/v1alpha2',
    kind: 'VirtualMachineInstancetype',
    metadata: { name: 'kept', uid: 'u-old', generation: 7 },
    spec: small,
  };
  const pointTo = (name: string, copy: string): Promise<Any> =>
    plane.admin(`PATCH ${VMS}/${name}/status`, {
      status: { instancetypeRef: { ...named('kept'), controllerRevisionRef: { name: copy } } },
    });

  // S-177
  // Compat KubeVirt's API, P1, yes: copies of older versions are read and renewed
  it('written by older releases are renewed', async () => {
    await plane.admin(`POST ${VMS}`, vm('older', { instancetype: named('kept') }));
    const { metadata } = await captured('older');
    await plane.admin(`POST ${REVISIONS}`, copyOf(metadata, 'older-kept', oldData));
    await pointTo('older', 'older-kept');
    await eventually(
      () => getVm('older'),
      ({ status }) => status.instancetypeRef?.controllerRevisionRef?.name?.endsWith('-u-old-7'),
    );
    await eventually(
      () => revisionsOf('older'),
      (all) => all.every(({ metadata: { name } }) => name !== 'older-kept'),
    );
  });

  // S-404: The copy that `controllerRevisionRef` of the status names is in force, whoever set it, and renewed when it
  //   is old.
  it('that an upgrade tool set stay, and are renewed where nothing says their version', async () => {
    for (const name of ['upgraded', 'unlabelled'])
      await plane.admin(`POST ${VMS}`, vm(name, { instancetype: named('kept') }));
    const current = await captured('upgraded');
    const [first] = await revisionsOf('upgraded');
    // Of another object by its labels, and of the newest version.
    const labels = { ...first.metadata.labels, 'instancetype.kubevirt.io/object-name': 'something-else' };
    const other = { ...first, metadata: { ...copyOf(current.metadata, 'set-by-a-tool', oldData).metadata, labels } };
    await plane.admin(`POST ${REVISIONS}`, other);
    const setTo = (name: string, copy: string): Promise<Any> =>
      plane.admin(`PATCH ${VMS}/${name}/status`, {
        status: { instancetypeRef: { controllerRevisionRef: { name: copy } } },
      });
    await setTo('upgraded', 'set-by-a-tool');

    const bare = copyOf((await captured('unlabelled')).metadata, 'without-labels', oldData);
    const before = (await revisionsOf('unlabelled')).map(({ metadata }: Any) => metadata.name);
    await plane.admin(`POST ${REVISIONS}`, { ...bare, metadata: { ...bare.metadata, labels: {} } });
    await setTo('unlabelled', 'without-labels');
    const renewed = await eventually(
      () => getVm('unlabelled'),
      ({ status }) => status.instancetypeRef?.controllerRevisionRef?.name?.endsWith('-u-old-7'),
    );
    const made = await plane.admin(`GET ${REVISIONS}/${renewed.status.instancetypeRef.controllerRevisionRef.name}`);
    assert.equal(made.metadata.labels['instancetype.kubevirt.io/object-version'], 'v1beta1');
    const names = await eventually(
      async () => (await revisionsOf('unlabelled')).map(({ metadata }: Any) => metadata.name),
      (all) => !all.includes('without-labels'),
    );
    assert.deepEqual(
      names.filter((name: string) => name !== made.metadata.name),
      before,
    );
    // The controller has been at it since: the renewal came later.
    assert.equal((await getVm('upgraded')).status.instancetypeRef.controllerRevisionRef.name, 'set-by-a-tool');
  });

  // S-243: A captured copy that cannot be renewed says so, and stays.
  it('that cannot be renewed say so, and stay', async () => {
    await plane.admin(`POST ${VMS}`, vm('torn', { instancetype: named('kept') }));
    const { metadata } = await captured('torn');
    const taken = 'torn-kept-v1beta1-u-old-7';
    const other = { ...oldData, spec: { ...small, cpu: { guest: 9 } } };
    await plane.admin(`POST ${REVISIONS}`, copyOf(metadata, 'torn-old', oldData));
    await plane.admin(`POST ${REVISIONS}`, copyOf(metadata, taken, other));
    await pointTo('torn', 'torn-old');
    assert.equal(
      (await failure('torn', 'FailedCreate')).message,
      `error encountered while upgrading instancetype.kubevirt.io controllerRevisions: found existing ControllerRevision with unexpected data: ${taken}`,
    );
    assert.equal((await getVm('torn')).status.instancetypeRef.controllerRevisionRef.name, 'torn-old');
  });
});

describe('a change of mind', WAIT, () => {
  const restart = async (name: string): Promise<boolean> =>
    (await getVm(name)).status.conditions.some(({ type }: Any) => type === 'RestartRequired');

  // S-178: Another instance type asks for a restart when more than amounts differ; the reference policies expand and
  //   remove references and copies.
  // Compat KubeVirt's API, P1, yes: another instance type, or an equivalent one, while the guest runs
  it('asks for a restart when more than amounts differ, and not for an equivalent instance type', async () => {
    for (const [name, more] of [
      ['twin-a', {}],
      ['twin-b', {}],
      ['bigger', { ioThreadsPolicy: 'auto' }],
    ] as const)
      await plane.admin(
        `POST ${TYPES}/namespaces/default/virtualmachineinstancetypes`,
        instancetype(name, { ...small, cpu: { guest: 2 }, ...more }),
      );
    await plane.admin(`POST ${VMS}`, vm('mind', { runStrategy: 'Always', instancetype: named('twin-a') }));
    await started('mind');
    const moved = (name: string) =>
      eventually(
        () => getVm('mind'),
        ({ status }) => status?.instancetypeRef?.controllerRevisionRef?.name.includes(name),
      );
    await moved('twin-a');
    await patchVm('mind', { spec: { instancetype: named('twin-b') } });
    await moved('twin-b');
    assert.equal(await restart('mind'), false);
    await patchVm('mind', { spec: { instancetype: named('bigger') } });
    await moved('bigger');
    await eventually(
      () => restart('mind'),
      (yes) => yes,
    );
    await patchVm('mind', { spec: { instancetype: named('twin-b') } });
    await eventually(
      () => restart('mind'),
      (yes) => !yes,
    );
  });

  it('leaves no reference to a preference that was taken away', async () => {
    await plane.admin(`POST ${VMS}`, vm('unloved', { preference: preferred('liked') }));
    await captured('unloved');
    await patchVm('unloved', { spec: { preference: null } });
    await eventually(
      () => getVm('unloved'),
      ({ status }) => status.preferenceRef === undefined,
    );
  });
});

describe('the reference policy', WAIT, () => {
  const policy = (referencePolicy: string | null) =>
    plane.admin(`PATCH ${KUBEVIRT}`, {
      spec: { configuration: { instancetype: referencePolicy && { referencePolicy } } },
    });

  // S-178
  // Compat KubeVirt's API, P1, yes: `referencePolicy` reference, expand, expandAll
  it('expand puts the amounts into new machines, expandAll into captured ones, and copies go', async () => {
    await plane.admin(`POST ${VMS}`, vm('captured', { runStrategy: 'Always', instancetype: named('kept') }));
    await started('captured');
    await captured('captured');
    await policy('expand');
    await plane.admin(`POST ${VMS}`, vm('expanded', { instancetype: named('kept'), preference: preferred('liked') }));
    const { spec, status } = await eventually(
      () => getVm('expanded'),
      (found) => found.spec.instancetype === undefined,
    );
    assert.equal(spec.preference, undefined);
    assert.equal(spec.template.spec.domain.memory.guest, '64Mi');
    assert.equal(spec.template.spec.domain.cpu.sockets, 2);
    assert.equal(status?.instancetypeRef, undefined);
    assert.deepEqual(await revisionsOf('expanded'), []);
    assert.notEqual((await getVm('captured')).spec.instancetype, undefined);

    await policy('expandAll');
    await patchVm('captured', { metadata: { labels: { look: 'again' } } });
    const after = await eventually(
      () => getVm('captured'),
      (found) => found.spec.instancetype === undefined && found.status.instancetypeRef === undefined,
    );
    assert.deepEqual(await revisionsOf('captured'), []);
    await patchVm('captured', { metadata: { labels: { look: 'twice' } } });
    const later = await eventually(
      () => getVm('captured'),
      ({ status: { observedGeneration } }) => observedGeneration === after.metadata.generation,
    );
    assert.ok(
      later.status.conditions.every(({ type }: Any) => type !== 'RestartRequired'),
      'what runs is what is written',
    );
    await policy(null);
  });
});

describe('expansion over the API', WAIT, () => {
  const EXPAND = '/apis/subresources.kubevirt.io';

  for (const version of ['v1', 'v1alpha3']) {
    // S-242: `expand-vm-spec` takes what Go clients send, and names each unknown field.
    // Compat KubeVirt's API, P1, yes: `expand-spec`, `expand-vm-spec`: as Go clients send and read them, each unknown
    //   field named
    it(`${version}: expand-spec of a machine, expand-vm-spec of one that is sent`, async () => {
      const matchers = { instancetype: named('kept'), preference: preferred('liked') };
      const name = `expand-${version}`;
      await plane.admin(`POST ${VMS}`, vm(name, matchers));
      const byName = await plane.admin(
        `GET ${EXPAND}/${version}/namespaces/default/virtualmachines/${name}/expand-spec`,
      );
      assert.equal(byName.spec.instancetype, undefined);
      assert.equal(byName.spec.template.spec.domain.cpu.sockets, 2);
      const path = `PUT ${EXPAND}/${version}/namespaces/default/expand-vm-spec`;
      const sent = await plane.admin(
        path,
        vm('sent', matchers, { volumes: [{ name: 'a', emptyDisk: { capacity: '1Mi' } }] }),
      );
      assert.equal(sent.spec.template.spec.domain.memory.guest, '64Mi');
      assert.equal(sent.spec.template.spec.domain.devices.disks[0].disk.bus, 'virtio');
      assert.equal(sent.metadata.namespace, 'default');

      const missing = await refused(path, vm('sent', { instancetype: named('nobody') }));
      assert.equal(missing.code, 400);
      assert.equal(missing.message, 'virtualmachineinstancetypes.instancetype.kubevirt.io "nobody" not found');
      const conflict = { domain: { devices: {}, memory: { guest: '1Gi' } } };
      const answer = await refused(path, vm('sent', { instancetype: named('kept') }, conflict));
      assert.equal(
        answer.message,
        'VM field(s) spec.template.spec.domain.memory.guest conflicts with selected instance type',
      );
      const elsewhere = { ...vm('sent', matchers), metadata: { name: 'sent', namespace: 'kube-system' } };
      assert.equal((await refused(path, elsewhere)).message, 'VM namespace must be empty or default');
      assert.equal((await refused(path)).message, 'empty request body');
      assert.equal((await refused(path, { kind: 'VirtualMachine' })).message, 'Object is not a valid VirtualMachine');
      assert.equal((await refused(path, [])).code, 400);
      const bare = { ...vm('sent', matchers), spec: { ...matchers, runStrategy: 'Halted', template: {} } };
      assert.equal((await plane.admin(path, bare)).spec.template.spec.domain.cpu.sockets, 2);
      const go = { metadata: { name: 'sent', creationTimestamp: null, annotations: null }, status: {} };
      const meta = { metadata: { creationTimestamp: null } };
      const typed = { ...vm('sent', matchers), ...go };
      const fromGo = await plane.admin(path, {
        ...typed,
        spec: { ...typed.spec, template: { ...typed.spec.template, ...meta } },
      });
      assert.deepEqual(fromGo.metadata, { name: 'sent', namespace: 'default' });
      assert.deepEqual(fromGo.spec.template.metadata, {});
      const wrong: [template: object, top: object, causes: string[]][] = [
        [{ domain: 'none' }, {}, ['spec.template.spec.domain in body must be of type object: "string"']],
        [{ volumes: [{}] }, {}, ['spec.template.spec.volumes[0].name in body is required']],
        [
          { colour: 'blue', domain: { devices: {}, shape: 'round' } },
          { very: 'unknown', status: { strange: true } },
          ['spec.template.spec.colour', 'spec.template.spec.domain.shape', '.very'].map(
            (field) => `${field} in body is a forbidden property`,
          ),
        ],
      ];
      for (const [template, top, causes] of wrong) {
        const { details } = await refused(path, { ...vm('sent', matchers, template), ...top });
        assert.deepEqual(
          details.causes.map(({ message }: Any) => message),
          causes,
        );
      }
      const gone = `GET ${EXPAND}/${version}/namespaces/default/virtualmachines/nobody/expand-spec`;
      assert.equal((await refused(gone)).message, 'virtualmachine.kubevirt.io "nobody" not found');
    });
  }

  it('of a machine whose instance type is missing is an internal error', async () => {
    await plane.admin(`POST ${VMS}`, vm('lost', { instancetype: named('nobody') }));
    const answer = await refused(`GET ${EXPAND}/v1/namespaces/default/virtualmachines/lost/expand-spec`);
    assert.equal(answer.code, 500);
    assert.match(answer.message, /"nobody" not found/);
    await failure('lost', 'FailedFindInstancetype');
    await plane.admin(`POST ${TYPES}/namespaces/default/virtualmachineinstancetypes`, instancetype('nobody', small));
    await captured('lost');
  });
});
