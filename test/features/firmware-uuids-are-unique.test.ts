/** No two machines have one firmware UUID without a report: at the create, on both machines, in metrics. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { legacyFirmwareUuid } from '../../packages/kubevirt/src/rules/identity/firmware-identity.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;
const ADMIN = { as: ['admin', 'system:masters'] } as const;
const pathOf = (namespace: string, resource = 'virtualmachines'): string =>
  `/apis/kubevirt.io/v1/namespaces/${namespace}/${resource}`;

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
  await plane.admin('POST /api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } });
  await plane.run(['vm', 'vmi'], { rootCa: '' });
  await plane.admin('POST /api/v1/namespaces', { metadata: { name: 'other' } });
});
after(() => plane.stop());

const domainOf = (uuid?: string): Any => ({
  devices: {},
  memory: { guest: '64Mi' },
  ...(uuid !== undefined && { firmware: { uuid } }),
});
const vmOf = (name: string, uuid?: string): Any => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name },
  spec: { runStrategy: 'Halted', template: { spec: { domain: domainOf(uuid) } } },
});
const vmiOf = (name: string, uuid: string): Any => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name },
  spec: { domain: domainOf(uuid) },
});
const create = (namespace: string, body: Any, query = '') =>
  plane.ask(`POST ${pathOf(namespace, `${body.kind.toLowerCase()}s`)}${query}`, { ...ADMIN, body });
const duplicateOf = (object: Any): Any =>
  object.status?.conditions?.find(({ type }: Any) => type === 'DuplicateFirmwareUUID');
const shown = (path: string, message: RegExp | undefined): Promise<Any> =>
  eventually(
    () => plane.admin(`GET ${path}`),
    (found) => (message ? message.test(duplicateOf(found)?.message ?? '') : found.status && !duplicateOf(found)),
  );
const policy = async (value: string | null): Promise<unknown> => {
  const [kubevirt] = (await plane.admin('GET /apis/kubevirt.io/v1/kubevirts')).items;
  const { namespace, name } = kubevirt.metadata;
  const line = `PATCH /apis/kubevirt.io/v1/namespaces/${namespace}/kubevirts/${name}`;
  return plane.admin(line, { metadata: { annotations: { 'coracle.dev/duplicate-firmware-uuids': value } } });
};

// S-614: Two machines of one firmware UUID are found whole-server: warned about at the write, condition and event on
//   both, a metric; the UUID is read in any form.
test('a create that brings a UUID in use is warned about, and both machines say so until one changes', async () => {
  const uuid = '5d307ca9-b3ef-428c-8861-06e72d69f223';
  assert.equal((await create('default', vmOf('a', uuid))).headers['warning'], undefined);
  // Another way to write the same UUID; nothing is stored, or held, by a dry run.
  const other = uuid.toUpperCase().replaceAll('-', '');
  assert.match((await create('default', vmOf('b', other), '?dryRun=All')).headers['warning'] ?? '', /firmware UUID/);
  const second = await create('default', vmOf('b', other));
  assert.equal(second.status, 201);
  assert.match(second.headers['warning'] ?? '', /firmware UUID 5d307ca9-.* is also that of VirtualMachine a/);

  const a = await shown(`${pathOf('default')}/a`, /^firmware UUID 5d307ca9-\S+ is also that of VirtualMachine b$/);
  await shown(`${pathOf('default')}/b`, /VirtualMachine a$/);
  assert.deepEqual(
    { status: duplicateOf(a).status, reason: duplicateOf(a).reason },
    { status: 'True', reason: 'FirmwareUUIDInUse' },
  );
  await eventually(
    async () => (await plane.admin('GET /api/v1/namespaces/default/events')).items as Any[],
    (events) =>
      ['a', 'b'].every((name) =>
        events.some(
          ({ reason, type, involvedObject }) =>
            reason === 'DuplicateFirmwareUUID' && type === 'Warning' && involvedObject.name === name,
        ),
      ),
  );
  const { response } = await plane.ask('GET /metrics', ADMIN);
  const metrics = Buffer.from(response.body as Uint8Array).toString();
  assert.match(
    metrics,
    /^kubevirt_firmware_uuid_machines\{kind="VirtualMachine",namespace="default",name="a",uuid="5d307ca9-[^"]+"\} 2$/m,
  );

  // The way out: another UUID for one of them.
  const fresh = { spec: { template: { spec: { domain: { firmware: { uuid: crypto.randomUUID() } } } } } };
  await plane.admin(`PATCH ${pathOf('default')}/b`, fresh);
  await shown(`${pathOf('default')}/a`, undefined);
  await shown(`${pathOf('default')}/b`, undefined);
});

// S-615: Who shares a UUID with a machine of another namespace sees how many there are, not which.
test('instances without a machine count, machines of other namespaces are counted and not named', async () => {
  const uuid = '11111111-b3ef-428c-8861-06e72d69f223';
  await create('default', vmiOf('alone', uuid));
  const answer = await create('other', vmOf('far', uuid));
  assert.match(answer.headers['warning'] ?? '', /is also that of 1 machine in other namespaces/);
  assert.doesNotMatch(answer.headers['warning'] ?? '', /alone|default/);
  await shown(`${pathOf('default', 'virtualmachineinstances')}/alone`, /also that of 1 machine in other namespaces$/);
  await plane.admin(`DELETE ${pathOf('other')}/far`);
  await shown(`${pathOf('default', 'virtualmachineinstances')}/alone`, undefined);
});

// S-614
test('two older machines of one name share the UUID of the name, and are reported', async () => {
  for (const namespace of ['default', 'other']) {
    await create(namespace, vmOf('twin'));
    const key = { prefix: 'kubevirt.io/virtualmachines', namespace, name: 'twin' };
    await plane.plane.store.write(key, (current) => {
      const object = structuredClone(current!.object) as Any;
      delete object.spec.template.spec.domain.firmware;
      return { type: 'put', object };
    });
  }
  for (const namespace of ['default', 'other']) {
    const found = await shown(`${pathOf(namespace)}/twin`, /1 machine in other namespaces/);
    assert.ok(duplicateOf(found).message.includes(legacyFirmwareUuid('twin')));
  }
});

// S-616: Where the KubeVirt object says so, a firmware UUID in use is refused: of many at once one gets it.
test('where the cluster says so it is refused: of many at once one gets it, and what has one keeps it', async () => {
  await assert.rejects(policy('Never'), /must be one of Warn, Refuse/);
  await policy('Refuse');
  const uuid = '22222222-b3ef-428c-8861-06e72d69f223';
  const tries = await Promise.all(
    Array.from({ length: 12 }, (_, i) => create(i % 2 ? 'other' : 'default', vmOf(`n${i}`, uuid))),
  );
  const codes = tries.map(({ status }) => status).sort();
  assert.deepEqual(codes, [201, ...Array(11).fill(422)]);
  const refused = tries.find(({ status }) => status === 422)!;
  assert.deepEqual(
    refused.json.details.causes.map(({ field, reason }: Any) => [field, reason]),
    [['spec.template.spec.domain.firmware.uuid', 'FieldValueDuplicate']],
  );

  const change = (name: string, firmware: Any) =>
    plane.ask(`PATCH ${pathOf('default')}/${name}`, {
      ...ADMIN,
      body: { spec: { template: { spec: { domain: { firmware } } } } },
    });
  assert.equal((await change('b', { uuid })).status, 422, 'an update that takes it');
  assert.equal((await change('twin', { serial: 'x' })).status, 200, 'an update of one that shares one already');
  assert.equal((await create('default', vmiOf('instance', uuid))).status, 422, 'an instance without a machine');
  assert.equal((await create('default', vmOf('fresh'))).status, 201);
  // What was refused holds nothing.
  const winner = tries.findIndex(({ status }) => status === 201);
  await plane.admin(`DELETE ${pathOf(winner % 2 ? 'other' : 'default')}/n${winner}`);
  const again = await eventually(
    () => create('default', vmOf('heir', uuid)),
    ({ status }) => status === 201,
  );
  assert.equal(again.headers['warning'], undefined);
  await policy(null);
});
