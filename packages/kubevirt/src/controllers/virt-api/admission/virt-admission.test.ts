import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { decodeBase64 } from '../../../../../apimachinery/src/meta/base64.ts';
import type { KubeObject } from '../../../../../apimachinery/src/meta/object.ts';
import { ApiError, notFound } from '../../../../../apimachinery/src/meta/status.ts';
import { applyJsonPatch } from '../../../../../apimachinery/src/patch/json-patch.ts';
import { pruneUnknown } from '../../../../../apimachinery/src/schema/prune.ts';
import { validateSchema } from '../../../../../apimachinery/src/schema/validate.ts';
import type { Client } from '../../../../../client/src/client.ts';
import { NEVER } from '../../../../../runtime/src/http/seam.ts';
import { kubevirtResources, type VirtualMachine, type VirtualMachineInstance } from '../../../kinds/kubevirt.ts';
import { legacyFirmwareUuid } from '../../../rules/identity/firmware-identity.ts';
import { clusterConfigOf } from '../../../rules/machine-defaults/cluster-config.ts';
import { defaultKubeVirt } from '../default-kubevirt.ts';
import {
  type VirtAdmission,
  type VirtAdmissionOptions,
  type VirtAdmissionRequest,
  virtAdmission,
} from './virt-admission.ts';
import { createVirtApiWebhooks } from './webhook-server.ts';

const user = { username: 'alice', groups: ['system:authenticated'] };
const controller = { username: 'system:serviceaccount:kubevirt:kubevirt-controller', groups: [] };
const ourConfig = clusterConfigOf(
  defaultKubeVirt({ version: 'v0', now: 0, architecture: 'amd64', useEmulation: true }),
);

/** A client over a fixed set of objects. */
function clientOf(...objects: KubeObject[]): Client {
  const of = (kind: string) => objects.filter((object) => object.kind === kind);
  return {
    get: (type: { kind: string; group: string; resource: string }, key: { name: string }) => {
      const found = of(type.kind).find(({ metadata }) => metadata.name === key.name);
      return found ? Promise.resolve(found) : Promise.reject(notFound(type, key.name));
    },
    list: (type: { kind: string }) => Promise.resolve({ items: of(type.kind) }),
  } as unknown as Client;
}

function optionsOf(more: Partial<VirtAdmissionOptions> = {}): VirtAdmissionOptions {
  let next = 0;
  return {
    client: clientOf(),
    config: () => ourConfig,
    randomUuid: () => `uuid-${++next}`,
    now: () => 0,
    presets: () => [],
    ...more,
  };
}

/** Mutates where nothing has to be looked up. */
function mutate(admission: VirtAdmission, request: VirtAdmissionRequest): KubeObject {
  const mutated = admission.mutate(request);
  assert.ok(!(mutated instanceof Promise));
  return mutated.object;
}

const requestOf = (object: KubeObject, more: Partial<VirtAdmissionRequest> = {}): VirtAdmissionRequest => ({
  group: 'kubevirt.io',
  resource: `${object.kind.toLowerCase()}s`,
  subresource: '',
  operation: 'CREATE',
  namespace: 'default',
  object,
  old: undefined,
  user,
  ...more,
});

const vmOf = (spec: Partial<VirtualMachine['spec']> = {}): VirtualMachine => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'a', namespace: 'default' },
  spec: {
    runStrategy: 'Halted',
    template: { spec: { domain: { devices: {}, memory: { guest: '1Gi' } } } },
    ...spec,
  },
});
const vmiOf = (spec: Partial<VirtualMachineInstance['spec']> = {}): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'a', namespace: 'default' },
  spec: { domain: { devices: {}, memory: { guest: '1Gi' } }, ...spec },
});

async function refusalOf(run: () => unknown): Promise<ApiError> {
  try {
    await run();
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: 'was not refused' });
}

