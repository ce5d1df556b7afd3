/** A machine that may be deleted only when it is stopped: refused while its instance is there, in every way to delete. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const KEY = 'coracle.dev/delete-only-when-stopped';
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const admin = { as: ['admin', 'system:masters'] as const };

const vm = (name: string, labels: object, runStrategy = 'Always') => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, labels },
  spec: { runStrategy, template: { metadata: {}, spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
});

let plane: TestPlane;
const names = async (): Promise<string[]> =>
  (await plane.admin(`GET ${VMS}`)).items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
const instance = (name: string) => plane.ask(`GET ${VMIS}/${name}`, admin);
const started = (name: string) =>
  eventually(
    () => instance(name),
    ({ status }) => status === 200,
  );
before(async () => {
  plane = await startPlane();
  await plane.run(['vm', 'vmi'], { rootCa: '' });
});
after(() => plane.stop());

// S-759: A machine with `coracle.dev/delete-only-when-stopped`, or every machine where the KubeVirt or an SSP object
//   says so, is deleted only while no instance of it is there that has not ended: in a collection, in v1alpha3 and in a
//   dry run too.
test('a labelled machine goes when it is stopped, and not before', async () => {
  await plane.admin(`POST ${VMS}`, vm('db', { [KEY]: 'true', tier: 'data' }));
  await plane.admin(`POST ${VMS}`, vm('other', { tier: 'data' }, 'Halted'));
  await started('db');
  const refused = /VirtualMachine default\/db may be deleted only when it is stopped .*virtctl stop db -n default/;
  for (const line of [
    `DELETE ${VMS}/db`,
    `DELETE ${VMS}/db?dryRun=All`,
    `DELETE ${VMS.replace('/v1/', '/v1alpha3/')}/db`,
    `DELETE ${VMS}?labelSelector=tier=data`,
    `DELETE ${VMS}?labelSelector=tier=data&dryRun=All`,
  ]) {
    const { status, json } = await plane.ask(line, admin);
    assert.deepEqual([status, json.reason], [403, 'Forbidden'], line);
    assert.match(json.message, refused, line);
  }
  assert.ok((await names()).includes('db'));
  // As virtctl stop does.
  await plane.admin(`PATCH ${VMS}/db`, { spec: { runStrategy: 'Halted' } });
  await eventually(
    () => instance('db'),
    ({ status }) => status === 404,
  );
  assert.equal((await plane.ask(`DELETE ${VMS}/db`, admin)).status, 200);
  await eventually(names, (found) => !found.includes('db'));
});

const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const SSPS = '/apis/ssp.kubevirt.io/v1beta3/namespaces/kubevirt/ssps';

// S-759
test('the KubeVirt or an SSP object asks for it of every machine; by default nobody does', async () => {
  const setting = (path: string, value: string | null) =>
    plane.admin(`PATCH ${path}`, { metadata: { annotations: { [KEY]: value } } });
  await plane.admin(`POST ${VMS}`, vm('web', { [KEY]: 'false' }));
  await started('web');
  await plane.admin(`POST ${SSPS}`, {
    apiVersion: 'ssp.kubevirt.io/v1beta3',
    kind: 'SSP',
    metadata: { name: 'ssp' },
    spec: { commonTemplates: { namespace: 'kubevirt' } },
  });
  for (const path of [KUBEVIRT, `${SSPS}/ssp`]) {
    await setting(path, 'true');
    const { status, json } = await plane.ask(`DELETE ${VMS}/web`, admin);
    assert.equal(status, 403);
    assert.match(
      json.message,
      /\(annotation of the KubeVirt or an SSP object coracle\.dev\/delete-only-when-stopped\)/,
    );
    await setting(path, null);
  }
  assert.equal((await plane.ask(`DELETE ${VMS}/web`, admin)).status, 200);
});
