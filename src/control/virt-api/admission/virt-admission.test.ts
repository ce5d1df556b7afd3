import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import {
  kubevirtResources,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../../api/kinds/kubevirt/kubevirt.ts';
import { decodeBase64 } from '../../../api/meta/base64.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { ApiError, notFound } from '../../../api/meta/status.ts';
import { applyJsonPatch } from '../../../api/patch/json-patch.ts';
import { pruneUnknown } from '../../../api/schema/prune.ts';
import { validateSchema } from '../../../api/schema/validate.ts';
import { NEVER } from '../../../base/http/seam.ts';
import type { Client } from '../../../client/client.ts';
import { clusterConfigOf } from '../../../domain/machine-defaults/cluster-config.ts';
import { defaultKubeVirt } from '../default-kubevirt.ts';
import { type VirtAdmissionOptions, type VirtAdmissionRequest, virtAdmission } from './virt-admission.ts';
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
    ...more,
  };
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
    const vm = admission().mutate(requestOf(before)) as VirtualMachine;
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
  it('gives no identity on update', () => {
    const vm = admission().mutate(requestOf(vmOf(), { operation: 'UPDATE', old: vmOf() })) as VirtualMachine;
    assert.equal(vm.spec.template.spec?.domain.firmware, undefined);
  });
  it('fills in an omitted domain', () => {
    const vm = admission().mutate(requestOf(vmOf({ template: {} }))) as VirtualMachine;
    assert.deepEqual(vm.spec.template.spec?.domain.devices, {});
  });
  it('gives a new instance a UUID but no serial, a finalizer and its first status', () => {
    const vmi = admission().mutate(requestOf(vmiOf())) as VirtualMachineInstance;
    assert.deepEqual(vmi.spec.domain.firmware, { uuid: 'uuid-1' });
    assert.deepEqual(vmi.metadata.finalizers, ['kubevirt.io/foregroundDeleteVirtualMachine']);
    assert.deepEqual(vmi.status, {
      phase: 'Pending',
      phaseTransitionTimestamps: [{ phase: 'Pending', phaseTransitionTimestamp: '1970-01-01T00:00:00Z' }],
      runtimeUser: 107,
      memory: { guestAtBoot: '1Gi', guestCurrent: '1Gi', guestRequested: '1Gi' },
      currentCPUTopology: { cores: 1, sockets: 1, threads: 1 },
    });
    assert.deepEqual(vmi.spec.domain.devices.interfaces, [{ name: 'default', masquerade: {} }]);
  });
  it('takes back what a user writes into the status of an instance', () => {
    const old = { ...vmiOf(), status: { phase: 'Running' as const } };
    const object = { ...vmiOf(), status: { phase: 'Failed' as const } };
    const write = { operation: 'UPDATE' as const, old };
    assert.deepEqual((admission().mutate(requestOf(object, write)) as VirtualMachineInstance).status, old.status);
    const byController = admission().mutate(requestOf(object, { ...write, user: controller }));
    assert.deepEqual((byController as VirtualMachineInstance).status, object.status);
  });
  it('labels and holds a migration', () => {
    const migration = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { name: 'm' },
      spec: { vmiName: 'a' },
    };
    const { metadata } = admission().mutate(requestOf(migration));
    assert.deepEqual(metadata.labels, { 'kubevirt.io/vmi-name': 'a' });
    assert.deepEqual(metadata.finalizers, ['kubevirt.io/migrationJobFinalize']);
  });
  it('leaves other groups and subresources alone', () => {
    const vm = vmOf();
    assert.equal(admission().mutate(requestOf(vm, { subresource: 'status' })), vm);
    assert.equal(admission().mutate(requestOf(vm, { group: 'example.org' })), vm);
    assert.equal(admission().handles(requestOf(vm, { subresource: 'status' })), false);
    assert.equal(admission().handles(requestOf(vm)), true);
  });
  it('refuses when the settings contradict each other', async () => {
    const config = clusterConfigOf({
      ...defaultKubeVirt({ version: '', now: 0, architecture: 'amd64', useEmulation: false }),
      spec: { configuration: { network: { permitBridgeInterfaceOnPodNetwork: false } } },
    });
    const error = await refusalOf(() => admission({ config: () => config }).mutate(requestOf(vmiOf())));
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
    ['an unused one', { dataVolumeTemplates: [dataVolume({})] }, ['FieldValueRequired spec.dataVolumeTemplates[0]']],
    [
      'one without a name',
      { ...withVolume, dataVolumeTemplates: [{ ...dataVolume({}), metadata: {} }] },
      ['FieldValueRequired spec.dataVolumeTemplates[0].name', 'FieldValueRequired spec.dataVolumeTemplates[0]'],
    ],
    [
      'one with pvc and storage',
      { ...withVolume, dataVolumeTemplates: [dataVolume({ pvc: {} })] },
      ['FieldValueInvalid spec.dataVolumeTemplates[0]'],
    ],
    [
      'one without a source',
      { ...withVolume, dataVolumeTemplates: [dataVolume({ source: undefined })] },
      ['FieldValueInvalid spec.dataVolumeTemplates[0]'],
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

  it('warn of running', async () => {
    const vm = JSON.parse(JSON.stringify(vmOf({ running: false }))) as VirtualMachine;
    delete vm.spec.runStrategy;
    assert.deepEqual(await virtAdmission(optionsOf()).validate(requestOf(vm)), [
      'spec.running is deprecated, please use spec.runStrategy instead.',
    ]);
    assert.deepEqual(await virtAdmission(optionsOf()).validate(requestOf(vmOf())), []);
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
  it('hold the spec still during a snapshot', async () => {
    const old = { ...vmOf(), status: { snapshotInProgress: 's' } };
    const write = (object: VirtualMachine) =>
      virtAdmission(optionsOf()).validate(requestOf(object, { operation: 'UPDATE', old }));
    await write({ ...old, metadata: { ...old.metadata, labels: { a: 'b' } } });
    const error = await refusalOf(() => write({ ...old, spec: { ...old.spec, runStrategy: 'Always' } }));
    assert.match(error.message, /until snapshot "s" completes/);
  });
  it('ask the instance type', async () => {
    const applyInstancetype = () =>
      Promise.resolve([
        { type: 'FieldValueInvalid' as const, field: 'spec.template.spec.domain.cpu.cores', detail: 'conflict' },
      ]);
    const error = await refusalOf(() => virtAdmission(optionsOf({ applyInstancetype })).validate(requestOf(vmOf())));
    assert.deepEqual(error.status.details?.causes?.[0]?.field, 'spec.template.spec.domain.cpu.cores');
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
  it('fix the hot-plug limits for everybody', async () => {
    const limits = (maxSockets: number, maxGuest: string) =>
      vmiOf({ domain: { devices: {}, cpu: { maxSockets }, memory: { guest: '1Gi', maxGuest } } });
    await change(limits(4, '2048Mi'), controller, limits(4, '2Gi'));
    const error = await refusalOf(() => change(limits(5, '3Gi'), controller, limits(4, '2Gi')));
    assert.equal(error.status.details?.causes?.length, 2);
  });
});

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
    ['no instance', migration(), [], 'FieldValueNotFound spec.vmiName'],
    [
      'a finished instance',
      migration(),
      [{ ...vmiOf(), status: { phase: 'Failed' } } as KubeObject],
      'FieldValueInvalid spec.vmiName',
    ],
    ['one that cannot move', migration(), [running([notMigratable])], 'FieldValueInvalid spec.vmiName'],
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
      'FieldValueDuplicate spec.vmiName',
    ],
    ['one after another', migration(), [running(), migration({}, { status: { phase: 'Failed' } })], undefined],
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
      const causes = await admission.validate(requestOf(object)).then(
        () => [],
        (error: ApiError) => error.status.details?.causes ?? [],
      );
      assert.equal(causes.map(({ reason, field }) => `${reason} ${field}`).join(), expected ?? '');
    });
  }
  it('fix the spec', async () => {
    const write = { operation: 'UPDATE' as const, old: migration() };
    await virtAdmission(optionsOf()).validate(requestOf(migration(), write));
    await refusalOf(() => virtAdmission(optionsOf()).validate(requestOf(migration({ vmiName: 'b' }), write)));
  });
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
    assert.deepEqual(patched, virtAdmission(optionsOf()).mutate(requestOf(vmOf())));
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
        const mutated = admission.mutate(requestOf(object));
        assert.deepEqual(await admission.validate(requestOf(mutated)), []);
        assert.deepEqual(pruneUnknown(info.schema, structuredClone(mutated), { custom: true }), []);
        assert.deepEqual(validateSchema(info.schema, mutated, { custom: true }), []);
        assert.deepEqual(admission.mutate(requestOf(mutated)), mutated, 'a second time changes nothing');
        if (object.kind !== 'VirtualMachine') return;
        // What the virtual machine starts must be accepted as well.
        const { template } = (mutated as VirtualMachine).spec;
        const vmi = admission.mutate(requestOf({ ...vmiOf(), spec: template.spec } as KubeObject));
        await admission.validate(requestOf(vmi));
      });
    }
  }
});
