import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UserInfo } from '../../auth/identity.ts';
import { parseRequestInfo } from '../request-info.ts';
import { compileFlowSchemas, covers, rulesFor } from './flow-schemas.ts';

const schema = (name: string, spec: object) => ({
  apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
  kind: 'FlowSchema',
  metadata: { name, uid: `${name}-uid` },
  spec: { priorityLevelConfiguration: { name: 'level' }, ...spec },
});
const matches = (rule: object, user: Partial<UserInfo>, method: string, target: string): boolean => {
  const [compiled] = compileFlowSchemas([schema('s', { rules: [rule] })]);
  const [path = '', query = ''] = target.split('?');
  return covers(rulesFor(compiled!, { username: '', groups: [], ...user }), parseRequestInfo({ method, path, query }));
};

test('schemas are tried by precedence, then by name', () => {
  const order = compileFlowSchemas([
    schema('c', { matchingPrecedence: 5 }),
    schema('b', { matchingPrecedence: 10 }),
    schema('a', { matchingPrecedence: 10 }),
    schema('unset', {}),
  ]);
  assert.deepEqual(
    order.map(({ name }) => name),
    ['c', 'a', 'b', 'unset'],
  );
});

const ANY_RESOURCE = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true };
const JANE = { kind: 'User', user: { name: 'jane' } };
const CASES: readonly (readonly [
  name: string,
  rule: object,
  user: Partial<UserInfo>,
  request: string,
  expected: boolean,
])[] = [
  ['a user', { subjects: [JANE], resourceRules: [ANY_RESOURCE] }, { username: 'jane' }, 'GET /api/v1/pods', true],
  ['another user', { subjects: [JANE], resourceRules: [ANY_RESOURCE] }, { username: 'joe' }, 'GET /api/v1/pods', false],
  [
    'a rule about resources is none about paths',
    { subjects: [JANE], resourceRules: [ANY_RESOURCE] },
    { username: 'jane' },
    'GET /version',
    false,
  ],
  [
    'any user',
    { subjects: [{ kind: 'User', user: { name: '*' } }], resourceRules: [ANY_RESOURCE] },
    { username: 'x' },
    'GET /api/v1/pods',
    true,
  ],
  [
    'a group',
    { subjects: [{ kind: 'Group', group: { name: 'dev' } }], resourceRules: [ANY_RESOURCE] },
    { groups: ['dev'] },
    'GET /api/v1/pods',
    true,
  ],
  [
    'a service account',
    {
      subjects: [{ kind: 'ServiceAccount', serviceAccount: { namespace: 'ns', name: 'a' } }],
      resourceRules: [ANY_RESOURCE],
    },
    { username: 'system:serviceaccount:ns:a' },
    'GET /api/v1/pods',
    true,
  ],
  [
    'accounts of a namespace, not of one whose name begins alike',
    {
      subjects: [{ kind: 'ServiceAccount', serviceAccount: { namespace: 'ns', name: '*' } }],
      resourceRules: [ANY_RESOURCE],
    },
    { username: 'system:serviceaccount:ns2:a' },
    'GET /api/v1/pods',
    false,
  ],
  [
    'a subresource has a name of its own',
    { subjects: [JANE], resourceRules: [{ ...ANY_RESOURCE, resources: ['pods'] }] },
    { username: 'jane' },
    'PUT /api/v1/namespaces/a/pods/p/status',
    false,
  ],
  [
    'a namespaced rule is not about the whole cluster',
    { subjects: [JANE], resourceRules: [{ ...ANY_RESOURCE, clusterScope: false }] },
    { username: 'jane' },
    'GET /api/v1/pods',
    false,
  ],
  [
    'one namespace',
    { subjects: [JANE], resourceRules: [{ ...ANY_RESOURCE, namespaces: ['a'], clusterScope: false }] },
    { username: 'jane' },
    'GET /api/v1/namespaces/a/pods?watch=1',
    true,
  ],
  [
    'a path below',
    { subjects: [JANE], nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }] },
    { username: 'jane' },
    'GET /healthz/etcd',
    true,
  ],
  [
    'a path that begins alike',
    { subjects: [JANE], nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/health'] }] },
    { username: 'jane' },
    'GET /healthz',
    false,
  ],
  [
    'a star',
    { subjects: [JANE], nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['/apis/*'] }] },
    { username: 'jane' },
    'GET /apis/apps',
    true,
  ],
  [
    'another verb',
    { subjects: [JANE], nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['*'] }] },
    { username: 'jane' },
    'POST /version',
    false,
  ],
];
for (const [name, rule, user, request, expected] of CASES) {
  test(`covers(): ${name}`, () => {
    const [method = '', target = ''] = request.split(' ');
    assert.equal(matches(rule, user, method, target), expected);
  });
}
