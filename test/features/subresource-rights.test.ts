/** A missing right on a subresource of KubeVirt's: upstream kube-apiserver refuses before virt-api is asked. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

let server: InProcessControlPlane;
before(async () => {
  server = await startInProcess();
});
after(() => server.stop());

// Compat KubeVirt's API, P1, yes: refusals of subresources.kubevirt.io
for (const [method, path, verb, resource, subresource] of [
  ['PUT', 'virtualmachineinstances/vm/pause', 'update', 'virtualmachineinstances', 'pause'],
  ['PUT', 'virtualmachines/vm/start', 'update', 'virtualmachines', 'start'],
  ['GET', 'virtualmachineinstances/vm/vnc/screenshot', 'get', 'virtualmachineinstances', 'vnc/screenshot'],
  ['GET', 'virtualmachineinstances/vm/portforward/22/tcp', 'get', 'virtualmachineinstances', 'portforward'],
] as const)
  for (const user of [
    ['jane', 'system:authenticated'],
    ['system:anonymous', 'system:unauthenticated'],
  ] as const)
    test(`${method} ${path} without the right, by ${user[0]}: 403 with a Status of reason Forbidden`, async () => {
      const root = '/apis/subresources.kubevirt.io/v1/namespaces/default';
      const { status, json } = await server.sendAs(user, method, `${root}/${path}`, method === 'PUT' ? {} : undefined);
      assert.equal(status, 403);
      assert.deepEqual(json, {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message:
          `${resource}.subresources.kubevirt.io "vm" is forbidden: User "${user[0]}" cannot ${verb} resource ` +
          `"${resource}/${subresource}" in API group "subresources.kubevirt.io" in the namespace "default"`,
        reason: 'Forbidden',
        details: { name: 'vm', group: 'subresources.kubevirt.io', kind: resource },
        code: 403,
      });
    });

// S-423: `/openapi/v2` holds the paths of `subresources.kubevirt.io`.
// S-800: `/openapi/v2` names the operations of `subresources.kubevirt.io` as upstream, each once, with port and
//   protocol of a forward as parts of the path.
test('/openapi/v2 holds the paths of the subresources', async () => {
  const { status, json } = await server.send('GET', '/openapi/v2');
  assert.equal(status, 200);
  const root = '/apis/subresources.kubevirt.io/v1';
  const at = `${root}/namespaces/{namespace}/virtualmachineinstances/{name}`;
  for (const [path, id] of [
    ['console', 'Console'],
    ['vnc', 'VNC'],
    ['vnc/screenshot', 'VNCScreenshot'],
    ['guestosinfo', 'Guestosinfo'],
    ['portforward/{port}', 'vmi-PortForward'],
    ['portforward/{port}/{protocol}', 'vmi-PortForwardWithProtocol'],
  ] as const)
    assert.equal(json.paths[`${at}/${path}`]?.get?.operationId, `v1${id}`, path);
  for (const [path, id] of [
    ['pause', 'Pause'],
    ['unpause', 'Unpause'],
    ['freeze', 'Freeze'],
    ['addvolume', 'vmi-addvolume'],
    ['evacuate/cancel', 'vmi-evacuatecancel'],
  ] as const)
    assert.equal(json.paths[`${at}/${path}`]?.put?.operationId, `v1${id}`, path);
  const parameters = (path: string): string[] =>
    json.paths[`${at}/${path}`].parameters.map(({ name }: { name: string }) => name);
  assert.deepEqual(parameters('pause'), ['namespace', 'name']);
  assert.deepEqual(parameters('portforward/{port}/{protocol}'), ['namespace', 'name', 'port', 'protocol']);
  // Generated clients have one method for each.
  const ids = Object.values(json.paths as Record<string, Record<string, { operationId?: string }>>).flatMap((item) =>
    Object.values(item).flatMap(({ operationId }) => operationId ?? []),
  );
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(json.paths[`${root}/version`].get);
  assert.ok(json.paths[`${root}/namespaces/{namespace}/expand-vm-spec`].put);
  assert.ok(json.paths['/apis/subresources.kubevirt.io/v1alpha3/version'].get);
});