describe('mutate()', () => {
  const admission = (more?: Partial<VirtAdmissionOptions>) => virtAdmission(optionsOf(more));

  it('gives a new virtual machine identity, architecture and machine type, and nothing else', () => {
    const before = vmOf();
    const vm = mutate(admission(), requestOf(before)) as VirtualMachine;
    assert.deepEqual(vm.spec.template, {
      metadata: { annotations: { 'kubevirt.io/pci-topology-version': 'v3' } },
      spec: {
        architecture: 'amd64',
        domain: {
          devices: {},
          resources: {},
          memory: { guest: '1Gi' },
          machine: { type: 'q35' },
          firmware: { uuid: 'uuid-1', serial: 'uuid-2' },
        },
      },
    });
    assert.deepEqual(before, vmOf(), 'the argument is left alone');
  });
  // S-611
  it('notes how the UUID came to be', () => {
    const noted = (vm: KubeObject) => vm.metadata.annotations?.['coracle.dev/firmware-identity'];
    const template = { spec: { domain: { devices: {}, firmware: { uuid: 'mine' } } } };
    assert.equal(noted(mutate(admission(), requestOf(vmOf()))), 'Generated');
    assert.equal(noted(mutate(admission(), requestOf(vmOf({ template })))), 'Given');
    const pinned = vmOf({ template });
    pinned.metadata.annotations = { 'coracle.dev/firmware-identity': 'Legacy' };
    assert.equal(noted(mutate(admission(), requestOf(pinned))), 'Legacy');
    const old = mutate(admission(), requestOf(vmOf())) as VirtualMachine;
    assert.equal(noted(mutate(admission(), requestOf(vmOf({ template }), { operation: 'UPDATE', old }))), 'Given');
  });
  it('keeps the identity that an update leaves out, but not against a component', () => {
    const old = mutate(admission(), requestOf(vmOf())) as VirtualMachine;
    const update = { operation: 'UPDATE', old } as const;
    const kept = mutate(admission(), requestOf(vmOf(), update)) as VirtualMachine;
    assert.deepEqual(kept.spec.template.spec?.domain.firmware, { uuid: 'uuid-1', serial: 'uuid-2' });
    assert.equal(kept.metadata.annotations?.['coracle.dev/firmware-identity'], 'Generated');
    const trusted = admission({ isTrusted: () => true });
    const restored = mutate(trusted, requestOf(vmOf(), update)) as VirtualMachine;
    assert.equal(restored.spec.template.spec?.domain.firmware, undefined);
  });
  it('gives the instance of a virtual machine without UUID the one of its name', () => {
    const vmi = vmiOf();
    vmi.metadata.ownerReferences = [
      { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'web', uid: 'u', controller: true },
    ];
    const made = mutate(admission(), requestOf(vmi)) as VirtualMachineInstance;
    assert.deepEqual(made.spec.domain.firmware, { uuid: legacyFirmwareUuid('web') });
  });
  it('gives no identity on update', () => {
    const vm = mutate(admission(), requestOf(vmOf(), { operation: 'UPDATE', old: vmOf() })) as VirtualMachine;
    assert.equal(vm.spec.template.spec?.domain.firmware, undefined);
  });
  it('fills in an omitted domain', () => {
    const vm = mutate(admission(), requestOf(vmOf({ template: {} }))) as VirtualMachine;
    assert.deepEqual(vm.spec.template.spec?.domain.devices, {});
  });
  it('gives a new instance a UUID but no serial, a finalizer and its first status', () => {
    const vmi = mutate(admission(), requestOf(vmiOf())) as VirtualMachineInstance;
    assert.deepEqual(vmi.spec.domain.firmware, { uuid: 'uuid-1' });
    assert.deepEqual(vmi.metadata.finalizers, ['kubevirt.io/foregroundDeleteVirtualMachine']);
    assert.deepEqual(vmi.status, {
      phase: 'Pending',
      phaseTransitionTimestamps: [{ phase: 'Pending', phaseTransitionTimestamp: '1970-01-01T00:00:00Z' }],
      runtimeUser: 107,
      guestOSInfo: {},
      memory: { guestAtBoot: '1Gi', guestCurrent: '1Gi', guestRequested: '1Gi' },
      currentCPUTopology: { cores: 1, sockets: 1, threads: 1 },
    });
    assert.deepEqual(vmi.spec.domain.devices.interfaces, [{ name: 'default', masquerade: {} }]);
  });
  it('takes back what a user writes into the status of an instance', () => {
    const old = { ...vmiOf(), status: { phase: 'Running' as const } };
    const object = { ...vmiOf(), status: { phase: 'Failed' as const } };
    const write = { operation: 'UPDATE' as const, old };
    assert.deepEqual((mutate(admission(), requestOf(object, write)) as VirtualMachineInstance).status, old.status);
    const byController = mutate(admission(), requestOf(object, { ...write, user: controller }));
    assert.deepEqual((byController as VirtualMachineInstance).status, object.status);
  });
  it('labels and holds a migration', () => {
    const migration = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { name: 'm' },
      spec: { vmiName: 'a' },
    };
    const { metadata } = mutate(admission(), requestOf(migration));
    assert.deepEqual(metadata.labels, { 'kubevirt.io/vmi-name': 'a' });
    assert.deepEqual(metadata.finalizers, ['kubevirt.io/migrationJobFinalize']);
  });
  it('leaves other groups and subresources alone', () => {
    const vm = vmOf();
    assert.equal(mutate(admission(), requestOf(vm, { subresource: 'status' })), vm);
    assert.equal(mutate(admission(), requestOf(vm, { group: 'example.org' })), vm);
    assert.equal(admission().handles(requestOf(vm, { subresource: 'status' })), false);
    assert.equal(admission().handles(requestOf(vm)), true);
  });
  it('refuses when the settings contradict each other', async () => {
    const config = clusterConfigOf({
      ...defaultKubeVirt({ version: '', now: 0, architecture: 'amd64', useEmulation: false }),
      spec: { configuration: { network: { permitBridgeInterfaceOnPodNetwork: false } } },
    });
    const error = await refusalOf(() => mutate(admission({ config: () => config }), requestOf(vmiOf())));
    assert.equal(error.code, 400);
    assert.match(
      error.message,
      /^admission webhook "virtualmachineinstances-mutator\.kubevirt\.io" denied the request: Bridge/,
    );
  });
});

