import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../apimachinery/src/meta/status.ts';
import { type ApiRequest, NEVER, NO_BYTES } from '../../../runtime/src/http/seam.ts';
import type { UserInfo } from '../auth/identity.ts';
import { Exchange, type Server } from './exchange.ts';
import { impersonatedUser } from './impersonation.ts';
import { parseRequestInfo } from './request-info.ts';

const ADMIN: UserInfo = { username: 'admin', groups: ['system:masters', 'system:authenticated'] };

interface Asked {
  readonly user: UserInfo;
  readonly asked: readonly string[];
}

/** Where nothing else is said, the asker holds the rights. */
async function ask(
  raw: readonly (readonly [string, string])[],
  { allowed = () => true, wire = true }: { allowed?: (what: string) => boolean; wire?: boolean } = {},
): Promise<Asked> {
  const headers: Record<string, string> = {};
  for (const [name, value] of raw) {
    const key = name.toLowerCase();
    headers[key] = headers[key] === undefined ? value : `${headers[key]}, ${value}`;
  }
  const request: ApiRequest = {
    method: 'GET',
    path: '/api/v1/pods',
    query: '',
    headers,
    ...(wire && { rawHeaders: raw.flat() }),
    body: NO_BYTES,
    peer: { address: '' },
    signal: NEVER,
  };
  const asked: string[] = [];
  const authorize: Server['authorize'] = (user, a) => {
    if (a.type !== 'resource') return { allowed: false, reason: '' };
    const what = [a.group, a.resource, a.subresource, a.namespace, a.name].filter((part) => part !== '').join('/');
    asked.push(`${user.username} ${a.verb} ${what}`);
    return { allowed: a.verb === 'impersonate' && allowed(what), reason: '' };
  };
  const exchange = new Exchange(request, { authorize } as Server);
  exchange.user = ADMIN;
  exchange.info = parseRequestInfo(request);
  const named = await impersonatedUser(exchange);
  return { user: named ?? ADMIN, asked };
}

test('without the headers the user stays', async () => {
  const { user, asked } = await ask([['Accept', 'application/json']]);
  assert.equal(user, ADMIN);
  assert.deepEqual(asked, []);
});

// S-106: Impersonation asks for the right to each identity it takes.
// Compat Authentication and impersonation, P0, yes: impersonation: user, groups, uid, extra, each authorised
test('who the request is for, and what the asker is asked to hold', async () => {
  const cases: [string, [string, string][], UserInfo, string[]][] = [
    ['a user', [['Impersonate-User', 'jane']], { username: 'jane', groups: ['system:authenticated'] }, ['users/jane']],
    [
      'groups, a comma in one of them',
      [
        ['Impersonate-User', 'jane'],
        ['Impersonate-Group', 'a, b'],
        ['Impersonate-Group', 'c'],
      ],
      { username: 'jane', groups: ['a, b', 'c', 'system:authenticated'] },
      ['users/jane', 'groups/a, b', 'groups/c'],
    ],
    [
      'a service account',
      [['Impersonate-User', 'system:serviceaccount:ns:sa']],
      {
        username: 'system:serviceaccount:ns:sa',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'],
      },
      ['serviceaccounts/ns/sa'],
    ],
    [
      'nobody',
      [['Impersonate-User', 'system:anonymous']],
      { username: 'system:anonymous', groups: ['system:unauthenticated'] },
      ['users/system:anonymous'],
    ],
    [
      'uid and extra values',
      [
        ['Impersonate-User', 'jane'],
        ['Impersonate-Uid', '7'],
        ['Impersonate-Extra-Example.com%2fScopes', 'x'],
        ['Impersonate-Extra-Example.com%2fScopes', 'y'],
      ],
      {
        username: 'jane',
        uid: '7',
        groups: ['system:authenticated'],
        extra: { 'example.com/scopes': ['x', 'y'] },
      },
      [
        'users/jane',
        'authentication.k8s.io/uids/7',
        'authentication.k8s.io/userextras/example.com/scopes/x',
        'authentication.k8s.io/userextras/example.com/scopes/y',
      ],
    ],
  ];
  for (const [name, headers, wanted, held] of cases) {
    const { user, asked } = await ask(headers);
    assert.deepEqual(user, wanted, name);
    assert.deepEqual(
      asked,
      held.map((what) => `admin impersonate ${what}`),
      name,
    );
  }
  // A request that never was on a wire has the joined text only.
  const inProcess = await ask(
    [
      ['Impersonate-User', 'jane'],
      ['Impersonate-Group', 'a'],
      ['Impersonate-Group', 'b'],
    ],
    { wire: false },
  );
  assert.deepEqual(inProcess.user.groups, ['a', 'b', 'system:authenticated']);
});

test('one refusal refuses the request; values without a user are malformed', async () => {
  const refusal = async (run: () => Promise<unknown>): Promise<ApiError> => {
    try {
      await run();
    } catch (error) {
      if (error instanceof ApiError) return error;
    }
    return assert.fail('it was accepted');
  };
  const both: [string, string][] = [
    ['Impersonate-User', 'jane'],
    ['Impersonate-Group', 'system:masters'],
  ];
  const { code, message } = await refusal(() => ask(both, { allowed: (what) => what !== 'groups/system:masters' }));
  assert.equal(code, 403);
  assert.equal(
    message,
    'groups "system:masters" is forbidden: User "admin" cannot impersonate resource "groups" in API group "" at the cluster scope',
  );
  assert.equal((await refusal(() => ask([['Impersonate-Group', 'system:masters']]))).code, 400);
  assert.equal((await refusal(() => ask([['Impersonate-Uid', '0']]))).code, 400);
});
