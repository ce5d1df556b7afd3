/** `coracle crds`: what an external cluster needs before anything else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { configSyncCrds } from '../../packages/gitops/src/kinds/definitions.ts';
import { kubevirtCrds } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { startServer } from '../testkit/in-process-server.ts';
import { openWorkspace } from './workspace.ts';

// S-323: `coracle crds` prints definitions that an API server takes as they are.
// S-900
test('coracle crds prints definitions that an API server takes as they are', async (t) => {
  const at = openWorkspace(t);
  const { code, stdout, stderr } = await at.run(['crds']);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /kubectl apply --server-side/);
  const printed = parseAllDocuments(stdout).map((document) => document.toJS());
  assert.deepEqual(
    printed.map(({ metadata }) => metadata.name),
    [...kubevirtCrds(0), ...configSyncCrds(0)].map(({ metadata }) => metadata.name),
  );
  // Upstream's instance has no status subresource, and its machine has one.
  const statusOf = (name: string): unknown[] =>
    printed
      .find(({ metadata }) => metadata.name === name)
      .spec.versions.map(({ subresources }: { subresources?: { status?: object } }) => subresources?.status);
  assert.ok(statusOf('virtualmachineinstances.kubevirt.io').every((status) => status === undefined));
  assert.ok(statusOf('virtualmachines.kubevirt.io').every((status) => status !== undefined));
  const server = await startServer();
  t.after(() => server.stop());
  for (const body of printed) {
    assert.ok(!('status' in body));
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${body.metadata.name}`;
    const { status, json } = await server.request('PATCH', `${path}?fieldManager=kubectl&fieldValidation=Strict`, {
      body,
      headers: { 'content-type': 'application/apply-patch+yaml' },
    });
    assert.equal(status, 201, JSON.stringify(json.details?.causes ?? json.message));
  }
});