describe('a refusal', () => {
  it('has the shape of a webhook denial', async () => {
    const vm = vmOf({ running: true, template: { spec: { hostname: 'A_', domain: { devices: {} } } } });
    const error = await refusalOf(() => virtAdmission(optionsOf()).validate(requestOf(vm)));
    assert.equal(error.status.code, 422);
    assert.equal(error.status.reason, 'Invalid');
    assert.deepEqual(
      error.status.details?.causes?.map(({ reason, field }) => [reason, field]),
      [
        ['FieldValueInvalid', 'spec.template.spec.hostname'],
        ['FieldValueInvalid', 'spec.running'],
      ],
    );
    assert.deepEqual(Object.keys(error.status.details ?? {}), ['causes']);
    const messages = error.status.details?.causes?.map(({ message }) => message).join(', ');
    assert.equal(
      error.message,
      `admission webhook "virtualmachine-validator.kubevirt.io" denied the request: ${messages}`,
    );
  });
});

// S-438
describe('rules about virtual machines', () => {
  const template = vmOf().spec.template;
  const dataVolume = (more: object) => ({
    metadata: { name: 'd' },
    spec: { source: { blank: {} }, storage: {}, ...more },
  });
  const withVolume = {
    template: { spec: { domain: { devices: {} }, volumes: [{ name: 'v', dataVolume: { name: 'd' } }] } },
  };
  const cases: [name: string, spec: object, expected: string[]][] = [
    ['a run strategy', { runStrategy: 'Always' }, []],
    ['running alone', { runStrategy: undefined, running: false }, []],
    ['both', { running: true }, ['FieldValueInvalid spec.running']],
    ['neither', { runStrategy: undefined }, ['FieldValueInvalid spec.running']],
    ['an unknown strategy', { runStrategy: 'Sometimes' }, ['FieldValueInvalid spec.runStrategy']],
    ['no template', { template: undefined }, ['FieldValueRequired spec.template']],
    ['a used template of a DataVolume', { ...withVolume, dataVolumeTemplates: [dataVolume({})] }, []],
    ['an unused one', { dataVolumeTemplates: [dataVolume({})] }, ['FieldValueRequired spec.dataVolumeTemplate[0]']],
    [
      'one without a name',
      { ...withVolume, dataVolumeTemplates: [{ ...dataVolume({}), metadata: {} }] },
      ['FieldValueRequired spec.dataVolumeTemplate[0].name'],
    ],
    [
      'one with pvc and storage',
      { ...withVolume, dataVolumeTemplates: [dataVolume({ pvc: {} })] },
      ['FieldValueInvalid spec.dataVolumeTemplate[0].PVC.Storage'],
    ],
    [
      'one without a source',
      { ...withVolume, dataVolumeTemplates: [dataVolume({ source: undefined })] },
      ['FieldValueInvalid spec.dataVolumeTemplate[0].source.sourceRef'],
    ],
    [
      'one without pvc and storage',
      { ...withVolume, dataVolumeTemplates: [dataVolume({ storage: undefined })] },
      ['FieldValueInvalid spec.dataVolumeTemplate[0].PVC.Storage'],
    ],
    [
      'one with an empty source',
      { ...withVolume, dataVolumeTemplates: [dataVolume({ source: {} })] },
      ['FieldValueInvalid spec.dataVolumeTemplate[0].source'],
    ],
    [
      'one with two sources',
      { ...withVolume, dataVolumeTemplates: [dataVolume({ source: { blank: {}, upload: {} } })] },
      ['FieldValueInvalid spec.dataVolumeTemplate[0].source'],
    ],
    [
      'one that somebody else fills and that has a source',
      { ...withVolume, dataVolumeTemplates: [dataVolume({ storage: { dataSource: { kind: 'K', name: 'n' } } })] },
      ['FieldValueInvalid spec.dataVolumeTemplate[0].source'],
    ],
    [
      'one that somebody else fills',
      {
        ...withVolume,
        dataVolumeTemplates: [
          dataVolume({ source: undefined, storage: { dataSourceRef: { kind: 'K', name: 'n', apiGroup: 'g' } } }),
        ],
      },
      [],
    ],
    [
      'one of another namespace',
      { ...withVolume, dataVolumeTemplates: [{ ...dataVolume({}), metadata: { name: 'd', namespace: 'x' } }] },
      ['FieldValueInvalid spec.dataVolumeTemplates[0]'],
    ],
    [
      'more memory than the maximum',
      { template: { spec: { domain: { devices: {}, memory: { guest: '2Gi', maxGuest: '1Gi' } } } } },
      ['FieldValueInvalid spec.template.spec.domain.memory.guest'],
    ],
    [
      'a maximum for less memory than can be plugged',
      { template: { spec: { domain: { devices: {}, memory: { guest: '512Mi', maxGuest: '2Gi' } } } } },
      ['FieldValueInvalid spec.template.spec.domain.memory.guest'],
    ],
    [
      'a reserved label',
      { template: { ...template, metadata: { labels: { 'kubevirt.io/nodeName': 'n' } } } },
      ['FieldValueNotSupported spec.template.metadata.labels'],
    ],
    [
      'a sidecar without its gate',
      { template: { ...template, metadata: { annotations: { 'hooks.kubevirt.io/hookSidecars': '[]' } } } },
      ['FieldValueInvalid spec.template.metadata.annotations'],
    ],
  ];
  for (const [name, spec, expected] of cases) {
    it(`${expected.length === 0 ? 'accept' : 'refuse'} ${name}`, async () => {
      const vm = JSON.parse(JSON.stringify(vmOf(spec))) as VirtualMachine;
      const run = () => virtAdmission(optionsOf()).validate(requestOf(vm));
      if (expected.length === 0) await run();
      else {
        const { causes = [] } = (await refusalOf(run)).status.details ?? {};
        assert.deepEqual(
          causes.map(({ reason, field }) => `${reason} ${field}`),
          expected,
        );
      }
    });
  }

  // S-1330: What a machine asks for of networks and no node does is answered with a warning that names the field, and again by an
  //   event when the guest starts: DHCP on networks of Multus, SR-IOV, fixed PCI addresses, DHCP options, name servers and others.
  it('warn of what of networks is not followed, by its field', async () => {
    const networks = [
      { name: 'pod', pod: {} },
      { name: 'second', multus: { networkName: 'x' } },
      { name: 'first', multus: { networkName: 'x', default: false } },
      { name: 'third', multus: { networkName: 'x' } },
    ];
    const interfaces = [
      { name: 'pod', masquerade: {}, acpiIndex: 7, dhcpOptions: { ntpServers: ['192.0.2.1'] } },
      { name: 'second', bridge: {}, dhcpOptions: { bootFileName: 'b' } },
      { name: 'first', bridge: {} },
      { name: 'third', sriov: {} },
    ];
    const dnsConfig = { nameservers: ['192.0.2.53'], options: [{ name: 'ndots', value: '5' }] };
    const vm = vmOf();
    const { spec } = vm.spec.template;
    const template = { spec: { ...spec, domain: { ...spec?.domain, devices: { interfaces } }, networks, dnsConfig } };
    const asking: VirtualMachine = { ...vm, spec: { ...vm.spec, template } };
    const warned = await virtAdmission(optionsOf()).validate(requestOf(asking));
    const at = 'spec.template.spec';
    assert.deepEqual(warned.warnings, [
      `${at}.domain.devices.interfaces[0].acpiIndex: interface pod: acpiIndex is not supported`,
      `${at}.dnsConfig.options: dnsConfig.options are not passed on by DHCP`,
      `${at}.domain.devices.interfaces[1].dhcpOptions: interface second: nobody answers DHCP on a multus network`,
      `${at}.domain.devices.interfaces[3].sriov: interface third: SR-IOV is not supported; it is left out`,
    ]);
  });

  it('warn of running', async () => {
    const vm = JSON.parse(JSON.stringify(vmOf({ running: false }))) as VirtualMachine;
    delete vm.spec.runStrategy;
    const warningsOf = async (object: VirtualMachine) =>
      (await virtAdmission(optionsOf()).validate(requestOf(object))).warnings;
    assert.deepEqual(await warningsOf(vm), ['spec.running is deprecated, please use spec.runStrategy instead.']);
    assert.deepEqual(await warningsOf(vmOf()), []);
  });
  it('let go what is being deleted', async () => {
    const vm = vmOf({ running: true });
    vm.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    assert.deepEqual(
      await virtAdmission(optionsOf())
        .validate(requestOf(vm, { operation: 'UPDATE', old: vm }))
        .then(() => 'accepted'),
      'accepted',
    );
  });
  it('hold volumes and run strategy still during a snapshot', async () => {
    const old = { ...vmOf(), status: { snapshotInProgress: 's' } };
    const write = (spec: Partial<VirtualMachine['spec']>) =>
      virtAdmission(optionsOf()).validate(
        requestOf({ ...old, spec: { ...old.spec, ...spec } } as VirtualMachine, { operation: 'UPDATE', old }),
      );
    const { template } = old.spec;
    await write({});
    await write({ template: { ...template, metadata: { labels: { a: 'b' } } } });
    const started = await refusalOf(() => write({ runStrategy: 'Always' }));
    assert.match(started.message, /Cannot update vm running state until snapshot "s" completes/);
    const volumes = [{ name: 'more', emptyDisk: { capacity: '1Gi' } }];
    const grown = await refusalOf(() => write({ template: { ...template, spec: { ...template.spec!, volumes } } }));
    assert.match(grown.message, /Cannot update vm disks or volumes until snapshot "s" completes/);
    assert.deepEqual(
      grown.status.details?.causes?.map(({ reason, field }) => `${reason} ${field}`),
      ['FieldValueNotSupported spec'],
    );
  });
  it('keep a machine from starting during a restore', async () => {
    const old = { ...vmOf(), status: { restoreInProgress: 'r' } };
    const write = (spec: Partial<VirtualMachine['spec']>) =>
      virtAdmission(optionsOf()).validate(
        requestOf({ ...old, spec: { ...old.spec, ...spec } } as VirtualMachine, { operation: 'UPDATE', old }),
      );
    await write({ runStrategy: 'Halted', updateVolumesStrategy: 'Migration' });
    const error = await refusalOf(() => write({ runStrategy: 'Always' }));
    assert.match(error.message, /Cannot start VM until restore "r" completes/);
    const restored = { ...old, spec: { ...old.spec, runStrategy: 'Manual' } } as VirtualMachine;
    await virtAdmission(optionsOf()).validate(requestOf(restored, { operation: 'UPDATE', old, user: controller }));
  });
  it('ask the instance type', async () => {
    const type = {
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind: 'VirtualMachineClusterInstancetype',
      metadata: { name: 'small', uid: 'u', generation: 1 },
      spec: { cpu: { guest: 2 }, memory: { guest: '1Gi' } },
    } as KubeObject;
    const object = vmOf({ instancetype: { name: 'small' } });
    const validate = (client: Client) => virtAdmission(optionsOf({ client })).validate(requestOf(object));
    const error = await refusalOf(() => validate(clientOf(type)));
    assert.deepEqual(error.status.details?.causes, [
      {
        reason: 'FieldValueInvalid',
        message: 'VM field(s) spec.template.spec.domain.memory.guest conflicts with selected instance type',
        field: 'spec.template.spec.domain.memory.guest',
      },
    ]);
    assert.deepEqual(await validate(clientOf()), { warnings: [], captures: [] }, 'a missing one refuses nothing');
  });
});

