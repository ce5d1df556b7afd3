import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { createFakeClock } from '../../base/clock/fake-clock.ts';
import { silentLogger } from '../../base/log/log.ts';
import type { Client } from '../../client/client.ts';
import { clusterConfigOf } from '../../domain/machine-defaults/cluster-config.ts';
import { kubevirtClusterRoleBindings, kubevirtClusterRoles } from './cluster-roles.ts';
import { createSubresourceApi } from './subresources/subresource-api.ts';

const rulesOf = (name: string): readonly PolicyRule[] =>
  kubevirtClusterRoles.find(({ metadata }) => metadata.name === name)?.rules ?? [];
const allows = (role: string, verb: string, group: string, resource: string): boolean =>
  rulesOf(role).some(
    ({ apiGroups, resources, verbs }) =>
      apiGroups?.includes(group) && resources?.includes(resource) && verbs.includes(verb),
  );

describe('kubevirtClusterRoles', () => {
  it('let an editor use every served subresource but migrate, VSOCK, screenshots and what only controllers ask for', () => {
    const api = createSubresourceApi({
      client: {} as Client,
      config: () => clusterConfigOf(undefined),
      nodeHandler: () => Promise.reject(new Error('unused')),
      readAs: () => ({ get: async () => 'forbidden', list: async () => 'forbidden' }),
      authorize: () => false,
      clock: createFakeClock(),
      log: silentLogger,
      version: '',
    });
    const missing = api.discovery
      .filter(({ namespaced }) => namespaced)
      .filter(({ name, verbs }) => !allows('kubevirt.io:edit', verbs[0]!, 'subresources.kubevirt.io', name))
      .map(({ name }) => name);
    assert.deepEqual(missing, [
      'virtualmachineinstances/backup',
      'virtualmachineinstances/redefine-checkpoint',
      'virtualmachineinstances/vnc/screenshot',
      'virtualmachineinstances/vsock',
      'virtualmachines/migrate',
    ]);
    const screenshot = 'virtualmachineinstances/vnc/screenshot';
    assert.ok(allows('kubevirt.io:admin', 'get', 'subresources.kubevirt.io', screenshot));
  });
  it('keep migrations apart', () => {
    for (const role of ['kubevirt.io:admin', 'kubevirt.io:edit', 'kubevirt.io:view']) {
      assert.ok(allows(role, 'list', 'kubevirt.io', 'virtualmachineinstancemigrations'), role);
      assert.ok(!allows(role, 'create', 'kubevirt.io', 'virtualmachineinstancemigrations'), role);
    }
    assert.ok(allows('kubevirt.io:migrate', 'create', 'kubevirt.io', 'virtualmachineinstancemigrations'));
    assert.ok(allows('kubevirt.io:migrate', 'update', 'subresources.kubevirt.io', 'virtualmachines/migrate'));
  });
  it('let a viewer change nothing', () => {
    const changes = rulesOf('kubevirt.io:view')
      .filter(({ verbs }) => verbs.some((verb) => !['get', 'list', 'watch'].includes(verb)))
      .flatMap(({ resources }) => resources);
    assert.deepEqual(changes, ['expand-vm-spec']);
  });
  it('join admin, edit and view', () => {
    for (const name of ['admin', 'edit', 'view']) {
      const role = kubevirtClusterRoles.find(({ metadata }) => metadata.name === `kubevirt.io:${name}`);
      assert.equal(role?.metadata.labels?.[`rbac.authorization.k8s.io/aggregate-to-${name}`], 'true');
    }
  });
  it('are bound where they are named', () => {
    const names = new Set(kubevirtClusterRoles.map(({ metadata }) => metadata.name));
    for (const { roleRef } of kubevirtClusterRoleBindings()) assert.ok(names.has(roleRef.name), roleRef.name);
  });
});
