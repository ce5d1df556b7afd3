import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRequestInfo } from '../request-info.ts';
import { createWatchCounts } from './watch-counts.ts';

const WATCHED = [
  { group: 'apps', resource: 'deployments', namespace: '', name: '' },
  { group: 'apps', resource: 'deployments', namespace: 'a', name: '' },
  { group: 'apps', resource: 'deployments', namespace: 'a', name: 'one' },
  { group: 'apps', resource: 'deployments', namespace: 'b', name: '' },
  { group: '', resource: 'nodes', namespace: '', name: 'n' },
];
const CASES: readonly (readonly [request: string, interested: number])[] = [
  ['POST /apis/apps/v1/namespaces/a/deployments', 2],
  ['PATCH /apis/apps/v1/namespaces/a/deployments/one', 3],
  ['PUT /apis/apps/v1/namespaces/a/deployments/one/status', 3],
  ['PUT /apis/apps/v1/namespaces/c/deployments/one', 1],
  ['DELETE /api/v1/nodes/n', 1],
  ['DELETE /api/v1/nodes/m', 0],
  ['POST /api/v1/namespaces/a/pods', 0],
];

test('those who watch the object, its namespace or all of its resource are interested, until they go', () => {
  const counts = createWatchCounts();
  const interested = (request: string): number => {
    const [method = '', path = ''] = request.split(' ');
    return counts.interested(parseRequestInfo({ method, path, query: '' }));
  };
  const forget = WATCHED.map((watched) => counts.add(watched));
  for (const [request, expected] of CASES) assert.equal(interested(request), expected, request);
  const again = counts.add(WATCHED[0]!);
  for (const one of forget) one();
  assert.equal(interested(CASES[0]![0]), 1, 'the one that is left');
  again();
  for (const [request] of CASES) assert.equal(interested(request), 0, request);
});