describe('rules about changes of an instance', () => {
  const change = (object: VirtualMachineInstance, who = user, old = vmiOf()) =>
    virtAdmission(optionsOf()).validate(requestOf(object, { operation: 'UPDATE', old, user: who }));
  it('leave the spec to the controllers', async () => {
    const object = vmiOf({ terminationGracePeriodSeconds: 1 });
    const error = await refusalOf(() => change(object));
    assert.match(error.message, /virtualmachineinstances-update-validator.*update of VMI object is restricted/);
    await change(object, controller);
  });
  it('leave reserved labels to them', async () => {
    const object = vmiOf();
    object.metadata.labels = { 'kubevirt.io/nodeName': 'n' };
    await refusalOf(() => change(object));
    await change(object, controller);
    object.metadata.labels = { mine: 'n' };
    await change(object);
  });
  it('leave the claim of a memory dump to them', async () => {
    const object = vmiOf();
    object.metadata.annotations = { 'coracle.dev/memory-dump-claim': 'uid' };
    const error = await refusalOf(() => change(object));
    assert.match(error.message, /memory-dump-claim is written only by the controller/);
    await refusalOf(() => change(vmiOf(), user, object));
    await change(object, controller);
  });
  it('fix the hot-plug limits for everybody', async () => {
    const limits = (maxSockets: number, maxGuest: string) =>
      vmiOf({ domain: { devices: {}, cpu: { maxSockets }, memory: { guest: '1Gi', maxGuest } } });
    await change(limits(4, '2048Mi'), controller, limits(4, '2Gi'));
    const error = await refusalOf(() => change(limits(5, '3Gi'), controller, limits(4, '2Gi')));
    assert.deepEqual(error.status.details?.causes, [
      { reason: 'FieldValueInvalid', message: 'CPU topology maxSockets changed' },
    ]);
    const memory = await refusalOf(() => change(limits(4, '3Gi'), controller, limits(4, '2Gi')));
    assert.equal(memory.status.details?.causes?.[0]?.message, 'Memory maxGuest changed');
  });
});

