import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyRule } from '../../../../apimachinery/src/types/types.ts';
import type { Client } from '../../../../client/src/client.ts';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { clusterConfigOf } from '../../rules/machine-defaults/cluster-config.ts';
import { kubevirtClusterRoleBindings, kubevirtClusterRoles } from './cluster-roles.ts';
import { createSubresourceApi } from './subresources/subresource-api.ts';

const rulesOf = (name: string): readonly PolicyRule[] =>
  kubevirtClusterRoles.find(({ metadata }) => metadata.name === name)?.rules ?? [];
const allows = (role: string, verb: string, group: string, resource: string): boolean =>
  rulesOf(role).some(
    ({ apiGroups, resources, verbs }) =>
      apiGroups?.includes(group) && resources?.includes(resource) && verbs.includes(verb),
  );

const SUB = 'subresources.kubevirt.io';

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
  // S-806: The ClusterRoles of KubeVirt allow what upstream's allow, verb by verb, and nothing else.
  it('allow exactly what upstream allows', () => {
    const list = (words: string): string[] => words.trim().split(/\s+/);
    const below = (resource: string, words: string): string[] => list(words).map((word) => `${resource}/${word}`);
    const GUEST = 'guestosinfo filesystemlist userlist sev/fetchcertchain sev/querylaunchmeasurement objectgraph';
    const READ = list('get list watch');
    const EDIT = [...READ, ...list('delete create update patch')];
    const OBJECTS = {
      'kubevirt.io':
        'virtualmachines virtualmachineinstances virtualmachineinstancepresets virtualmachineinstancereplicasets',
      'snapshot.kubevirt.io': 'virtualmachinesnapshots virtualmachinesnapshotcontents virtualmachinerestores',
      'export.kubevirt.io': 'virtualmachineexports',
      'clone.kubevirt.io': 'virtualmachineclones',
      'backup.kubevirt.io': 'virtualmachinebackups virtualmachinebackuptrackers',
      'instancetype.kubevirt.io':
        'virtualmachineinstancetypes virtualmachineclusterinstancetypes virtualmachinepreferences virtualmachineclusterpreferences',
      'pool.kubevirt.io': 'virtualmachinepools',
    };
    type Right = readonly [verbs: readonly string[], group: string, resources: readonly string[]];
    const objects = (verbs: readonly string[]): Right[] => [
      ...Object.entries(OBJECTS).map(([group, resources]): Right => [verbs, group, list(resources)]),
      [READ, 'kubevirt.io', ['virtualmachineinstancemigrations']],
      [READ, 'migrations.kubevirt.io', ['migrationpolicies']],
    ];
    const VMI = 'virtualmachineinstances';
    const VM = 'virtualmachines';
    const operate: Right[] = [
      [['get'], SUB, [...below(VMI, `console vnc portforward usbredir ${GUEST}`)]],
      [['get'], SUB, below(VM, 'expand-spec portforward objectgraph')],
      [['update'], SUB, below(VMI, 'pause unpause addvolume removevolume freeze unfreeze softreboot reset')],
      [['update'], SUB, below(VMI, 'sev/setupsession sev/injectlaunchsecret evacuate/cancel')],
      [
        ['update'],
        SUB,
        below(VM, 'start stop restart addvolume removevolume memorydump removememorydump evacuate/cancel'),
      ],
      [['update'], SUB, ['expand-vm-spec']],
    ];
    const ROLES: Record<string, Right[]> = {
      'kubevirt.io:default': [
        [list('get list'), 'kubevirt.io', ['kubevirts']],
        [list('get list'), SUB, ['version', 'guestfs']],
      ],
      'kubevirt.io:admin': [
        ...operate,
        [['get'], SUB, below(VMI, 'vnc/screenshot')],
        ...objects([...EDIT, 'deletecollection']),
      ],
      'kubevirt.io:edit': [...operate, ...objects(EDIT), [list('get list'), 'kubevirt.io', ['kubevirts']]],
      'kubevirt.io:view': [
        [['get'], SUB, [...below(VMI, GUEST), ...below(VM, 'expand-spec objectgraph')]],
        [['update'], SUB, ['expand-vm-spec']],
        ...objects(READ),
      ],
      'kubevirt.io:migrate': [
        [['update'], SUB, below(VM, 'migrate')],
        [[...EDIT, 'deletecollection'], 'kubevirt.io', ['virtualmachineinstancemigrations']],
      ],
      'instancetype.kubevirt.io:view': [
        [READ, 'instancetype.kubevirt.io', list('virtualmachineclusterinstancetypes virtualmachineclusterpreferences')],
      ],
    };
    const flat = (rights: readonly Right[]): string[] =>
      rights
        .flatMap(([verbs, group, resources]) =>
          verbs.flatMap((verb) => resources.map((resource) => `${verb} ${group}/${resource}`)),
        )
        .sort();
    for (const [name, rights] of Object.entries(ROLES)) {
      const has = rulesOf(name).map(
        ({ verbs, apiGroups, resources }): Right => [verbs, apiGroups?.join() ?? '', resources ?? []],
      );
      assert.deepEqual(flat(has), flat(rights), name);
    }
    const others = kubevirtClusterRoles.map(({ metadata }) => metadata.name ?? '').filter((name) => !ROLES[name]);
    assert.deepEqual(others, ['kubevirt-apiserver']);
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
