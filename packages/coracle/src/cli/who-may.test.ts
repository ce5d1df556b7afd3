/** Who is granted something, and by which binding. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Asked, grantsOf, type Rbac } from './who-may.ts';

const rules = (verbs: string[], more: object = {}) => [
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachines'], verbs, ...more },
];
const role = (name: string, ...given: Parameters<typeof rules>) => ({ metadata: { name }, rules: rules(...given) });
const binding = (name: string, kind: string, to: string, ...subjects: object[]) => ({
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: to },
  subjects,
});
const jane = { kind: 'User', name: 'jane' };

const RBAC = {
  roles: [role('editor', ['patch']), role('one', ['unprotect'], { resourceNames: ['db'] })],
  clusterRoles: [
    role('everything', ['*']),
    role('reader', ['get']),
    { metadata: { name: 'sum' }, aggregationRule: { clusterRoleSelectors: [{ matchLabels: { to: 'sum' } }] } },
    { ...role('part', ['update']), metadata: { name: 'part', labels: { to: 'sum' } } },
  ],
  roleBindings: [
    binding('edits', 'Role', 'editor', jane, { kind: 'ServiceAccount', name: 'robot', namespace: 'shop' }),
    binding('one', 'Role', 'one', { kind: 'User', name: 'keeper' }),
    binding('sum', 'ClusterRole', 'sum', { kind: 'Group', name: 'team' }),
    binding('gone', 'Role', 'no-such-role', jane),
    { ...binding('empty', 'Role', 'editor'), subjects: undefined },
  ],
  clusterRoleBindings: [
    binding('root', 'ClusterRole', 'everything', { kind: 'Group', name: 'system:masters' }),
    binding('reads', 'ClusterRole', 'reader', jane),
  ],
} as unknown as Rbac;

// S-795
describe('grantsOf()', () => {
  const machine = { group: 'kubevirt.io', resource: 'virtualmachines', namespace: 'shop', name: 'db' };
  const rows: [what: string, asked: Partial<Asked>, expected: string[]][] = [
    [
      'any of the verbs',
      { verbs: ['patch', 'update'] },
      [
        'User jane, RoleBinding edits, Role editor',
        'ServiceAccount shop/robot, RoleBinding edits, Role editor',
        'Group team, RoleBinding sum, ClusterRole sum',
        'Group system:masters, ClusterRoleBinding root, ClusterRole everything',
      ],
    ],
    [
      'a role for this machine alone',
      { verbs: ['unprotect'] },
      [
        'User keeper, RoleBinding one, Role one',
        'Group system:masters, ClusterRoleBinding root, ClusterRole everything',
      ],
    ],
    [
      'of another machine',
      { verbs: ['unprotect'], name: 'web' },
      ['Group system:masters, ClusterRoleBinding root, ClusterRole everything'],
    ],
    ['of another resource', { verbs: ['patch'], resource: 'virtualmachineinstances' }, []],
  ];
  for (const [what, asked, expected] of rows)
    it(what, () => {
      const grants = grantsOf(RBAC, { ...machine, verbs: [], ...asked });
      assert.deepEqual(
        grants.map((grant) => `${grant.subject}, ${grant.binding}, ${grant.role}`),
        expected,
      );
    });
});