// Compat KubeVirt's API, P1, yes: rules about new migrations
describe('rules about migrations', () => {
  const migration = (spec: object = {}, more: object = {}) => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'm', namespace: 'default' },
    spec: { vmiName: 'a', ...spec },
    ...more,
  });
  const running = (conditions: object[] = []) => ({ ...vmiOf(), status: { phase: 'Running', conditions } });
  const notMigratable = { type: 'LiveMigratable', status: 'False', reason: 'DisksNotLiveMigratable' };
  const cases: [name: string, object: KubeObject, objects: KubeObject[], expected: string | undefined][] = [
    ['a running instance', migration(), [running()], undefined],
    ['no name', migration({ vmiName: '' }), [], 'FieldValueRequired spec.vmiName'],
    ['no instance', migration(), [], '400 the VMI "default/a" does not exist'],
    [
      'a finished instance',
      migration(),
      [{ ...vmiOf(), status: { phase: 'Failed' } } as KubeObject],
      '400 Cannot migrate VMI in finalized state.',
    ],
    [
      'one that cannot move',
      migration(),
      [running([notMigratable])],
      '400 Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: ',
    ],
    [
      'one that can move to another cluster',
      migration({ sendTo: { migrationID: 'x', connectURL: 'y' } }),
      [running([notMigratable])],
      undefined,
    ],
    [
      'a second one',
      migration(),
      [running(), migration({}, { metadata: { name: 'n', uid: 'u' } })],
      '400 in-flight migration detected. Active migration job (u) is currently already in progress for VMI a.',
    ],
    ['one after another', migration(), [running(), migration({}, { status: { phase: 'Failed' } })], undefined],
    [
      'one to another namespace of the same cluster',
      migration({ sendTo: { migrationID: 'x', connectURL: 'y' }, receive: { migrationID: 'x' } }),
      [running()],
      undefined,
    ],
    [
      'two ends of different migrations',
      migration({ sendTo: { migrationID: 'x', connectURL: 'y' }, receive: { migrationID: 'z' } }),
      [running()],
      'FieldValueInvalid spec',
    ],
    [
      'a priority by a user',
      migration({ priority: 'system-critical' }),
      [running()],
      'FieldValueNotSupported spec.priority',
    ],
  ];
  for (const [name, object, objects, expected] of cases) {
    it(`${expected === undefined ? 'accept' : 'refuse'} ${name}`, async () => {
      const admission = virtAdmission(optionsOf({ client: clientOf(...objects) }));
      const answer = await admission.validate(requestOf(object)).then(
        () => undefined,
        ({ status }: ApiError) =>
          status.details?.causes?.map(({ reason, field }) => `${reason} ${field}`).join() ??
          `${status.code} ${(status.message ?? '').replace(/^.* denied the request: /, '')}`,
      );
      assert.equal(answer, expected);
    });
  }
  it('fix the spec, and the label while it is under way', async () => {
    const label = 'kubevirt.io/vmi-name';
    const labelled = (labels: object | undefined, status?: object) =>
      migration(
        {},
        { metadata: { name: 'm', namespace: 'default', ...(labels && { labels }) }, ...(status && { status }) },
      );
    const old = labelled({ [label]: 'a' });
    const update = (object: KubeObject) =>
      virtAdmission(optionsOf()).validate(requestOf(object, { operation: 'UPDATE', old }));
    await update(labelled({ [label]: 'a', more: 'b' }));
    await update(labelled({ [label]: 'b' }, { phase: 'Succeeded' }));
    const changed = migration({ vmiName: 'b' });
    for (const [object, text] of [
      [changed, /update of Migration object's spec is restricted/],
      [labelled(undefined), /selector label can't be removed/],
      [labelled({}), /selector label can't be modified/],
      [labelled({ [label]: 'b' }, { phase: 'Running' }), /selector label can't be modified/],
    ] as const) {
      assert.match((await refusalOf(() => update(object))).message, text);
    }
  });
});

// S-181
describe('the architecture of a disk image', () => {
  const dataSource = (name: string, label?: string, inner?: string): KubeObject =>
    ({
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: {
        name,
        namespace: 'images',
        ...(label && { labels: { 'template.kubevirt.io/architecture': label } }),
      },
      spec: { source: inner ? { dataSource: { name: inner, namespace: 'images' } } : {} },
    }) as KubeObject;
  const architectureOf = async (names: string[], objects: KubeObject[], written?: string) => {
    const dataVolumeTemplates = names.map((name) => ({
      metadata: { name },
      spec: { sourceRef: { kind: 'DataSource', name, namespace: 'images' }, storage: {} },
    }));
    const vm = vmOf({ dataVolumeTemplates });
    if (written) vm.spec.template.spec!.architecture = written;
    const admission = virtAdmission(optionsOf({ client: clientOf(...objects) }));
    const { object } = await admission.mutate(requestOf(JSON.parse(JSON.stringify(vm)) as KubeObject));
    const { architecture, domain } = (object as VirtualMachine).spec.template.spec!;
    return [architecture, domain.machine?.type];
  };
  const cases: [name: string, names: string[], objects: KubeObject[], expected: string[], written?: string][] = [
    ['is that of the machine', ['a'], [dataSource('a', 'arm64')], ['arm64', 'virt']],
    ['is overruled by the user', ['a'], [dataSource('a', 'arm64')], ['amd64', 'q35'], 'amd64'],
    ['may stand one step away', ['a'], [dataSource('a', undefined, 'b'), dataSource('b', 'arm64')], ['arm64', 'virt']],
    ['may be that of the second disk', ['a', 'b'], [dataSource('a'), dataSource('b', 'arm64')], ['arm64', 'virt']],
    ['does not count when it is none', ['a'], [dataSource('a', 'foobar')], ['amd64', 'q35']],
    ['does not count when it is not there', ['a'], [], ['amd64', 'q35']],
  ];
  for (const [name, names, objects, expected, written] of cases)
    it(name, async () => assert.deepEqual(await architectureOf(names, objects, written), expected));
});

// S-181
describe('rules about presets', () => {
  const cases: [name: string, spec: object, expected: string[]][] = [
    ['an empty domain', { domain: {} }, []],
    ['a processor', { domain: { cpu: { cores: 2 } } }, []],
    ['no domain', {}, ['FieldValueRequired spec.domain']],
    [
      'a disk of two kinds',
      { domain: { devices: { disks: [{ name: 'd', disk: {}, cdrom: {} }] } } },
      ['FieldValueInvalid spec.domain.devices.disks[0]'],
    ],
    [
      'a kernel argument without a kernel',
      { domain: { devices: {}, firmware: { kernelBoot: { kernelArgs: 'quiet' } } } },
      ['FieldValueInvalid spec.domain.firmware.kernelBoot.kernelArgs'],
    ],
    // The machine it is handed to may have what secure boot needs.
    ['secure boot alone', { domain: { devices: {}, firmware: { bootloader: { efi: {} } } } }, []],
  ];
  for (const [name, spec, expected] of cases) {
    it(`${expected.length === 0 ? 'accept' : 'refuse'} ${name}`, async () => {
      const object = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstancePreset',
        metadata: { name: 'p', namespace: 'default' },
        spec: { selector: {}, ...spec },
      };
      const causes = await virtAdmission(optionsOf())
        .validate(requestOf(object, { resource: 'virtualmachineinstancepresets' }))
        .then(
          () => [],
          (error: unknown) => (error as ApiError).status.details?.causes ?? [],
        );
      assert.deepEqual(
        causes.map(({ reason, field }) => `${reason} ${field}`),
        expected,
      );
    });
  }
});

// S-181
describe('rules about migration policies', () => {
  const cases: [name: string, spec: object, expected: string[]][] = [
    ['nothing set', {}, []],
    ['zeros', { completionTimeoutPerGiB: 0, bandwidthPerMigration: '0' }, []],
    ['limits', { completionTimeoutPerGiB: 1, bandwidthPerMigration: '64Mi' }, []],
    ['a negative time', { completionTimeoutPerGiB: -1 }, ['FieldValueInvalid spec.completionTimeoutPerGiB']],
    ['a negative rate', { bandwidthPerMigration: '-123Mi' }, ['FieldValueInvalid spec.bandwidthPerMigration']],
    ['a rate a little below zero', { bandwidthPerMigration: '-1m' }, ['FieldValueInvalid spec.bandwidthPerMigration']],
    [
      'both',
      { completionTimeoutPerGiB: -5, bandwidthPerMigration: -1 },
      ['FieldValueInvalid spec.completionTimeoutPerGiB', 'FieldValueInvalid spec.bandwidthPerMigration'],
    ],
  ];
  for (const [name, spec, expected] of cases) {
    it(`${expected.length === 0 ? 'accept' : 'refuse'} ${name}`, async () => {
      const object = {
        apiVersion: 'migrations.kubevirt.io/v1alpha1',
        kind: 'MigrationPolicy',
        metadata: { name: 'p' },
        spec: { selectors: {}, ...spec },
      };
      const causes = await virtAdmission(optionsOf())
        .validate(requestOf(object, { group: 'migrations.kubevirt.io', resource: 'migrationpolicies' }))
        .then(
          () => [],
          (error: ApiError) => error.status.details?.causes ?? [],
        );
      assert.deepEqual(
        causes.map(({ reason, field }) => `${reason} ${field}`),
        expected,
      );
    });
  }
});

describe('rules about the KubeVirt object', () => {
  const kubeVirt = () => defaultKubeVirt({ version: 'v0', now: 0, architecture: 'amd64', useEmulation: false });
  it('allow one', async () => {
    await virtAdmission(optionsOf()).validate(requestOf(kubeVirt()));
    await refusalOf(() => virtAdmission(optionsOf({ client: clientOf(kubeVirt()) })).validate(requestOf(kubeVirt())));
  });
  it('keep it while there are guests', async () => {
    const remove = (...objects: KubeObject[]) =>
      virtAdmission(optionsOf({ client: clientOf(...objects) })).validate(
        requestOf(kubeVirt(), { operation: 'DELETE' }),
      );
    await remove();
    assert.match((await refusalOf(() => remove(vmOf()))).message, /1 VirtualMachine/);
  });
  it('refuse a gate that is on and off', async () => {
    const object = kubeVirt();
    object.spec.configuration = { developerConfiguration: { featureGates: ['a'], disabledFeatureGates: ['a'] } };
    const error = await refusalOf(() =>
      virtAdmission(optionsOf()).validate(requestOf(object, { operation: 'UPDATE', old: kubeVirt() })),
    );
    assert.match(error.message, /enabled and disabled at once: a/);
  });
  it('fits its own schema', () => {
    const info = kubevirtResources().find(({ kind }) => kind === 'KubeVirt')!;
    assert.deepEqual(validateSchema(info.schema, kubeVirt(), { custom: true }), []);
    assert.deepEqual(pruneUnknown(info.schema, structuredClone(kubeVirt()), { custom: true }), []);
  });
});

describe('webhooks over HTTP', () => {
  const encoder = new TextEncoder();
  const ask = async (path: string, body: unknown) => {
    const response = await createVirtApiWebhooks(optionsOf())({
      method: 'POST',
      path,
      query: '',
      headers: {},
      body: encoder.encode(typeof body === 'string' ? body : JSON.stringify(body)),
      peer: { address: '' },
      signal: NEVER,
    });
    const text = new TextDecoder().decode(response.body as Uint8Array);
    return { status: response.status, text };
  };
  const review = (object: KubeObject, more: object = {}) => ({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u', operation: 'CREATE', namespace: 'default', object, userInfo: user, ...more },
  });
  const responseOf = async (path: string, object: KubeObject) =>
    (JSON.parse((await ask(path, review(object))).text) as { response: Record<string, unknown> }).response;

  it('patch what they fill in', async () => {
    const response = await responseOf('/virtualmachines-mutate', vmOf());
    const patch = JSON.parse(new TextDecoder().decode(decodeBase64(String(response['patch'])))) as unknown[];
    const patched = applyJsonPatch(vmOf(), patch);
    assert.deepEqual(patched, mutate(virtAdmission(optionsOf()), requestOf(vmOf())));
    assert.deepEqual([response['uid'], response['allowed'], response['patchType']], ['u', true, 'JSONPatch']);
  });
  it('refuse with causes, without naming themselves', async () => {
    const response = await responseOf('/virtualmachines-validate', vmOf({ running: true }));
    assert.equal(response['allowed'], false);
    const { code, reason, message } = response['status'] as Record<string, unknown>;
    assert.deepEqual([code, reason], [422, 'Invalid']);
    assert.match(String(message), /^Running and RunStrategy are mutually exclusive/);
  });
  it('pass on warnings', async () => {
    const vm = vmOf({ running: true });
    delete vm.spec.runStrategy;
    assert.equal(((await responseOf('/virtualmachines-validate', vm))['warnings'] as string[]).length, 1);
  });
  it('answer what they do not know', async () => {
    assert.equal((await ask('/elsewhere', '')).status, 404);
    assert.equal((await ask('/virtualmachines-validate', '{')).status, 400);
    assert.equal((await ask('/virtualmachines-validate', { kind: 'Pod' })).status, 400);
  });
});

describe('real manifests', () => {
  const folders = ['../../../../test/fixtures/kubevirt/', '../../../../../shared/data/kubevirt-examples/'].map(
    (path) => new URL(path, import.meta.url),
  );
  for (const folder of folders.filter((url) => existsSync(url))) {
    for (const file of readdirSync(folder)) {
      const object = parse(readFileSync(new URL(file, folder), 'utf8')) as KubeObject;
      const info = kubevirtResources().find(({ kind, version }) => kind === object.kind && version === 'v1');
      if (info === undefined) continue;
      it(`${file} is filled in, accepted and still fits its schema`, async () => {
        const admission = virtAdmission(optionsOf());
        const { object: mutated } = await admission.mutate(requestOf(object));
        assert.deepEqual(await admission.validate(requestOf(mutated)), { warnings: [], captures: [] });
        assert.deepEqual(pruneUnknown(info.schema, structuredClone(mutated), { custom: true }), []);
        assert.deepEqual(validateSchema(info.schema, mutated, { custom: true }), []);
        const { object: again } = await admission.mutate(requestOf(mutated));
        assert.deepEqual(again, mutated, 'a second time changes nothing');
        if (object.kind !== 'VirtualMachine') return;
        // What the virtual machine starts must be accepted as well.
        const { template } = (mutated as VirtualMachine).spec;
        const vmi = mutate(admission, requestOf({ ...vmiOf(), spec: template.spec } as KubeObject));
        await admission.validate(requestOf(vmi));
      });
    }
  }
});
