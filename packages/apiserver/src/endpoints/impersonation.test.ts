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
  readonly constraint: string | undefined;
  readonly asked: readonly string[];
}

/** Where nothing else is said, the asker holds the legacy rights. */
async function ask(
  raw: readonly (readonly [string, string])[],
  {
    allowed = (_, verb) => verb === 'impersonate',
    wire = true,
    asker = ADMIN,
  }: { allowed?: (what: string, verb: string) => boolean; wire?: boolean; asker?: UserInfo } = {},
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
    return { allowed: allowed(what, a.verb), reason: '' };
  };
  const exchange = new Exchange(request, { authorize } as Server);
  exchange.user = asker;
  exchange.info = parseRequestInfo(request);
  const named = await impersonatedUser(exchange);
  return { user: named?.user ?? asker, constraint: named?.constraint, asked };
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
    const { user, constraint, asked } = await ask(headers);
    assert.deepEqual(user, wanted, name);
    assert.equal(constraint, '', name);
    assert.deepEqual(
      asked.filter((question) => question.includes(' impersonate ')),
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
  const code = async (run: () => Promise<unknown>): Promise<number> => {
    try {
      await run();
    } catch (error) {
      if (error instanceof ApiError) return error.code;
    }
    return assert.fail('it was accepted');
  };
  const both: [string, string][] = [
    ['Impersonate-User', 'jane'],
    ['Impersonate-Group', 'system:masters'],
  ];
  assert.equal(
    await code(() =>
      ask(both, { allowed: (what, verb) => verb === 'impersonate' && what !== 'groups/system:masters' }),
    ),
    403,
  );
  assert.equal(await code(() => ask([['Impersonate-Group', 'system:masters']])), 400);
  assert.equal(await code(() => ask([['Impersonate-Uid', '0']])), 400);
});

const AGENT: UserInfo = {
  username: 'system:serviceaccount:ns:agent',
  groups: [],
  extra: {
    'authentication.kubernetes.io/pod-name': ['p'],
    'authentication.kubernetes.io/node-name': ['n1'],
  },
};

// S-265: Constrained impersonation asks for what is done in the name and for the name; no constrained mode gives
//   `system:masters`.
// Compat Authentication and impersonation, P2, yes: constrained impersonation: associated-node, arbitrary-node,
//   serviceaccount, user-info, then the legacy right; the audit event names the constraint
test('constrained modes ask for what is done in the name, and for the name', async () => {
  const auth = 'authentication.k8s.io';
  const nodes = ['system:nodes', 'system:authenticated'];
  const cases: {
    name: string;
    headers: [string, string][];
    asker?: UserInfo;
    rights: string[];
    groups: string[];
    mode: string;
    asked: string[];
  }[] = [
    {
      name: 'the node the asker runs on',
      headers: [['Impersonate-User', 'system:node:n1']],
      asker: AGENT,
      rights: ['impersonate-on:associated-node:list pods', `impersonate:associated-node ${auth}/nodes/*`],
      groups: nodes,
      mode: 'associated-node',
      asked: ['impersonate-on:associated-node:list pods', `impersonate:associated-node ${auth}/nodes/*`],
    },
    {
      name: 'another node',
      headers: [['Impersonate-User', 'system:node:n2']],
      asker: AGENT,
      rights: ['impersonate-on:arbitrary-node:list pods', `impersonate:arbitrary-node ${auth}/nodes/n2`],
      groups: nodes,
      mode: 'arbitrary-node',
      asked: ['impersonate-on:arbitrary-node:list pods', `impersonate:arbitrary-node ${auth}/nodes/n2`],
    },
    {
      name: 'a service account',
      headers: [['Impersonate-User', 'system:serviceaccount:x:y']],
      rights: ['impersonate-on:serviceaccount:list pods', `impersonate:serviceaccount ${auth}/serviceaccounts/x/y`],
      groups: ['system:serviceaccounts', 'system:serviceaccounts:x', 'system:authenticated'],
      mode: 'serviceaccount',
      asked: ['impersonate-on:serviceaccount:list pods', `impersonate:serviceaccount ${auth}/serviceaccounts/x/y`],
    },
    {
      name: 'a user with many groups: the right to all of them is asked for first',
      headers: [
        ['Impersonate-User', 'jane'],
        ...'abcd'.split('').map((g): [string, string] => ['Impersonate-Group', g]),
      ],
      rights: [
        'impersonate-on:user-info:list pods',
        `impersonate:user-info ${auth}/users/jane`,
        `impersonate:user-info ${auth}/groups/*`,
      ],
      groups: ['a', 'b', 'c', 'd', 'system:authenticated'],
      mode: 'user-info',
      asked: [
        'impersonate-on:user-info:list pods',
        `impersonate:user-info ${auth}/users/jane`,
        `impersonate:user-info ${auth}/groups/*`,
      ],
    },
    {
      name: 'no constrained mode hands out system:masters',
      headers: [
        ['Impersonate-User', 'jane'],
        ['Impersonate-Group', 'system:masters'],
      ],
      rights: [
        'impersonate-on:user-info:list pods',
        `impersonate:user-info ${auth}/users/jane`,
        `impersonate:user-info ${auth}/groups/system:masters`,
        'impersonate users/jane',
        'impersonate groups/system:masters',
      ],
      groups: ['system:masters', 'system:authenticated'],
      mode: '',
      asked: [
        'impersonate-on:user-info:list pods',
        `impersonate:user-info ${auth}/users/jane`,
        'impersonate users/jane',
        'impersonate groups/system:masters',
      ],
    },
  ];
  for (const { name, headers, asker = ADMIN, rights, groups, mode, asked } of cases) {
    const answer = await ask(headers, { asker, allowed: (what, verb) => rights.includes(`${verb} ${what}`) });
    assert.deepEqual(answer.user.groups, groups, name);
    assert.equal(answer.constraint, mode === '' ? '' : `impersonate:${mode}`, name);
    assert.deepEqual(
      answer.asked,
      asked.map((question) => `${asker.username} ${question}`),
      name,
    );
  }
});

// S-265
test('what the first mode lacks is reported', async () => {
  const refusal = async (
    headers: [string, string][],
    allowed: (what: string, verb: string) => boolean,
  ): Promise<string> => {
    try {
      await ask(headers, { allowed });
    } catch (error) {
      if (error instanceof ApiError) return error.message;
    }
    return assert.fail('it was accepted');
  };
  const jane: [string, string] = ['Impersonate-User', 'jane'];
  const constrained = (_: string, verb: string): boolean => verb !== 'impersonate';
  assert.equal(
    await refusal([jane], () => false),
    'pods is forbidden: User "admin" cannot impersonate-on:user-info:list resource "pods" in API group "" at the cluster scope',
  );
  assert.equal(
    await refusal([jane], (_, verb) => verb.startsWith('impersonate-on:')),
    'users.authentication.k8s.io "jane" is forbidden: User "admin" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope',
  );
  const extra = async (key: string, value = 'x'): Promise<string> =>
    (await refusal([jane, [`Impersonate-Extra-${key}`, value]], constrained)).replace(/^.*scope: /, '');
  assert.match(
    await extra('scopes'),
    /^impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": /,
  );
  assert.equal(await extra('a.io%2fscopes', ''), 'impersonating the empty string value in extra is not allowed');
  assert.match(
    await refusal([jane, ['Impersonate-Group', '']], constrained),
    /impersonating the empty string group is not allowed$/,
  );
});
